//! The commands that make a fresh checkout ready: installing, generating, building what is not committed.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use towline_core::CheckResult;
use towline_process::SupervisorProgram;

use crate::command::{Command, Ended, Place, Running};
use crate::environment::Environment;
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
    let place = Place::new(dir, supervisor, environment);
    match resume_all(commands, log_dir, &place, &mut Stop::new(stop)).await? {
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
        let name = SETUP.to_owned();
        match self {
            Self::Ready => {
                let evidence = String::new();
                CheckResult { name, met: true, exit_code: Some(0), problem: None, evidence, took }
            }
            Self::Failed { command, problem, exit_code, evidence } => {
                let problem =
                    format!("the setup command `{command}` failed ({problem}), so no check was run");
                CheckResult { name, met: false, exit_code, problem: Some(problem), evidence, took }
            }
        }
    }
}

/// Runs the commands that an earlier call has not run.
async fn resume_all<F: Future<Output = ()>>(
    commands: &[String],
    log_dir: &Path,
    place: &Place<'_>,
    stop: &mut Stop<F>,
) -> Result<Setup, CheckError> {
    let left = leftovers::earlier_runs(log_dir).await?.into_iter().find_map(|dir| {
        let is_it = |(line, number): &(&String, usize)| {
            name_of(&dir) == Some(log_name(*number).as_str()) && place.runs_here(line, &dir)
        };
        let (line, number) = commands.iter().zip(1..).find(is_it)?;
        let supervisor = towline_process::supervisor_process(&dir).ok().flatten()?;
        Some((line, number, Running { run_dir: dir, supervisor }))
    });
    leftovers::clear_except(log_dir, left.as_ref().map(|(.., running)| &*running.run_dir)).await?;
    let Some((line, number, running)) = left else { return run_all(commands, log_dir, place, stop).await };
    match place.adopt(running, SETUP_TIMEOUT, None, stop).await? {
        Some(ended) if ended.succeeded() => run_from(number, commands, log_dir, place, stop).await,
        Some(ended) => failed(line, &ended, place.environment).await,
        None => {
            leftovers::clear(log_dir).await?;
            run_all(commands, log_dir, place, stop).await
        }
    }
}

/// What the directory of a command is called.
fn log_name(number: usize) -> String {
    format!("setup-{number}")
}

/// Runs the commands until one fails.
pub(crate) async fn run_all<F: Future<Output = ()>>(
    commands: &[String],
    log_dir: &Path,
    place: &Place<'_>,
    stop: &mut Stop<F>,
) -> Result<Setup, CheckError> {
    run_from(0, commands, log_dir, place, stop).await
}

/// The same without the first ones.
async fn run_from<F: Future<Output = ()>>(
    done: usize,
    commands: &[String],
    log_dir: &Path,
    place: &Place<'_>,
    stop: &mut Stop<F>,
) -> Result<Setup, CheckError> {
    for (line, number) in commands.iter().zip(1..).skip(done) {
        let logs = RunLogs::new(log_dir, log_name(number));
        let ended = place.run(Command::shell(line, logs, SETUP_TIMEOUT), stop, |_| ()).await?;
        if !ended.succeeded() {
            return failed(line, &ended, place.environment).await;
        }
    }
    Ok(Setup::Ready)
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
