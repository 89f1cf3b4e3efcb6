//! Runs one program under its own supervisor: to its end, to its timeout or to the caller's request to stop, and in every
//! case until nothing of its process tree is left.
//!
//! How it ended is what the supervisor reports on the connection that was made when it was started. Nothing on disk counts: the
//! program could have written it.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use towline_core::{OutputHashes, Sandbox, show_duration};
use towline_process::{
    ExitRecord, Launch, Notice, Priority, ProcessError, ProcessId, ReportedLog, Stdio, StopCause, Stream,
    SupervisorHandle, SupervisorProgram,
};

use crate::blocking::blocking;
use crate::counts::Counts;
use crate::environment::{Environment, Purpose};
use crate::run_logs::RunLogs;
use crate::stop::Stop;
use crate::{CheckError, evidence};

/// Between SIGINT to the command, SIGTERM to its tree, and SIGKILL.
const INTERRUPT_GRACE: Duration = Duration::from_millis(500);
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long the end of a command may take once it was asked for: these two, and some time for a busy machine.
const END_PATIENCE: Duration = Duration::from_secs(20);
/// How long processes that outlive the command may go on printing.
const DRAIN: Duration = Duration::from_secs(1);
/// How long after the timeout the supervisor ends the command by itself, when no engine is left to end it.
const BACKSTOP: Duration = Duration::from_secs(60);

/// How long the supervisor of an adopted command may take to answer, and how much later than its timeout a command may have ended
/// by itself.
const FIRST_NOTICE: Duration = Duration::from_secs(5);
const LATE: Duration = Duration::from_secs(1);

/// How often a command is run whose supervisor was killed or stopped by somebody else.
const MOST_TRIES: u32 = 3;
/// How long after that our own request to stop is waited for. A shutdown of the machine asks everybody to end, in any order.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(1);
/// Not looked up in the PATH of a run, where others may put a shell of their own.
const SHELL: &str = "/bin/sh";
/// What is reported of a command whose output is not what its supervisor wrote.
pub(crate) const ALTERED: &str = "its output was changed on disk before it could be read";

/// What is reported of a command that printed more than fits into a file.
const TOO_LONG: &str = "its output is longer than a file may be (`ulimit -f`)";

/// Where commands run, and with what.
pub(crate) struct Place<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) supervisor: &'a SupervisorProgram,
    pub(crate) environment: &'a Environment,
    /// A command of low priority is killed at once when it is stopped.
    pub(crate) priority: Priority,
}

/// One command to run.
pub(crate) struct Command<'a> {
    pub(crate) purpose: Purpose<'a>,
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// What it reads from its standard input.
    pub(crate) input: Vec<u8>,
    /// The place for the supervisor's files.
    pub(crate) logs: RunLogs,
    /// How long it may take.
    pub(crate) timeout: Duration,
}

impl<'a> Command<'a> {
    /// A command line for the shell, which has nothing to read.
    pub(crate) fn shell(purpose: Purpose<'a>, line: &str, logs: RunLogs, timeout: Duration) -> Self {
        Self { purpose, argv: shell(line), input: Vec::new(), logs, timeout }
    }
}

fn shell(line: &str) -> Vec<String> {
    vec![SHELL.to_owned(), "-c".to_owned(), line.to_owned()]
}

/// A run of a command, and who supervises it.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) run_dir: PathBuf,
    pub(crate) supervisor: ProcessId,
}

/// A command that is over, with all it had started.
pub(crate) struct Ended {
    outcome: Outcome,
    timeout: Duration,
    run_dir: PathBuf,
}

/// What is known of a command's end.
enum Outcome {
    /// By its supervisor, on our connection.
    Reported(Box<ExitRecord>),
    /// It was to be ended at its timeout, and its supervisor was killed meanwhile.
    TimedOut,
    /// Somebody else killed or stopped its supervisor, which may have been the command itself. That is no result.
    SupervisorEnded,
}

/// What was read of a command's output.
pub(crate) enum Read<T> {
    /// All of it is what the supervisor wrote.
    Genuine(T),
    /// Somebody changed it.
    Altered,
}

