//! How a run ended. The supervisor reports it on its connections once nothing of the tree is left, and writes it to `exit.json`.
//!
//! A file can be forged: only what came over a connection that this process made when it started the run may decide anything.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::ProcessError;
use crate::files;

/// The last word on a run. Exactly one of `code`, `signal` and `spawn_error` is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// The program's exit code, when it exited by itself.
    pub code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    /// Why the program never started.
    pub spawn_error: Option<SpawnError>,
    /// When the program was started, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
    /// When the program itself ended; what it left behind may have lived a little longer.
    pub ended_at_ms: u64,
    /// Why the supervisor ended the program, if it did.
    pub stopped: Option<StopCause>,
    /// How many other processes of the tree the supervisor had to end.
    pub leftovers_killed: u32,
    /// The length of `stdout.log`.
    pub stdout_bytes: u64,
    /// The length of `stderr.log`.
    pub stderr_bytes: u64,
    /// The SHA-256 of what was written to `stdout.log`, in hexadecimal. Not there when the program itself writes the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_sha256: Option<String>,
    /// The same for `stderr.log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_sha256: Option<String>,
}

/// Why the supervisor ended a program that was still running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// A client, or a SIGTERM to the supervisor, asked for it.
    Requested,
    /// The deadline passed.
    Deadline,
    /// Its standard output was closed, and it did not end by itself after that.
    OutputClosed,
    /// What it printed is longer than a file may be (`ulimit -f`), so the rest could not be stored.
    FileLimit,
}

/// Why a program could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnError {
    /// What is wrong, for a program to decide by.
    pub kind: SpawnErrorKind,
    /// What is wrong, for a person to read.
    pub message: String,
}

/// The ways a start fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpawnErrorKind {
    /// There is no such program, or no interpreter for it.
    ProgramNotFound,
    /// The program exists and may not be, or cannot be, executed.
    NotExecutable,
    /// The directory to start in is missing or is not a directory.
    DirectoryMissing,
    /// Anything else: out of processes, argument list too long, an empty command.
    Other,
}

impl ExitRecord {
    /// Reads the exit record of a run; `None` while there is none.
    pub fn read(dir: &Path) -> Result<Option<Self>, ProcessError> {
        let path = dir.join(files::EXIT);
        let Some(bytes) = towline_files::read_if_present(&path, files::SMALL_BYTES)
            .map_err(ProcessError::io("read", &path))?
        else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|source| ProcessError::Corrupt { path, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_record_reads_as_none_and_a_broken_one_as_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(ExitRecord::read(dir.path()).unwrap(), None);
        std::fs::write(dir.path().join(files::EXIT), b"{\"code\":").unwrap();
        assert!(matches!(ExitRecord::read(dir.path()), Err(ProcessError::Corrupt { .. })));
    }
}
