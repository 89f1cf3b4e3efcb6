//! Notices that something was removed from a directory, or moved away, without looking again and again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Becomes readable when something was removed from one of its directories or moved, or a directory itself was.
#[derive(Debug)]
pub struct RemovalWatch(OwnedFd);

/// A directory of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched(i32);

#[cfg(target_os = "linux")]
impl RemovalWatch {
    /// A watch of nothing yet.
    pub fn new() -> io::Result<Self> {
        use rustix::fs::inotify::{CreateFlags, init};
        Ok(Self(init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
    }

    /// Watches what is in one more directory, and the directory itself; the same one twice is one.
    pub fn add(&self, directory: &Path) -> io::Result<Watched> {
        use rustix::fs::inotify::WatchFlags;
        self.watch(directory, WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO)
    }

    /// Watches one more directory itself, and not what is in it.
    pub fn add_itself(&self, directory: &Path) -> io::Result<Watched> {
        self.watch(directory, rustix::fs::inotify::WatchFlags::empty())
    }

    fn watch(&self, directory: &Path, also: rustix::fs::inotify::WatchFlags) -> io::Result<Watched> {
        use rustix::fs::inotify::{WatchFlags, add_watch};
        let itself = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        let flags = itself | also | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        Ok(Watched(add_watch(&self.0, directory, flags)?))
    }

    /// Watches a directory no longer. One that is gone is not watched anyway.
    pub fn forget(&self, watched: Watched) {
        let _ = rustix::fs::inotify::remove_watch(&self.0, watched.0);
    }
}

#[cfg(not(target_os = "linux"))]
impl RemovalWatch {
    /// There is no such thing here.
    pub fn new() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a directory cannot be watched on this system"))
    }

    /// A watch on nothing, for systems without inotify.
    pub fn add_itself(&self, _directory: &Path) -> io::Result<Watched> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    /// A watch on nothing, for systems without inotify.
    pub fn add(&self, _directory: &Path) -> io::Result<Watched> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    /// Nothing was watched.
    pub fn forget(&self, _watched: Watched) {}
}

impl AsFd for RemovalWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
