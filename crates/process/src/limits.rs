//! The limits of this process: for open files, for processes and for the size of files.
//!
//! A limit that is too low is found at the start, by name, instead of as a failure in the middle of something that costs money.
//! [`explain`] names the limit behind an error that comes later all the same.

use std::io;
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::SIGXFSZ;

#[cfg(target_os = "linux")]
use crate::platform::raw_pid;

/// As many files as programs expect to be able to open; more confuses those that use `select`.
const USUAL_OPEN_FILES: u64 = 1024;
/// What a run needs, with some room: clients, pipes, sockets, the database and what is looked up in `/proc`.
const LEAST_OPEN_FILES: u64 = 64;
/// Threads of the runtime, of the store and for git, and some processes.
const THREADS: usize = 24;
/// More than the database and the logs of a short run have.
const LEAST_FILE_SIZE: u64 = 8 << 20;

/// The limit for open files that this process was started with, if it was raised.
static GIVEN_OPEN_FILES: OnceLock<u64> = OnceLock::new();

/// A limit that leaves too little to work with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitTooLow {
    /// For open files.
    #[error("this process may open {limit} files (`ulimit -n`), and towline needs {LEAST_OPEN_FILES}")]
    OpenFiles {
        /// The hard limit.
        limit: u64,
    },
    /// For processes and threads.
    #[error("cannot start another thread: {}", show_processes(*limit))]
    Processes {
        /// The user's limit; none where the system or a container sets it.
        limit: Option<u64>,
    },
    /// For the size of a file.
    #[error(
        "files may be {limit} bytes long (`ulimit -f`), and towline's database and logs need {LEAST_FILE_SIZE}"
    )]
    FileSize { limit: u64 },
}

impl LimitTooLow {
    /// What to do about it.
    pub const fn fix(&self) -> &'static str {
        match self {
            Self::OpenFiles { .. } => {
                "raise it with `ulimit -n 1024`, or ask whoever administers this machine"
            }
            Self::Processes { .. } => {
                "end other processes, raise the limit with `ulimit -u 4096`, or give the container more (`--pids-limit`)"
            }
            Self::FileSize { .. } => "raise it with `ulimit -f unlimited`",
        }
    }
}

fn show_processes(limit: Option<u64>) -> String {
    match limit {
        Some(limit) => format!("the user may have {limit} processes (`ulimit -u`)"),
        None => "this machine or container has too many processes".to_owned(),
    }
}

/// Raises the limit for open files where it is low, and fails if any limit is too low to work with. Programs that are supervised get the limit
/// for open files as it was.
pub fn prepare_limits() -> Result<(), LimitTooLow> {
    raise_open_files();
    if let Some(limit) = getrlimit(Resource::Nofile).current.filter(|limit| *limit < LEAST_OPEN_FILES) {
        return Err(LimitTooLow::OpenFiles { limit });
    }
    if let Some(limit) = getrlimit(Resource::Fsize).current.filter(|limit| *limit < LEAST_FILE_SIZE) {
        return Err(LimitTooLow::FileSize { limit });
    }
    try_threads().map_err(|_| LimitTooLow::Processes { limit: getrlimit(Resource::Nproc).current })
}

/// A file that reaches the limit for its size is an error of the write, not the end of this process. What it starts gets the signal
/// as usual: a handler, unlike an ignored signal, is not inherited.
pub fn survive_file_size_limit() -> io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(drop)
}

fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let Some(given) = limit.current.filter(|given| *given < USUAL_OPEN_FILES) else { return };
    let wanted = limit.maximum.map_or(USUAL_OPEN_FILES, |most| most.min(USUAL_OPEN_FILES));
    if wanted > given && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }).is_ok() {
        let _ = GIVEN_OPEN_FILES.set(given);
    }
}

/// Gives a supervisor that was just started, and with it the program that it starts, the limit for open files that this process was
/// given. The supervisor raises its own when it has to.
#[cfg(target_os = "linux")]
pub(crate) fn give_back_open_files(supervisor: u32) {
    if let (Some(pid), Some(given)) = (raw_pid(supervisor), GIVEN_OPEN_FILES.get()) {
        let limit = Rlimit { current: Some(*given), ..getrlimit(Resource::Nofile) };
        // A higher limit than the usual one harms nobody.
        let _ = rustix::process::prlimit(Some(pid), Resource::Nofile, limit);
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn give_back_open_files(_supervisor: u32) {}

/// Starts as many threads as a run needs, all at the same time, and ends them again.
fn try_threads() -> io::Result<()> {
    let (finish, wait) = mpsc::channel::<()>();
    let wait = Arc::new(std::sync::Mutex::new(wait));
    let start = |_| {
        let wait = Arc::clone(&wait);
        let idle = move || drop(wait.lock().map(|wait| wait.recv()));
        thread::Builder::new().stack_size(64 * 1024).spawn(idle)
    };
    let started: Vec<_> = (0..THREADS).map(start).collect();
    drop(finish);
    started.into_iter().try_for_each(|thread| {
        // They do nothing that could panic.
        let _ = thread?.join();
        Ok(())
    })
}

/// An error of the system, with the limit that causes it and what to do.
pub(crate) fn explain(error: &io::Error) -> String {
    let open_files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let number = error.raw_os_error().map(Errno::from_raw_os_error);
    match number {
        Some(Errno::AGAIN) => {
            let too_low = LimitTooLow::Processes { limit: getrlimit(Resource::Nproc).current };
            format!("{error}; {too_low}; {}", too_low.fix())
        }
        Some(Errno::MFILE) => {
            format!(
                "{error}: this process may open {open_files} files (`ulimit -n`); raise it with `ulimit -n 1024`"
            )
        }
        Some(Errno::NFILE) => format!("{error}: the machine has too many open files; close other programs"),
        Some(Errno::FBIG) => format!("{error} (`ulimit -f`); raise the limit with `ulimit -f unlimited`"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_limit_names_the_limit_and_the_fix() {
        for (error, limit) in
            [(Errno::AGAIN, "ulimit -u"), (Errno::MFILE, "ulimit -n"), (Errno::FBIG, "ulimit -f unlimited")]
        {
            let explained = explain(&io::Error::from(error));
            assert!(explained.contains(limit), "{explained}");
        }
        let other = io::Error::from(Errno::NOENT);
        assert_eq!(explain(&other), other.to_string());
    }

    #[test]
    fn a_limit_that_is_too_low_names_its_value() {
        let shown = [
            LimitTooLow::OpenFiles { limit: 20 }.to_string(),
            LimitTooLow::Processes { limit: Some(30) }.to_string(),
            LimitTooLow::FileSize { limit: 4096 }.to_string(),
        ];
        for (shown, value) in shown.iter().zip(["20", "30", "4096"]) {
            assert!(shown.contains(value) && shown.contains("ulimit"), "{shown}");
        }
    }
}
