//! Makes a goal's workspace and runs the setup in it.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;
use towline_check::CheckError;
use towline_core::{Event, Goal, WorkspaceBinding};
use towline_workspace::{Repository, WorkspaceError, WorkspacePlan};

use crate::engine::Shared;
use crate::news::{Newsline, StopLevel};

/// Makes the workspace; made before, it is found again. Reports that it is ready, that it failed, or that it was
/// stopped.
pub(crate) async fn run(shared: Arc<Shared>, goal: Goal, line: Newsline, stop: watch::Receiver<StopLevel>) {
    let event = match prepare(&shared, &goal, stop).await {
        Ok((workspace, warnings)) => Event::Prepared { workspace, warnings },
        Err(Problem::Stopped) => Event::Stopped,
        Err(Problem::Failed(error)) => Event::PrepareFailed { error },
    };
    // A driver that is gone needs no news.
    let _ = line.tell_own(event).await;
}

enum Problem {
    Stopped,
    Failed(String),
}

impl From<WorkspaceError> for Problem {
    fn from(error: WorkspaceError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<CheckError> for Problem {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Stopped => Self::Stopped,
            error => Self::Failed(error.to_string()),
        }
    }
}

async fn prepare(
    shared: &Shared,
    goal: &Goal,
    stop: watch::Receiver<StopLevel>,
) -> Result<(WorkspaceBinding, Vec<String>), Problem> {
    let plan = WorkspacePlan {
        goal: goal.id.to_string(),
        branch: branch_name(goal),
        path: shared.home.workspace(goal.id),
        base: goal.workspace.base.clone(),
        copy: goal.workspace.copy.clone(),
    };
    let repository = goal.workspace.repository.clone();
    let made = tokio::task::spawn_blocking(move || {
        let repository = Repository::discover(Path::new(&repository))?;
        towline_workspace::create(&repository, &plan)
    });
    let workspace = made.await.map_err(|panic| Problem::Failed(panic.to_string()))??;
    let logs = shared.home.setup_logs(goal.id);
    let commands = &goal.workspace.setup;
    let stopped = stopped(stop);
    towline_check::setup(commands, workspace.path(), &logs, &shared.shim, &shared.environment, stopped)
        .await?;
    let binding = WorkspaceBinding {
        path: workspace.path().display().to_string(),
        branch: workspace.branch().to_owned(),
        base: goal.workspace.base.clone(),
    };
    Ok((binding, workspace.warnings().to_vec()))
}

/// Comes to its end when the work is to stop.
pub(crate) async fn stopped(mut stop: watch::Receiver<StopLevel>) {
    // A driver that is gone stops nothing: what runs is taken up by the next one.
    if stop.wait_for(|level| *level > StopLevel::Run).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// `towline/1a2b3c4d-fix-the-flaky-test`: unique by the id, recognisable by the title.
fn branch_name(goal: &Goal) -> String {
    let words: Vec<String> = goal
        .title
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let mut slug = String::new();
    for word in words {
        if slug.len() + word.len() > 40 {
            break;
        }
        slug.push('-');
        slug.push_str(&word);
    }
    format!("towline/{}{slug}", goal.id.short())
}
