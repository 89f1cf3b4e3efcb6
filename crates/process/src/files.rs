//! The files of a run's directory: their names, and how they are created so that only their owner reads them.
//!
//! | file | written by | holds |
//! | --- | --- | --- |
//! | `launch.json` | client | what to run |
//! | `stdin.log`, `stdout.log`, `stderr.log` | shim | every byte, in order |
//! | `index` | shim | which stream grew when |
//! | `shim.sock`, `shim.pid`, `shim.log` | shim | its socket, its identity, its own errors |
//! | `exit.json` | shim | the exit record, there only once the whole tree is gone |

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) const LAUNCH: &str = "launch.json";
pub(crate) const STDIN: &str = "stdin.log";
pub(crate) const INDEX: &str = "index";
pub(crate) const SOCKET: &str = "shim.sock";
pub(crate) const SHIM_PID: &str = "shim.pid";
pub(crate) const SHIM_LOG: &str = "shim.log";
pub(crate) const EXIT: &str = "exit.json";

/// One of the two streams a program writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// Both streams, in the order of their descriptors.
    pub const ALL: [Self; 2] = [Self::Stdout, Self::Stderr];

    /// The name of the stream's log in the run's directory.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout.log",
            Self::Stderr => "stderr.log",
        }
    }
}

/// Creates a directory, and what leads to it, that only its owner may enter.
pub(crate) fn create_private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Creates a file that must not exist yet, readable by its owner only.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Opens a file to append to, creating it readable by its owner only.
pub(crate) fn append_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Puts a whole file in place at once: a reader finds the old one or the new one.
pub(crate) fn replace(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    stage(dir, name, bytes)?;
    std::fs::rename(staged_path(dir, name), dir.join(name))
}

/// Like [`replace`], and holds after a power cut too.
pub(crate) fn replace_durably(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    stage(dir, name, bytes)?.sync_all()?;
    std::fs::rename(staged_path(dir, name), dir.join(name))?;
    File::open(dir)?.sync_all()
}

/// Waits until files are on the disk, for all of them at the same time: one after the other they would each wait for a
/// write of their own.
pub(crate) fn sync_together<'a>(files: impl Iterator<Item = &'a File>) -> io::Result<()> {
    std::thread::scope(|scope| {
        let start = |file: &'a File| {
            let thread = std::thread::Builder::new().stack_size(64 * 1024);
            (file, thread.spawn_scoped(scope, || file.sync_data()))
        };
        let waits: Vec<_> = files.map(start).collect();
        waits.into_iter().try_for_each(|(file, wait)| match wait.map(|wait| wait.join()) {
            Ok(Ok(synced)) => synced,
            // A system that is short of threads.
            _ => file.sync_data(),
        })
    })
}

fn stage(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<File> {
    let path = staged_path(dir, name);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    Ok(file)
}

fn staged_path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.tmp"))
}

/// Opens a file to read; `None` when it does not exist.
pub(crate) fn open_if_present(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a small file whole; `None` when it does not exist.
pub(crate) fn read_if_present(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn one_file_that_cannot_be_synced_among_others_is_an_error() {
        let files = [tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap()];
        sync_together(files.iter()).unwrap();
        sync_together([].into_iter()).unwrap();
        let (pipe, _writer) = io::pipe().unwrap();
        let never_on_a_disk = File::from(OwnedFd::from(pipe));
        let [first, second] = &files;
        for order in [[&never_on_a_disk, first, second], [first, second, &never_on_a_disk]] {
            sync_together(order.into_iter()).unwrap_err();
        }
    }
}
