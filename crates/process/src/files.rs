//! The files of a run's directory: their names, and how much of them is read.
//!
//! | file | written by | holds |
//! | --- | --- | --- |
//! | `launch.json` | client | what to run |
//! | `stdin.log`, `stdout.log`, `stderr.log` | supervisor | every byte, in order |
//! | `index` | supervisor | which stream grew when |
//! | `shim.sock`, `shim.pid`, `shim.log` | supervisor | its socket, its identity, its own errors |
//! | `exit.json` | supervisor | the exit record, there only once the whole tree is gone |

use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(crate) const LAUNCH: &str = "launch.json";
pub(crate) const STDIN: &str = "stdin.log";
pub(crate) const INDEX: &str = "index";
pub(crate) const SOCKET: &str = "shim.sock";
pub(crate) const SUPERVISOR_PID: &str = "shim.pid";
pub(crate) const SUPERVISOR_LOG: &str = "shim.log";
pub(crate) const EXIT: &str = "exit.json";

/// More than a record or an identity ever has.
pub(crate) const SMALL_BYTES: u64 = 1024 * 1024;
/// More than the system takes as arguments of a program.
pub(crate) const LAUNCH_BYTES: u64 = 16 * 1024 * 1024;

/// One of the two streams a program writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    Stdout,
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

/// Opens a file to read; `None` when it does not exist.
pub(crate) fn open_if_present(path: &Path) -> io::Result<Option<File>> {
    match towline_files::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// SHA-256 as it is written down.
pub(crate) fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a call that must not block is to be tried again later.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
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
