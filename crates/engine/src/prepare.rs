//! Makes a goal's workspace and runs the setup in it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use towline_check::CheckError;
use towline_core::{Event, Goal, LaunchProblem, WorkspaceBinding};
use towline_workspace::{Protect, Repository, Stop, Workspace, WorkspaceError, WorkspacePlan};

use crate::confinement::{Homes, keep_caches};
use crate::engine::Shared;
use crate::home::Home;
use crate::news::{EventSender, StopLevel};
use crate::place::{repository_of, settings_of};
use crate::resolver::Resolved;

/// How long git may take to look at what an attempt left, once the goal is to stop. SIGTERM has eight seconds in all.
const LAST_LOOK: Duration = Duration::from_millis(1_500);

/// What is to be prepared.
pub(crate) struct PrepareJob {
    pub(crate) goal: Goal,
    pub(crate) resolved: Arc<Resolved>,
}

/// Makes the workspace; made before, it is found again. Reports that it is ready, that it failed, or that it was
/// stopped.
pub(crate) async fn run(
    shared: Arc<Shared>,
    job: PrepareJob,
    sender: EventSender,
    stop: watch::Receiver<StopLevel>,
) {
    let event = match prepare(&shared, &job, stop).await {
        Ok(prepared) => prepared,
        Err(CheckError::Stopped) => Event::Stopped,
        Err(CheckError::Workspace(WorkspaceError::RepositoryGone { path })) => {
            Event::RepositoryGone { path: path.display().to_string() }
        }
        Err(error) => Event::PrepareFailed { error: error.to_string() },
    };
    // A driver that is gone needs no news.
    let _ = sender.send_own(event).await;
}

async fn prepare(
    shared: &Shared,
    job: &PrepareJob,
    stop: watch::Receiver<StopLevel>,
) -> Result<Event, CheckError> {
    let goal = &job.goal;
    let (home, of) = (shared.home.clone(), goal.clone());
    let made = try_stoppable(stopped(stop.clone()), move |halt| {
        let workspace = make(&home, &of, halt)?;
        let repository = repository_of(&home, &of)?.until(halt);
        let base = repository.as_candidate(&of.workspace.base)?;
        Ok((repository, base, workspace))
    });
    let (repository, base, workspace) = made.await?;
    // The user's own directory is as ready as they want it to be.
    let setup_changes = if goal.workspace.mode.is_in_place() {
        changes_in_a_checkout(shared, job, &repository, &stop).await?
    } else {
        set_up(shared, job, (&repository, Homes::Agents), workspace.path(), &stop).await?;
        changes_in(goal, workspace.clone(), stop).await?
    };
    let binding = WorkspaceBinding {
        path: workspace.path().display().to_string(),
        branch: workspace.branch().map(str::to_owned),
        base: goal.workspace.base.clone(),
        setup_changes,
        base_tree: Some(base.tree),
    };
    Ok(Event::Prepared { workspace: binding, warnings: workspace.warnings().to_vec() })
}

/// Makes the workspace, or opens the one that is there. One of an earlier version becomes a private clone.
pub(crate) fn make(home: &Home, goal: &Goal, stop: &Stop) -> Result<Workspace, WorkspaceError> {
    if goal.workspace.mode.is_in_place() {
        let repository = repository_of(home, goal)?.until(stop);
        return Workspace::in_place(&repository, &goal.id.to_string(), &goal.workspace.base);
    }
    let users = Repository::at(Path::new(&goal.workspace.repository))?.until(stop);
    let plan = WorkspacePlan {
        goal: goal.id.to_string(),
        branch: branch_name(goal),
        path: home.workspace(goal.place()),
        own: home.history(goal.id),
        base: goal.workspace.base.clone(),
        copy: goal.workspace.copy.clone(),
        settings: settings_of(&users, goal)?,
    };
    towline_workspace::create(&users, &plan)
}

/// Makes the workspace ready for another attempt: one of an earlier version becomes a private clone, and what the clone has lost
/// with the user's repository is given back or forgotten.
pub(crate) async fn refresh(
    home: &Home,
    goal: &Goal,
    stop: watch::Receiver<StopLevel>,
) -> Result<(), LaunchProblem> {
    let repository = &goal.workspace.repository;
    if goal.workspace.mode.is_in_place() {
        let is_there = Path::new(repository).is_dir();
        return if is_there { Ok(()) } else { Err(LaunchProblem::NoRepository { path: repository.clone() }) };
    }
    let other = |message: String| LaunchProblem::Other { message };
    let (home, goal) = (home.clone(), goal.clone());
    let workspace = home.workspace(goal.place());
    if !workspace.exists() {
        return Err(other(format!("its workspace {} is gone; start a new goal", workspace.display())));
    }
    let refreshed = stoppable(stopped(stop), move |halt| make(&home, &goal, halt)?.repair_clone());
    refreshed.await.map_err(|panic| other(panic.to_string()))?.map_err(|error| match error {
        WorkspaceError::RepositoryGone { path } => {
            LaunchProblem::NoRepository { path: path.display().to_string() }
        }
        error => other(error.to_string()),
    })
}

