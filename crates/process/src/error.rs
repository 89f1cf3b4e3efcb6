//! Everything that can go wrong between a client and a run.

use std::io;
use std::path::{Path, PathBuf};

use crate::limits::explain;

/// What went wrong, to what, and what to do next. `dir` is the directory of the run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// A file or directory of the run could not be used.
    #[error("could not {action} {path}: {}", explain(source))]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A file of the run holds something else than it should.
    #[error("{path} cannot be understood: {source}; it was damaged or written by another version")]
    Corrupt { path: PathBuf, source: serde_json::Error },
    /// The launch cannot be written down.
    #[error("the launch cannot be written as JSON ({source}); its paths must be valid UTF-8")]
    UnwritableLaunch { source: serde_json::Error },
    /// The directory already belongs to a run.
    #[error("{dir} already holds a run; give every run a directory of its own, or connect to this one")]
    DirectoryInUse { dir: PathBuf },
    /// The supervisor program itself could not be started.
    #[error("could not start the supervisor {program}: {}", explain(source))]
    SupervisorNotStarted { program: PathBuf, source: io::Error },
    /// The supervisor started and gave up before it ran anything.
    #[error("the supervisor of {dir} gave up at its start: {log}")]
    SupervisorFailed {
        dir: PathBuf,
        /// The end of its own log.
        log: String,
    },
    /// The supervisor did not get ready in time and was ended.
    #[error("the supervisor of {dir} was not ready in time and was ended; the machine may be overloaded")]
    SupervisorNotReady { dir: PathBuf },
    /// The supervisor is gone and did not report the end: how the program ended is not known.
    #[error("the supervisor of {dir} was killed before it reported how the run ended")]
    Lost { dir: PathBuf },
    /// The supervisor is gone, and what it looked after may still run.
    #[error("what the run in {dir} started may still be running: {message}")]
    NotEnded {
        dir: PathBuf,
        /// What is known about it.
        message: String,
    },
    /// The list of processes cannot be read, so one may be left.
    #[error("cannot look at processes: {}", explain(source))]
    CannotLook { source: io::Error },
    /// A process was killed again and again, and is still there.
    #[error("process {pid} cannot be ended")]
    StillRunning { pid: u32 },
    /// A process that an agent or a check may have left, and that is not certain enough to be ended.
    #[error(
        "process {pid} ({command}) has no supervisor and lowered its limit for message queues, as what agents and checks leave \
         may do to hide; end it with `kill -9 {pid}` and try again"
    )]
    Hiding {
        pid: u32,
        /// The beginning of its command line.
        command: String,
    },
    /// What agents and checks left cannot be distinguished from other processes.
    #[error(
        "the limit of this process for message queues was lowered, so that processes which agents and checks left cannot be \
         recognised; start towline from another terminal"
    )]
    LimitLowered,
    /// The connection broke although the supervisor lives.
    #[error("the connection to the supervisor of {dir} broke; connect again")]
    Disconnected { dir: PathBuf },
    /// The supervisor lives and did not answer in time.
    #[error("the supervisor of {dir} does not answer; the machine or its disk may be overloaded")]
    Unresponsive { dir: PathBuf },
    /// The run has ended, so the request came too late.
    #[error("the run in {dir} has already ended")]
    Ended { dir: PathBuf },
    /// The program reads no more: its standard input was closed, by it or by us.
    #[error("the program in {dir} no longer reads its standard input")]
    StdinClosed { dir: PathBuf },
    /// The run is being stopped, so its deadline can no longer be moved.
    #[error("the run in {dir} is already being stopped")]
    Stopping { dir: PathBuf },
    /// The supervisor could not do what was asked.
    #[error("the supervisor of {dir} refused: {message}")]
    Refused {
        dir: PathBuf,
        /// In its own words.
        message: String,
    },
    /// The supervisor sent a message that is not part of the protocol.
    #[error("the supervisor of {dir} sent a message that is not understood: {source}")]
    Protocol { dir: PathBuf, source: serde_json::Error },
}

impl ProcessError {
    /// For `map_err`: an I/O error with the operation and the path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
