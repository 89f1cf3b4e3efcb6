//! The run's directory, as the supervisor reaches it.
//!
//! On Linux it is not the current one: what is supervised could read that. The way through a descriptor is short, too, which
//! paths of sockets must be.

use std::io;
use std::path::{Path, PathBuf};

pub(super) struct Place {
    path: PathBuf,
    /// What the path goes through, on Linux.
    _directory: Option<std::os::fd::OwnedFd>,
}

impl Place {
    #[cfg(target_os = "linux")]
    pub(super) fn enter(dir: &Path) -> io::Result<Self> {
        use std::os::fd::AsRawFd;

        use rustix::fs::{Mode, OFlags};

        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(dir, flags, Mode::empty())?;
        std::env::set_current_dir("/")?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        Ok(Self { path, _directory: Some(directory) })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn enter(dir: &Path) -> io::Result<Self> {
        std::env::set_current_dir(dir)?;
        Ok(Self { path: PathBuf::from("."), _directory: None })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of one of its files.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}
