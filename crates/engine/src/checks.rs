//! Makes the candidate of an attempt's work and runs the checks on it.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use towline_check::{CheckError, CheckRun, Progress};
use towline_core::{AttemptNo, Event, Goal, Verdict, WorkspaceBinding};
use towline_workspace::{Candidate, Protect, Repository, Workspace, WorkspaceError};

use crate::engine::Shared;
use crate::news::{Newsline, StopLevel};
use crate::prepare::stopped;

/// Runs the checks and reports the verdict, that they could not be run, or that they were stopped.
pub(crate) async fn run(
    shared: Arc<Shared>,
    goal: Goal,
    workspace: Option<WorkspaceBinding>,
    attempt: AttemptNo,
    line: Newsline,
    stop: watch::Receiver<StopLevel>,
) {
    // Cannot grow: two entries for each check of the goal.
    let (progress, mut reported) = mpsc::unbounded_channel();
    let verdict = async {
        let verdict = verdict(&shared, &goal, workspace, attempt, stop, progress).await;
        match verdict {
            Ok(verdict) => Event::VerdictReached { verdict },
            Err(CheckError::Stopped) => Event::Stopped,
            Err(error) => Event::ChecksFailed { error: error.to_string() },
        }
    };
    let relay = async {
        while let Some(progress) = reported.recv().await {
            let event = match progress {
                Progress::Started { name } => Event::CheckStarted { name },
                Progress::Finished { result } => Event::CheckFinished { result },
            };
            // A driver that is gone needs no news; the verdict below finds out as well.
            let _ = line.tell_own(event).await;
        }
    };
    let (event, ()) = tokio::join!(verdict, relay);
    let _ = line.tell_own(event).await;
}

async fn verdict(
    shared: &Shared,
    goal: &Goal,
    workspace: Option<WorkspaceBinding>,
    attempt: AttemptNo,
    stop: watch::Receiver<StopLevel>,
    progress: mpsc::UnboundedSender<Progress>,
) -> Result<Verdict, CheckError> {
    let workspace = workspace.ok_or(CheckError::NoWorkspace)?;
    let (repository, candidate) = candidate(goal.clone(), workspace, attempt).await?;
    let run = CheckRun {
        goal,
        candidate: &candidate,
        repository: &repository,
        verify_dir: &shared.home.verification(goal.id),
        log_dir: &shared.home.attempt(goal.id, attempt).join("checks"),
        shim: &shared.shim,
        environment: &shared.environment,
    };
    towline_check::run(run, stopped(stop), move |report| {
        // The receiver lives as long as this call.
        let _ = progress.send(report);
    })
    .await
}

async fn candidate(
    goal: Goal,
    binding: WorkspaceBinding,
    attempt: AttemptNo,
) -> Result<(Repository, Candidate), CheckError> {
    let made = tokio::task::spawn_blocking(move || -> Result<_, WorkspaceError> {
        let repository = Repository::discover(Path::new(&goal.workspace.repository))?;
        let workspace = Workspace::open(
            &repository,
            &goal.id.to_string(),
            Path::new(&binding.path),
            &binding.branch,
            &binding.base,
        )?;
        let protect = Protect::new(&goal.protect)?;
        let candidate = workspace.candidate(attempt.get(), &protect)?;
        Ok((repository, candidate))
    });
    match made.await {
        Ok(result) => Ok(result?),
        Err(panic) => Err(CheckError::Lost { message: panic.to_string() }),
    }
}