impl Place<'_> {
    /// Runs the command, and reports each run of it that was started. When this future is dropped half way, the command goes on
    /// until the supervisor's own deadline, or until somebody adopts or ends it.
    pub(crate) async fn run<F: Future<Output = ()>>(
        &self,
        command: Command<'_>,
        stop: &mut Stop<F>,
        mut on_start: impl FnMut(Running),
    ) -> Result<Ended, CheckError> {
        let mut tries = MOST_TRIES;
        loop {
            stop.must_not_have_come().await?;
            let run_dir = command.logs.fresh();
            tries -= 1;
            let outcome = match self.try_once(&command, &run_dir, stop, &mut on_start).await {
                Err(CheckError::Process(ProcessError::Lost { .. })) => Outcome::SupervisorEnded,
                other => other?,
            };
            if tries > 0 && matches!(outcome, Outcome::SupervisorEnded) {
                continue;
            }
            return Ok(Ended { outcome, timeout: command.timeout, run_dir });
        }
    }

    /// Follows a command to its end that an engine started which was killed meanwhile. Its time has run since it was started, where
    /// that is known, by the time of its supervisor. None if the supervisor is gone, or goes before it has reported how the command ended.
    pub(crate) async fn adopt<F: Future<Output = ()>>(
        &self,
        Running { run_dir, supervisor }: Running,
        timeout: Duration,
        started_at_ms: Option<u64>,
        stop: &mut Stop<F>,
    ) -> Result<Option<Ended>, CheckError> {
        let Some(mut supervisor) = towline_process::adopt(&run_dir, supervisor).await? else {
            return Ok(None);
        };
        // The first notice has the time. A supervisor that is suspended is dealt with below.
        if let Ok(Err(ProcessError::Lost { .. })) =
            tokio::time::timeout(FIRST_NOTICE, supervisor.next()).await
        {
            return Ok(None);
        }
        let times = supervisor.run_time_ms().zip(started_at_ms);
        let spent = times.map_or(0, |(now, started)| now.saturating_sub(started));
        let left = timeout.saturating_sub(Duration::from_millis(spent));
        match follow(&mut supervisor, left, stop).await {
            Ok(Outcome::SupervisorEnded) | Err(CheckError::Process(ProcessError::Lost { .. })) => Ok(None),
            Ok(Outcome::Reported(record)) if ran_for(&record) > timeout.saturating_add(LATE) => {
                Ok(Some(Ended { outcome: Outcome::TimedOut, timeout, run_dir }))
            }
            Ok(outcome) => Ok(Some(Ended { outcome, timeout, run_dir })),
            Err(error) => Err(error),
        }
    }

    /// Whether a run is one of this command line in this place.
    pub(crate) fn runs_here(&self, purpose: Purpose<'_>, line: &str, run_dir: &Path) -> bool {
        let is_confined = |launch: &Launch| launch.sandbox == self.environment.wrapper(purpose);
        let is_it = |launch: Launch| {
            launch.argv == shell(line) && launch.cwd == self.directory && is_confined(&launch)
        };
        Launch::read(run_dir).is_ok_and(is_it)
    }

    async fn try_once<F: Future<Output = ()>>(
        &self,
        command: &Command<'_>,
        run_dir: &Path,
        stop: &mut Stop<F>,
        on_start: &mut impl FnMut(Running),
    ) -> Result<Outcome, CheckError> {
        let launch = self.launch(command);
        let mut supervisor =
            towline_process::spawn(self.supervisor, run_dir, &launch, self.environment.variables()).await?;
        if let Some(supervisor) = supervisor.supervisor() {
            on_start(Running { run_dir: run_dir.to_owned(), supervisor });
        }
        give(&supervisor, &command.input).await;
        follow(&mut supervisor, command.timeout, stop).await
    }

    fn launch(&self, command: &Command<'_>) -> Launch {
        let (interrupt_grace, term_grace) = match self.priority {
            Priority::Normal => (INTERRUPT_GRACE, TERM_GRACE),
            Priority::Low => (Duration::ZERO, Duration::ZERO),
        };
        Launch {
            argv: command.argv.clone(),
            sandbox: self.environment.wrapper(command.purpose).to_vec(),
            sandbox_stays: self.environment.sandbox().is_some_and(Sandbox::stays_above),
            cwd: self.directory.to_owned(),
            lifetime: command.timeout.saturating_add(BACKSTOP),
            interrupt_grace,
            term_grace,
            drain: DRAIN,
            // A check may well close its output and go on: its timeout is what limits it.
            closed_output_grace: None,
            stdio: Stdio::Pipes,
            priority: self.priority,
        }
    }
}

