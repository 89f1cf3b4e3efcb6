//! Directories that are held open: the path to one stays short and leads to the same one, whatever happens above it.

use std::io;
use std::path::{Path, PathBuf};

/// A directory, and a path to it that is short however long its own is. Where the system has no such path, it is its own.
#[derive(Debug)]
pub struct HeldDirectory {
    path: PathBuf,
    /// What the short path goes through.
    _handle: Option<std::os::fd::OwnedFd>,
}

impl HeldDirectory {
    /// Opens a directory, without following a symlink in the last part of its path. Takes no right to read it.
    #[cfg(target_os = "linux")]
    pub fn open(directory: &Path) -> io::Result<Self> {
        use std::os::fd::AsRawFd;

        let handle = rustix::fs::open(directory, crate::tree::HANDLE, rustix::fs::Mode::empty())?;
        Ok(Self { path: format!("/proc/self/fd/{}", handle.as_raw_fd()).into(), _handle: Some(handle) })
    }

    /// There is no short path here.
    #[cfg(not(target_os = "linux"))]
    pub fn open(directory: &Path) -> io::Result<Self> {
        if !directory.symlink_metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Self { path: directory.to_path_buf(), _handle: None })
    }

    /// The path of something in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }
}
