//! Notices changes to directories and files without looking again and again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Becomes readable when something has happened to what it watches.
#[derive(Debug)]
pub struct Watch(OwnedFd);

/// A directory or a file of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched(i32);

/// What to notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// A directory itself is removed or moved.
    Itself,
    /// The same, or something in it is.
    Removals,
    /// The same, or a file in it is changed, created or replaced.
    All,
    /// A file is written to, or one in a directory, and nothing else.
    Writes,
}

#[cfg(target_os = "linux")]
impl Watch {
    /// A watch of nothing yet.
    pub fn new() -> io::Result<Self> {
        use rustix::fs::inotify::{CreateFlags, init};
        Ok(Self(init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
    }

    /// Watches one more directory or file, which is no symlink; the same one twice is one.
    pub fn add(&self, path: &Path, changes: Changes) -> io::Result<Watched> {
        use rustix::fs::inotify::{WatchFlags, add_watch};
        let itself = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::ONLYDIR;
        let removals = itself | WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO;
        let flags = match changes {
            Changes::Itself => itself,
            Changes::Removals => removals,
            Changes::All => removals | WatchFlags::CLOSE_WRITE | WatchFlags::ATTRIB | WatchFlags::CREATE,
            Changes::Writes => WatchFlags::MODIFY,
        };
        Ok(Watched(add_watch(&self.0, path, flags | WatchFlags::DONT_FOLLOW)?))
    }

    /// Watches something no longer. What is gone is not watched anyway.
    pub fn forget(&self, watched: Watched) {
        let _ = rustix::fs::inotify::remove_watch(&self.0, watched.0);
    }
}

#[cfg(not(target_os = "linux"))]
impl Watch {
    /// There is no such thing here.
    pub fn new() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "nothing can be watched on this system"))
    }

    /// A watch on nothing, for systems without inotify.
    pub fn add(&self, _path: &Path, _changes: Changes) -> io::Result<Watched> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    /// Nothing was watched.
    pub fn forget(&self, _watched: Watched) {}
}

impl Watch {
    /// Forgets what has happened up to now. To be called before somebody looks, or a change in between is missed.
    pub fn clear(&self) {
        let mut events = [0; 4096];
        while rustix::io::read(&self.0, &mut events).is_ok_and(|count| count > 0) {}
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