/// Gives the command what it is to read. The supervisor takes it all at once, however slowly the command reads. One that
/// is over, or reads no more, needs nothing; any other failure shows in the wait for its end.
async fn give(supervisor: &SupervisorHandle, input: &[u8]) {
    if !input.is_empty() {
        let _ = supervisor.write(input).await;
    }
    let _ = supervisor.close_stdin().await;
}

/// Waits for the end, and brings it about when it is time. A supervisor that does not come to an end is ended from outside. What
/// may be left after that is an error: to report that nothing is left would be worse.
async fn follow<F: Future<Output = ()>>(
    supervisor: &mut SupervisorHandle,
    timeout: Duration,
    stop: &mut Stop<F>,
) -> Result<Outcome, CheckError> {
    let stopped = tokio::select! {
        record = ended(supervisor) => return by_itself(record?, stop).await,
        () = stop.wait() => true,
        () = tokio::time::sleep(timeout) => false,
    };
    // Whether that worked shows in the wait.
    let _ = supervisor.stop().await;
    let end = match tokio::time::timeout(END_PATIENCE, ended(supervisor)).await {
        Ok(end) => end,
        Err(_) => {
            supervisor.end().await?;
            ended(supervisor).await
        }
    };
    match end {
        Ok(_) | Err(ProcessError::Lost { .. }) if stopped => Err(CheckError::Stopped),
        Ok(record) => Ok(Outcome::Reported(Box::new(record))),
        Err(ProcessError::Lost { .. }) => Ok(Outcome::TimedOut),
        Err(error) => Err(error.into()),
    }
}

/// What the end of a command means that we did not bring about.
async fn by_itself<F: Future<Output = ()>>(
    record: ExitRecord,
    stop: &mut Stop<F>,
) -> Result<Outcome, CheckError> {
    match record.stopped {
        Some(StopCause::Requested) => match tokio::time::timeout(SHUTDOWN_PATIENCE, stop.wait()).await {
            Ok(()) => Err(CheckError::Stopped),
            Err(_) => Ok(Outcome::SupervisorEnded),
        },
        Some(StopCause::Deadline | StopCause::OutputClosed | StopCause::FileLimit) | None => {
            Ok(Outcome::Reported(Box::new(record)))
        }
    }
}

/// Waits until the run is over and nothing of it is left.
async fn ended(supervisor: &mut SupervisorHandle) -> Result<ExitRecord, ProcessError> {
    loop {
        if let Notice::Exited(record) = supervisor.next().await? {
            return Ok(record);
        }
    }
}

/// How long the program itself has run, by the time of its supervisor.
fn ran_for(record: &ExitRecord) -> Duration {
    Duration::from_millis(record.ended_at_ms.saturating_sub(record.started_at_ms))
}

impl Ended {
    /// How long it has run, also before it was adopted.
    pub(crate) fn took(&self) -> Duration {
        self.record().map_or(self.timeout, ran_for)
    }

    fn record(&self) -> Option<&ExitRecord> {
        match &self.outcome {
            Outcome::Reported(record) => Some(record),
            Outcome::TimedOut | Outcome::SupervisorEnded => None,
        }
    }

