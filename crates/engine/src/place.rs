//! Where a goal's work happens: the repository that holds it, and who else is at work in the same directory.
//!
//! Each clone has one goal. Goals that work in place may share the user's directory, so only one of them may be at work
//! there: the one whose lease a living engine holds, or whose agent still runs.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;
use towline_core::{AttemptNo, GitSettings, Goal, GoalId, WorkspaceBinding, WorkspaceMode};
use towline_process::supervisor_process;
use towline_store::{GoalSummary, Listed, Listing, Store, list_all};
use towline_workspace::{Repository, Stop, Workspace, WorkspaceError};

use crate::control::is_driven;
use crate::error::EngineError;
use crate::home::Home;

/// For how long, and with what pause, the lock is tried. No process holds it for longer than a moment.
pub(crate) const LOCK_PATIENCE: Duration = Duration::from_secs(10);
const ADDING_PATIENCE: Duration = Duration::from_secs(60);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Towline's own repository of a goal, which holds its base and candidates. Made where it is missing.
pub fn repository_of(home: &Home, goal: &Goal) -> Result<Repository, WorkspaceError> {
    let folder = Path::new(&goal.workspace.repository);
    let own = home.history(goal.id);
    match goal.workspace.mode {
        WorkspaceMode::Clone | WorkspaceMode::InPlace => {
            match (Repository::at(folder), &goal.workspace.git) {
                // An agent in place may have deleted the user's `.git`. Everything that is judged or restored is in ours.
                (
                    Err(WorkspaceError::RepositoryGone { .. } | WorkspaceError::NotARepository { .. }),
                    Some(settings),
                ) if goal.workspace.mode.is_in_place() && own.is_dir() => {
                    Repository::open_own(folder, &own, settings)
                }
                (users, _) => {
                    let users = users?;
                    users.own(&own, &goal.workspace.base, &settings_of(&users, goal)?)
                }
            }
        }
        WorkspaceMode::InFolder => {
            let settings = match &goal.workspace.git {
                Some(settings) => settings.clone(),
                None => Repository::folder_settings(folder)?,
            };
            Repository::open_own(folder, &own, &settings)
        }
    }
}

/// How git reads and writes files for a goal: as it was frozen, or as it is now for goals of earlier versions.
pub(crate) fn settings_of(users: &Repository, goal: &Goal) -> Result<GitSettings, WorkspaceError> {
    match &goal.workspace.git {
        Some(settings) => Ok(settings.clone()),
        None => users.git_settings(&goal.workspace.base),
    }
}

/// The directory that a goal's agent works in, once it is prepared. `stop` ends work with git in it.
pub fn workspace_of(
    home: &Home,
    goal: &Goal,
    binding: &WorkspaceBinding,
    stop: &Stop,
) -> Result<(Repository, Workspace), WorkspaceError> {
    let repository = repository_of(home, goal)?;
    let id = goal.id.to_string();
    let own = repository.until(stop);
    let workspace = match &binding.branch {
        Some(branch) => Workspace::open(&own, &id, &home.bound_workspace(binding), branch, &binding.base)?,
        None => Workspace::in_place(&own, &id, &binding.base)?,
    };
    Ok((repository, workspace))
}

/// The lock for beginning work in place. Its holder checks that no other goal is there and claims the lease of its own
/// goal, and no other process does the same meanwhile.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _lock: File,
}

impl DirectoryLock {
    /// Waits for it, for a bounded time. The system gives it back when its holder dies.
    pub(crate) async fn take(home: &Home) -> Result<Self, EngineError> {
        Ok(Self { _lock: lock_for_a_moment(home.in_place_lock(), LOCK_PATIENCE).await? })
    }
}

/// The lock for adding goals of files. Its holder looks which of them were added before, and no other process adds any meanwhile.
#[derive(Debug)]
pub struct AddingLock {
    _lock: File,
}

impl AddingLock {
    /// Waits for it, for a bounded time: a thousand goals take a while.
    pub async fn take(home: &Home) -> Result<Self, EngineError> {
        Ok(Self { _lock: lock_for_a_moment(home.adding_lock(), ADDING_PATIENCE).await? })
    }
}

/// Locks a file that no process holds for longer than a moment.
pub(crate) async fn lock_for_a_moment(path: PathBuf, patience: Duration) -> Result<File, EngineError> {
    let failed = |source: io::Error| EngineError::Home { action: "lock", path: path.clone(), source };
    let file = towline_files::append(&path).map_err(failed)?;
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
            Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    let holder = towline_files::lock_holder(&file).map_or(String::new(), |pid| format!(" (pid {pid})"));
    Err(failed(io::Error::new(
        io::ErrorKind::TimedOut,
        format!("another process{holder} has held it for too long; end that process and try again"),
    )))
}

/// Fails when another goal is at work in this directory, above it or below it.
pub async fn must_be_alone(
    home: &Home,
    store: &dyn Store,
    goal: GoalId,
    here: &Path,
) -> Result<(), EngineError> {
    // A goal is held while a command works on it, also when it has ended.
    let unsettled = Listing { settled: Some(false), ..Listing::all() };
    let held = Listing { held: true, ..Listing::all() };
    for listing in [held, unsettled] {
        for other in others_near(store, listing, goal, here).await? {
            if is_at_work(home, &other) {
                return Err(EngineError::PlaceTaken { folder: other.repository, goal: other.id });
            }
        }
    }
    Ok(())
}

/// Fails when another goal has begun in this directory, above it or below it, and waits for its next attempt: what it left there is
/// not finished.
pub(crate) async fn place_must_be_free(store: &dyn Store, goal: &Goal) -> Result<(), EngineError> {
    let unsettled = Listing { settled: Some(false), ..Listing::all() };
    let others = others_near(store, unsettled, goal.id, Path::new(&goal.workspace.repository)).await?;
    match others.into_iter().find(|other| other.attempts > 0) {
        Some(other) => Err(EngineError::PlaceTaken { folder: other.repository, goal: other.id }),
        None => Ok(()),
    }
}

/// Other goals of a listing that work in place in this directory, above it or below it.
async fn others_near(
    store: &dyn Store,
    listing: Listing,
    goal: GoalId,
    here: &Path,
) -> Result<Vec<GoalSummary>, EngineError> {
    let others = list_all(store, listing).await?.into_iter().filter_map(Listed::readable);
    let near = others.filter(|other| {
        let there = Path::new(&other.repository);
        other.id != goal && other.in_place && (here.starts_with(there) || there.starts_with(here))
    });
    Ok(near.collect())
}

/// Whether an engine drives the goal, or its agent still runs without one.
pub fn is_at_work(home: &Home, goal: &GoalSummary) -> bool {
    if is_driven(home, goal.lease.as_ref()) {
        return true;
    }
    let last_attempt = u32::try_from(goal.attempts).ok().and_then(AttemptNo::new);
    last_attempt.is_some_and(|attempt| {
        supervisor_process(&home.attempt(goal.id, attempt)).is_ok_and(|supervisor| supervisor.is_some())
    })
}