async fn set_up(
    shared: &Shared,
    job: &PrepareJob,
    (repository, homes): (&Repository, Homes),
    directory: &Path,
    stop: &watch::Receiver<StopLevel>,
) -> Result<(), CheckError> {
    let goal = &job.goal;
    if goal.workspace.setup.is_empty() {
        return Ok(());
    }
    let (commands, logs) = (&goal.workspace.setup, shared.home.setup_logs(goal.id));
    let confiner = shared.confiner(goal, &job.resolved, Some(repository));
    // What an agent has written to is no cache for others.
    let is_new = !confiner.place(homes).exists();
    let environment = shared.check_environment((goal, &job.resolved), repository, homes, directory)?;
    let supervisor = shared.supervisor_of(goal.id);
    towline_check::setup(commands, directory, &logs, &supervisor, &environment, stopped(stop.clone()))
        .await?;
    if is_new { keep_caches(&confiner, homes).map_err(CheckError::Private) } else { Ok(()) }
}

/// What setup changes before any work, by path.
type SetupChanges = BTreeMap<String, Option<String>>;

/// What setup changes in a clean checkout of the base, for a goal in whose workspace it does not run.
async fn changes_in_a_checkout(
    shared: &Shared,
    job: &PrepareJob,
    repository: &Repository,
    stop: &watch::Receiver<StopLevel>,
) -> Result<SetupChanges, CheckError> {
    let goal = &job.goal;
    if goal.workspace.setup.is_empty() {
        return Ok(BTreeMap::new());
    }
    // One that an engine left that was killed must not run beside it.
    towline_check::end_runs(&shared.home.setup_logs(goal.id)).await?;
    let (path, of, own) = (shared.home.verification(goal.id), goal.workspace.clone(), repository.clone());
    let checkout = try_stoppable(stopped(stop.clone()), move |halt| {
        towline_workspace::verification(&own.until(halt), &path, &of.base, &of.copy)
    });
    let checkout = checkout.await?;
    let ready = set_up(shared, job, (repository, Homes::Checks), checkout.path(), stop).await;
    let protect = Protect::of_goal(goal)?;
    let found = try_stoppable(std::future::pending(), move |_| {
        let found = checkout.setup_changes(&protect);
        // The next checkout takes its place anyway.
        let _ = checkout.remove();
        found
    });
    let found = found.await;
    match ready {
        Ok(()) => found,
        // The work may be what makes it succeed. Until then no verdict gets as far as a comparison.
        Err(CheckError::Setup { .. }) => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    }
}

/// What setup has changed in the workspace.
async fn changes_in(
    goal: &Goal,
    workspace: Workspace,
    stop: watch::Receiver<StopLevel>,
) -> Result<SetupChanges, CheckError> {
    if goal.workspace.setup.is_empty() {
        return Ok(BTreeMap::new());
    }
    let protect = Protect::of_goal(goal)?;
    try_stoppable(stopped(stop), move |halt| workspace.until(halt).setup_changes(&protect)).await
}

/// Runs work with git on a thread that may block. When `stop` comes to its end, git does too.
pub(crate) async fn stoppable<T: Send + 'static>(
    stop: impl Future<Output = ()>,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    let halt = Stop::default();
    let of_git = halt.clone();
    let mut work = tokio::task::spawn_blocking(move || work(&of_git));
    tokio::select! {
        done = &mut work => return done,
        () = stop => halt.stop(),
    }
    work.await
}

/// The same for work on the way to a verdict.
pub(crate) async fn try_stoppable<T: Send + 'static>(
    stop: impl Future<Output = ()>,
    work: impl FnOnce(&Stop) -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, CheckError> {
    match stoppable(stop, work).await {
        Ok(done) => Ok(done?),
        Err(panic) => Err(CheckError::Lost { message: panic.to_string() }),
    }
}

/// Comes to its end when the work is to stop.
pub(crate) async fn stopped(mut stop: watch::Receiver<StopLevel>) {
    // A driver that is gone stops nothing: the next one adopts what runs.
    if stop.wait_for(|level| *level > StopLevel::Run).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Comes to its end some time after the work is to stop: what an attempt left is looked at even then, unless that takes long.
pub(crate) async fn stopped_for_a_while(stop: watch::Receiver<StopLevel>) {
    stopped(stop).await;
    tokio::time::sleep(LAST_LOOK).await;
}

/// `towline/1a2b3c4d-fix-the-flaky-test`: unique by the id, recognisable by the title.
pub(crate) fn branch_name(goal: &Goal) -> String {
    let words = goal.title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words {
        if slug.len() + word.len() > 40 {
            break;
        }
        slug.push('-');
        slug.push_str(&word.to_ascii_lowercase());
    }
    format!("towline/{}{slug}", goal.id.short())
}
