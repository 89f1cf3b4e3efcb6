//! Runs one program under its own shim: to its end, to its timeout or to the caller's wish to stop, and in every
//! case until nothing of its process tree is left.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use towline_core::show_duration;
use towline_process::{
    Deadline, ExitRecord, Launch, Notice, ProcessError, Shim, ShimProgram, Stdio, StopCause,
};

use crate::blocking::blocking;
use crate::stop::Stop;
use crate::{CheckError, evidence};

/// Between SIGINT to the command, SIGTERM to its tree, and SIGKILL.
const INTERRUPT_GRACE: Duration = Duration::from_millis(500);
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long processes that outlive the command may go on printing.
const DRAIN: Duration = Duration::from_secs(1);
/// How long after the timeout the shim ends the command by itself, when nobody is left to tell it.
const BACKSTOP: Duration = Duration::from_secs(60);

/// Variables that would make git in a check act on another repository than the checkout it runs in. They are set
/// when Towline is started from a git hook.
const GIT_PLACES: [&str; 6] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"];

/// Where commands run, and with what.
pub(crate) struct Place<'a> {
    directory: &'a Path,
    shim: &'a ShimProgram,
    environment: BTreeMap<String, String>,
}

/// One command to run.
pub(crate) struct Command<'a> {
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// What it reads from its standard input.
    pub(crate) input: &'a [u8],
    /// The directory for the shim's files.
    pub(crate) run_dir: PathBuf,
    /// How long it may take.
    pub(crate) timeout: Duration,
}

impl Command<'_> {
    /// A command line for the shell, which has nothing to read.
    pub(crate) fn shell(line: &str, run_dir: PathBuf, timeout: Duration) -> Self {
        let argv = vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()];
        Self { argv, input: &[], run_dir, timeout }
    }
}

/// A command that is over, with all it had started.
pub(crate) struct Ended {
    record: ExitRecord,
    timeout: Duration,
    run_dir: PathBuf,
}

impl<'a> Place<'a> {
    /// Commands in `directory` get the environment without what is only meant for Towline itself: a check must
    /// not be able to tell that it is one.
    pub(crate) fn new(
        directory: &'a Path,
        shim: &'a ShimProgram,
        environment: &BTreeMap<String, String>,
    ) -> Self {
        let passed_on = |name: &str| !name.starts_with("TOWLINE_") && !GIT_PLACES.contains(&name);
        let environment = environment.iter().filter(|(name, _)| passed_on(name));
        Self { directory, shim, environment: environment.map(|(k, v)| (k.clone(), v.clone())).collect() }
    }

    /// Runs the command. When this future is dropped half way, the command goes on until the shim's own deadline,
    /// or until the next run for the same directory ends it.
    pub(crate) async fn run<F: Future<Output = ()>>(
        &self,
        command: Command<'_>,
        stop: &mut Stop<F>,
    ) -> Result<Ended, CheckError> {
        if stop.has_come().await {
            return Err(CheckError::Stopped);
        }
        let launch = self.launch(&command);
        let mut shim =
            towline_process::spawn(self.shim, &command.run_dir, &launch, &self.environment).await?;
        give(&shim, command.input).await;
        let record = follow(&mut shim, command.timeout, stop).await?;
        Ok(Ended { record, timeout: command.timeout, run_dir: command.run_dir })
    }

    fn launch(&self, command: &Command<'_>) -> Launch {
        let latest = command.timeout.saturating_add(BACKSTOP).as_millis();
        let deadline = now_unix_ms().saturating_add(u64::try_from(latest).unwrap_or(u64::MAX));
        Launch {
            argv: command.argv.clone(),
            cwd: self.directory.to_owned(),
            deadline: Deadline::at_unix_ms(deadline),
            interrupt_grace: INTERRUPT_GRACE,
            term_grace: TERM_GRACE,
            drain: DRAIN,
            // A check may well close its output and go on: its timeout is what limits it.
            closed_output_grace: None,
            stdio: Stdio::Pipes,
        }
    }
}