    /// The exit code, when it exited.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        self.record()?.code
    }

    /// The hashes of what it printed, as its supervisor reported them.
    pub(crate) fn output(&self) -> Option<OutputHashes> {
        let ExitRecord { stdout_sha256, stderr_sha256, .. } = self.record()?;
        Some(OutputHashes { stdout: stdout_sha256.clone()?, stderr: stderr_sha256.clone()? })
    }

    /// Why it did not come to its own end, if so.
    pub(crate) fn problem(&self) -> Option<String> {
        let record = match &self.outcome {
            Outcome::Reported(record) => record,
            Outcome::TimedOut => return Some(timed_out(self.timeout)),
            Outcome::SupervisorEnded => {
                return Some(format!(
                    "its supervisor was killed or stopped from outside, {MOST_TRIES} times"
                ));
            }
        };
        if let Some(error) = &record.spawn_error {
            return Some(format!("could not be started: {}", error.message));
        }
        if record.stopped == Some(StopCause::FileLimit) {
            return Some(TOO_LONG.to_owned());
        }
        // By us at the timeout, or by the supervisor's backstop: every other stop gives no `Ended`.
        if record.stopped.is_some() {
            return Some(timed_out(self.timeout));
        }
        record.signal.map(|signal| format!("killed by signal {signal}"))
    }

    /// Whether it exited by itself and with 0.
    pub(crate) fn succeeded(&self) -> bool {
        self.problem().is_none() && self.exit_code() == Some(0)
    }

    /// The end of what it printed. It decides nothing, so it is not compared with what the supervisor reported.
    pub(crate) async fn evidence(&self) -> Result<String, CheckError> {
        self.look_at_logs(evidence::of_run).await
    }

    /// The end of what it printed on its standard error.
    pub(crate) async fn stderr(&self) -> Result<String, CheckError> {
        self.look_at_logs(evidence::of_stderr).await
    }

    async fn look_at_logs(
        &self,
        look: impl FnOnce(&Path) -> std::io::Result<String> + Send + 'static,
    ) -> Result<String, CheckError> {
        let path = self.run_dir.clone();
        // Whoever made them unreadable must not decide that there is no verdict.
        blocking(move || {
            Ok(look(&path).unwrap_or_else(|error| format!("(its output cannot be read: {error})\n")))
        })
        .await
    }

    /// Reads its standard output for something that depends on it.
    pub(crate) async fn read_stdout<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut ReportedLog) -> std::io::Result<T> + Send + 'static,
    ) -> Result<Read<T>, CheckError> {
        self.read(Stream::Stdout, read).await
    }

    /// How many tests it ran, where its output has the closing lines of a test runner.
    pub(crate) async fn tests(&self) -> Result<Option<u64>, CheckError> {
        let mut counts = Counts::default();
        for stream in [Stream::Stdout, Stream::Stderr] {
            let read = move |log: &mut ReportedLog| Ok(counts.read(log)?.then_some(counts));
            match self.read(stream, read).await? {
                Read::Genuine(Some(read)) => counts = read,
                Read::Genuine(None) | Read::Altered => return Ok(None),
            }
        }
        Ok(counts.total())
    }

    async fn read<T: Send + 'static>(
        &self,
        stream: Stream,
        read: impl FnOnce(&mut ReportedLog) -> std::io::Result<T> + Send + 'static,
    ) -> Result<Read<T>, CheckError> {
        let Some(record) = self.record().cloned() else { return Ok(Read::Altered) };
        let path = self.run_dir.clone();
        let read = move || {
            let mut log = ReportedLog::open(&path, stream, &record)?;
            let found = read(&mut log)?;
            Ok(if log.is_genuine()? { Read::Genuine(found) } else { Read::Altered })
        };
        // A log that cannot be read any more was changed as well.
        blocking(move || Ok(read().unwrap_or_else(|_: std::io::Error| Read::Altered))).await
    }
}

/// The problem of a check that took too long.
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
    fn timeouts_are_reported_as_they_were_set() {
        let shown =
            [1, 45, 1800, 1830, 3600, 86_400].map(|seconds| round_duration(Duration::from_secs(seconds)));
        assert_eq!(shown, ["1s", "45s", "30m", "30m 30s", "1h", "1d"]);
        assert_eq!(round_duration(Duration::from_millis(1500)), "1.5s");
    }
}
