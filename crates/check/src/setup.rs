//! The commands that make a fresh checkout ready: installing, generating, building what is not committed.

use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use towline_core::CheckResult;
use towline_process::{Priority, SupervisorProgram};

use crate::command::{Command, Ended, Place, Running};
use crate::environment::{Environment, Purpose};
use crate::finding::Finding;
use crate::run_logs::{RunLogs, name_of};
use crate::stop::Stop;
use crate::{CheckError, leftovers};

/// How long one setup command may take.
const SETUP_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The name under which a verdict reports a setup that failed.
pub(crate) const SETUP: &str = "setup";

/// Runs the setup commands in a workspace, one after the other; the first that fails is the error. Each has its
/// logs in a directory of `log_dir`. A command that an earlier, interrupted call left running there is adopted, and those before it
/// are not repeated; everything else that it left is ended and removed.
///
/// When `stop` comes to its end, the command's tree is ended and [`CheckError::Stopped`] returned.
pub async fn setup(
    commands: &[String],
    dir: &Path,
    log_dir: &Path,
    supervisor: &SupervisorProgram,
    environment: &Environment,
    stop: impl Future<Output = ()>,
) -> Result<(), CheckError> {
    let place = Place { directory: dir, supervisor, environment, priority: Priority::Normal };
    let commands = Commands { lines: commands, log_dir, place: &place };
    match commands.resume_all(&mut Stop::new(stop)).await? {
        Setup::Ready => Ok(()),
        Setup::Failed { command, problem, evidence, .. } => {
            Err(CheckError::Setup { command, problem, evidence })
        }
    }
}

/// How a setup went.
pub(crate) enum Setup {
    /// All commands succeeded.
    Ready,
    /// One did not, and those after it did not run.
    Failed { command: String, problem: String, exit_code: Option<i32>, evidence: String },
}

impl Setup {
    /// The same as a check's result, for those who follow the verdict. A failure is for the agent to hear of: its
    /// work may be what broke the setup.
    pub(crate) fn into_result(self, took: Duration) -> CheckResult {
        let finding = match self {
            Self::Ready => Finding::met().with_exit_code(Some(0)),
            Self::Failed { command, problem, exit_code, evidence } => {
                let problem =
                    format!("the setup command `{command}` failed ({problem}), so no check was run");
                Finding::not_met(problem).with_exit_code(exit_code).with_evidence(evidence)
            }
        };
        finding.into_result(SETUP, took)
    }
}

/// The setup commands, and where they run.
#[derive(Clone, Copy)]
pub(crate) struct Commands<'a> {
    pub(crate) lines: &'a [String],
    /// Where their logs go.
    pub(crate) log_dir: &'a Path,
    pub(crate) place: &'a Place<'a>,
}

impl Commands<'_> {
    /// Runs the commands that an earlier call has not run.
    async fn resume_all<F: Future<Output = ()>>(self, stop: &mut Stop<F>) -> Result<Setup, CheckError> {
        let left = leftovers::earlier_runs(self.log_dir).await?.into_iter().find_map(|dir| {
            let is_it = |(line, number): &(&String, usize)| {
                name_of(&dir) == Some(log_name(*number).as_str())
                    && self.place.runs_here(Purpose::Setup, line, &dir)
            };
            let (_, number) = self.lines.iter().zip(1..).find(is_it)?;
            let supervisor = towline_process::supervisor_process(&dir).ok().flatten()?;
            Some((number, Running { run_dir: dir, supervisor }))
        });
        leftovers::clear_except(self.log_dir, left.as_ref().map(|(_, running)| &*running.run_dir)).await?;
        if let Some((number, running)) = left {
            if let Some((setup, _)) = self.adopt(number, running, None, stop, |_| ()).await? {
                return Ok(setup);
            }
            leftovers::clear(self.log_dir).await?;
        }
        self.run_after(0, stop, |_| ()).await
    }

    /// Follows the command of this number to its end, and runs those after it. Gives how that went and how long it took. None if
    /// the supervisor is gone, or goes before it has reported how the command ended.
    pub(crate) async fn adopt<F: Future<Output = ()>>(
        self,
        number: usize,
        running: Running,
        started_at_ms: Option<u64>,
        stop: &mut Stop<F>,
        on_start: impl FnMut(Running),
    ) -> Result<Option<(Setup, Duration)>, CheckError> {
        let Some(ended) = self.place.adopt(running, SETUP_TIMEOUT, started_at_ms, stop).await? else {
            return Ok(None);
        };
        let started = Instant::now();
        let setup = match self.lines.get(number - 1) {
            Some(line) if !ended.succeeded() => failed(line, &ended, self.place.environment).await?,
            _ => self.run_after(number, stop, on_start).await?,
        };
        Ok(Some((setup, ended.took() + started.elapsed())))
    }

    /// Runs the commands after the first `done` until one fails, and reports each that was started.
    pub(crate) async fn run_after<F: Future<Output = ()>>(
        self,
        done: usize,
        stop: &mut Stop<F>,
        mut on_start: impl FnMut(Running),
    ) -> Result<Setup, CheckError> {
        for (line, number) in self.lines.iter().zip(1..).skip(done) {
            let logs = RunLogs::new(self.log_dir, log_name(number));
            let command = Command::shell(Purpose::Setup, line, logs, SETUP_TIMEOUT);
            let ended = self.place.run(command, stop, &mut on_start).await?;
            if !ended.succeeded() {
                return failed(line, &ended, self.place.environment).await;
            }
        }
        Ok(Setup::Ready)
    }
}

/// What the directories of a command's runs begin with.
pub(crate) fn log_name(number: usize) -> String {
    format!("{SETUP}-{number}")
}

async fn failed(line: &str, ended: &Ended, environment: &Environment) -> Result<Setup, CheckError> {
    let exit_code = ended.exit_code();
    let by_code = || exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
    Ok(Setup::Failed {
        command: line.to_owned(),
        problem: ended.problem().unwrap_or_else(by_code),
        exit_code,
        evidence: environment.explain(ended.evidence().await?),
    })
}