/// Gives the command what it is to read. The shim takes it all at once, however slowly the command reads. One that
/// is over, or reads no more, needs nothing; any other failure shows in the wait for its end.
async fn give(shim: &Shim, input: &[u8]) {
    if !input.is_empty() {
        let _ = shim.write(input).await;
    }
    let _ = shim.close_stdin().await;
}

/// Waits for the end, and brings it about when it is time. The wait for the end itself has no limit: the shim goes
/// on killing, and to say that nothing is left while something is would be worse than to wait.
async fn follow<F: Future<Output = ()>>(
    shim: &mut Shim,
    timeout: Duration,
    stop: &mut Stop<F>,
) -> Result<ExitRecord, CheckError> {
    let stopped = tokio::select! {
        record = ended(shim) => return by_itself(record?, shim.dir()),
        () = stop.wait() => true,
        () = tokio::time::sleep(timeout) => false,
    };
    // Whether that worked shows in the wait.
    let _ = shim.stop().await;
    let record = ended(shim).await?;
    if stopped { Err(CheckError::Stopped) } else { Ok(record) }
}

/// A command that somebody else ended, as a shutdown of the machine does, says nothing about the work.
fn by_itself(record: ExitRecord, run_dir: &Path) -> Result<ExitRecord, CheckError> {
    match record.stopped {
        Some(StopCause::Requested) => Err(CheckError::EndedFromOutside { run_dir: run_dir.to_owned() }),
        Some(StopCause::Deadline | StopCause::OutputClosed) | None => Ok(record),
    }
}

/// Waits until the run is over and nothing of it is left.
pub(crate) async fn ended(shim: &mut Shim) -> Result<ExitRecord, ProcessError> {
    loop {
        match shim.next().await {
            Ok(Notice::Exited(record)) => return Ok(record),
            Ok(Notice::Grown { .. }) => {}
            Err(ProcessError::Disconnected { dir }) => *shim = towline_process::connect(&dir).await?,
            Err(error) => return Err(error),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the shim's deadline is an absolute time")]
fn now_unix_ms() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

impl Ended {
    /// The exit code, when it exited.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        self.record.code
    }

    /// Why it did not come to its own end, if so.
    pub(crate) fn problem(&self) -> Option<String> {
        if let Some(error) = &self.record.spawn_error {
            return Some(format!("could not be started: {}", error.message));
        }
        // By us at the timeout, or by the shim's backstop: every other stop gives no `Ended`.
        if self.record.stopped.is_some() {
            return Some(timed_out(self.timeout));
        }
        self.record.signal.map(|signal| format!("killed by signal {signal}"))
    }

    /// Whether it exited by itself and with 0.
    pub(crate) fn succeeded(&self) -> bool {
        self.problem().is_none() && self.exit_code() == Some(0)
    }

    /// The end of what it printed.
    pub(crate) async fn evidence(&self) -> Result<String, CheckError> {
        self.read_logs(evidence::of_run).await
    }

    /// Reads something from its logs.
    pub(crate) async fn read_logs<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Path) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, CheckError> {
        let path = self.run_dir.clone();
        blocking(move || read(&path).map_err(|source| CheckError::Logs { action: "read", path, source }))
            .await
    }
}

/// What is said of a check that took too long.
pub(crate) fn timed_out(timeout: Duration) -> String {
    format!("timed out after {}", round_duration(timeout))
}

/// A timeout as a person set it: without units that are zero.
fn round_duration(duration: Duration) -> String {
    let shown = show_duration(duration);
    let zeros = [" 00s", " 00m", " 00h"];
    match zeros.iter().find_map(|zero| shown.strip_suffix(zero)) {
        Some(round) => round.to_owned(),
        None => shown.replace(".0s", "s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_told_as_they_were_set() {
        let shown =
            [1, 45, 1800, 1830, 3600, 86_400].map(|seconds| round_duration(Duration::from_secs(seconds)));
        assert_eq!(shown, ["1s", "45s", "30m", "30m 30s", "1h", "1d"]);
        assert_eq!(round_duration(Duration::from_millis(1500)), "1.5s");
    }
}
