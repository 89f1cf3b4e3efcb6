//! Removing a goal with everything that belongs to it, and never its work.
//!
//! The order makes every crash harmless: work that is in no branch of the user's gets a name first, then the workspace,
//! the branch and the refs go, then the logs, then the goal's rows, and Towline's own repository of the goal last. As long as
//! the goal is stored, a second removal completes an interrupted first one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;
use towline_core::{Goal, GoalId, WorkspaceBinding, WorkspaceMode};
use towline_process::{remove_dead_socket, supervisor_process};
use towline_store::GoalRecord;
use towline_workspace::{LeftBehind, PreservedWork, Protect, Remains, Repository, Unmerged, WorkspaceError};

use crate::checkouts;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::home::Home;
use crate::lease_guard::LeaseGuard;
use crate::place::repository_of;
use crate::prepare::branch_name;
use crate::sweep::{directories, is_directory};

/// How deep below a goal's directory a supervisor can be: an attempt, its checks, one of them.
const DEEPEST_RUN: usize = 3;

/// What to do about work that is in no branch of the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnmergedWork {
    /// The goal stays.
    Refuse,
    /// Remove the goal and preserve its work under a ref of Towline. Work that git cannot hold is left where it is.
    Keep,
}

/// A goal that was removed.
#[derive(Debug, Default)]
pub struct Removed {
    /// Work that no branch of the user has, under refs of Towline.
    pub preserved: Vec<PreservedWork>,
    /// Why work that no branch of the user has is under no ref: git cannot hold it. Its files are left then.
    pub not_preserved: Option<String>,
    /// What of it could not be taken away.
    pub left: LeftBehind,
    /// The room that its files took.
    pub bytes: u64,
}

/// Why a goal was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemovalError {
    /// Something of it runs.
    #[error("something still runs for it (supervised in {}); end it first", dir.display())]
    Alive {
        /// The supervisor's directory.
        dir: PathBuf,
    },
    /// It can still go on, and nobody has agreed to give it up.
    #[error("it is {phase} and has not ended")]
    Unfinished {
        /// The phase's name.
        phase: &'static str,
    },
    /// Its work is in no branch of the user.
    #[error("it has work that is in none of your branches")]
    Unmerged { work: Vec<Unmerged> },
    /// Work inside its submodules, which no commit of the repository can hold, would be lost.
    #[error("submodules of its workspace have work that nobody else has: {}", submodules.join(", "))]
    Submodules {
        /// Where the submodules are.
        workspace: PathBuf,
        /// Their paths in it.
        submodules: Vec<String>,
    },
    /// It is unknown whether it has unmerged work.
    #[error(
        "its repository cannot be read or is another one, so it is unknown whether its work is merged: {source}"
    )]
    NoRepository { source: WorkspaceError },
    /// The state directory.
    #[error("cannot remove {}: {source}", path.display())]
    Files {
        /// What was to be removed.
        path: PathBuf,
        source: io::Error,
    },
    /// Git or the disk.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The store or the lease.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Engine {
    /// Removes the rows of a goal that cannot be read. Its files stay, because they may have unmerged work.
    pub async fn discard(&self, goal: GoalId) -> Result<(), RemovalError> {
        let shared = self.shared();
        if let Some(dir) = living_run(&shared.home.goal_logs(goal), DEEPEST_RUN) {
            return Err(RemovalError::Alive { dir });
        }
        let lease = self.shared().claim_unread(goal).await?;
        shared.store.remove(&lease).await.map_err(EngineError::from)?;
        Ok(())
    }
}

impl LeaseGuard {
    /// Removes the goal for good. What runs for it, and work that is not merged, keep it from being removed.
    pub async fn remove(self, unmerged: UnmergedWork) -> Result<Removed, RemovalError> {
        if !self.is_alive()
            && let Err(error) = self.end_leftovers().await
        {
            self.give_back().await;
            return Err(error.into());
        }
        let (record, home) = (self.record.clone(), self.home().clone());
        let homes = home.homes_of(&record.goal, &record.state);
        let cleared = spawn_blocking(move || clear(&home, &record, unmerged)).await;
        let lost = |_| EngineError::DriverLost { goal: self.record.goal.id };
        let removed = match cleared.map_err(lost)? {
            Ok(removed) => removed,
            Err(error) => {
                self.give_back().await;
                return Err(error);
            }
        };
        let (home, goal) = (self.home().clone(), self.record.goal.id);
        self.forget().await?;
        // Last of all: as long as the goal is stored, an interrupted removal needs its repository to continue.
        if removed.left.files.is_none() {
            let own = homes.into_iter().chain([home.history(goal)]).collect::<Vec<_>>();
            let gone = spawn_blocking(move || own.into_iter().try_for_each(|own| remove(&home, own))).await;
            gone.map_err(|_| EngineError::DriverLost { goal })??;
        }
        Ok(removed)
    }
}

/// Takes away everything but what is stored about the goal.
fn clear(home: &Home, record: &GoalRecord, unmerged: UnmergedWork) -> Result<Removed, RemovalError> {
    let goal = record.goal.id;
    if let Some(dir) = living_run(&home.goal_logs(goal), DEEPEST_RUN) {
        return Err(RemovalError::Alive { dir });
    }
    let mut removed = Removed::default();
    let workspace = home.workspace_of(&record.goal, &record.state);
    let places = [home.goal_logs(goal), workspace.clone(), home.history(goal)];
    let (checkouts, homes) = (checkouts::of_goal(home, goal), home.homes_of(&record.goal, &record.state));
    let bytes: u64 = places.iter().chain(&checkouts).chain(&homes).map(|place| size_of(place)).sum();
    let remains = remains(home, record);
    let repository = repository_of(home, &record.goal).and_then(|repository| {
        repository.must_hold(&remains.base, remains.candidate.as_ref())?;
        Ok(repository)
    });
    match (repository, unmerged) {
        (Err(source), UnmergedWork::Refuse) if record.state.workspace.is_some() => {
            return Err(RemovalError::NoRepository { source });
        }
        (repository, _) if record.goal.workspace.mode.is_in_place() => {
            removed = leave_in_place(home, record, repository.ok().as_ref())?;
        }
        (Ok(repository), _) => match keep_work(&repository, &remains, unmerged) {
            Ok(preserved) => {
                removed.preserved = preserved;
                removed.left = repository.remove_workspace(&remains)?;
                remove_checkouts(home, goal)?;
                repository.remove_refs(&remains.goal)?;
            }
            Err(RemovalError::Workspace(why)) if unmerged == UnmergedWork::Keep && is_lasting(&why) => {
                removed.not_preserved = Some(why.to_string());
                // Where there is no workspace, the repository of the goal alone has the work.
                let places = [workspace, home.history(goal)];
                removed.left.files = places.into_iter().find(|place| is_directory(place));
                remove_checkouts(home, goal)?;
            }
            Err(error) => return Err(error),
        },
        (Err(_), _) => {
            // It may have unmerged work, so it stays.
            removed.left.files = Some(workspace).filter(|workspace| size_of(workspace) > 0);
            remove_checkouts(home, goal)?;
        }
    }
    remove(home, home.goal_logs(goal))?;
    let left: u64 = removed.left.files.iter().map(|files| size_of(files)).sum();
    removed.bytes = bytes.saturating_sub(left);
    Ok(removed)
}

/// Gives work that is not merged a name of ours; fails where it is to be refused.
fn keep_work(
    repository: &Repository,
    remains: &Remains,
    unmerged: UnmergedWork,
) -> Result<Vec<PreservedWork>, RemovalError> {
    let work = repository.unmerged(remains)?;
    let submodules = repository.work_in_submodules(remains)?;
    if !submodules.is_empty() && unmerged == UnmergedWork::Refuse {
        return Err(RemovalError::Submodules { workspace: remains.path.clone(), submodules });
    }
    if !work.is_empty() && unmerged == UnmergedWork::Refuse {
        return Err(RemovalError::Unmerged { work });
    }
    let mut preserved = repository.keep_unmerged(&remains.goal, &work)?;
    preserved.extend(repository.keep_protected(remains)?);
    Ok(preserved)
}

/// Whether it may fail the next time as well, because git refuses what an agent left there, or it cannot be read.
fn is_lasting(error: &WorkspaceError) -> bool {
    use WorkspaceError::{Git, Io, LargeFileMissing};
    matches!(error, Git { .. } | Io { .. } | LargeFileMissing { .. })
}

fn remove(home: &Home, path: PathBuf) -> Result<(), RemovalError> {
    home.remove(&path).map_err(|source| RemovalError::Files { path, source })
}

fn remove_checkouts(home: &Home, goal: GoalId) -> Result<(), RemovalError> {
    checkouts::of_goal(home, goal).into_iter().try_for_each(|path| remove(home, path))
}

/// Leaves a directory of the user as it is. Files that only the goal still has are preserved.
fn leave_in_place(
    home: &Home,
    record: &GoalRecord,
    repository: Option<&Repository>,
) -> Result<Removed, RemovalError> {
    let Goal { id, workspace, .. } = &record.goal;
    let mut removed = Removed::default();
    remove_checkouts(home, *id)?;
    if let Some(repository) = repository.filter(|_| workspace.mode == WorkspaceMode::InPlace) {
        let candidate = record.state.candidate.as_ref();
        removed.preserved = repository.keep_from_place(&id.to_string(), &workspace.base, candidate)?;
        repository.remove_refs(&id.to_string())?;
        return Ok(removed);
    }
    removed.left.files = Some(home.history(*id)).filter(|history| history.exists());
    Ok(removed)
}

/// Where the parts of a goal are, also of one whose workspace was made and never got ready.
pub(crate) fn remains(home: &Home, record: &GoalRecord) -> Remains {
    let Goal { id, workspace, .. } = &record.goal;
    let path = home.workspace_of(&record.goal, &record.state);
    let never_ready = || WorkspaceBinding {
        path: path.display().to_string(),
        branch: Some(branch_name(&record.goal)),
        base: workspace.base.clone(),
        setup_changes: BTreeMap::new(),
        base_tree: None,
    };
    let binding = record.state.workspace.clone().unwrap_or_else(never_ready);
    Remains {
        goal: id.to_string(),
        // Not from what is stored: what is removed is always our own.
        path: path.clone(),
        branch: binding.branch.unwrap_or_else(|| branch_name(&record.goal)),
        base: binding.base,
        candidate: record.state.candidate.clone(),
        // A goal whose patterns cannot be read has no candidate.
        protect: Protect::of_candidate(&record.goal).unwrap_or_else(|_| Protect::nothing()),
    }
}

/// Whether something of a goal runs under a supervisor.
pub(crate) fn is_alive(home: &Home, goal: GoalId) -> bool {
    living_run(&home.goal_logs(goal), DEEPEST_RUN).is_some()
}

/// The directory of a supervisor that runs, somewhere below this one.
fn living_run(dir: &Path, depth: usize) -> Option<PathBuf> {
    if !is_directory(dir) {
        return None;
    }
    if supervisor_process(dir).ok().flatten().is_some_and(|supervisor| supervisor.is_running()) {
        return Some(dir.to_path_buf());
    }
    if depth == 0 {
        return None;
    }
    directories::<String>(dir).into_iter().find_map(|(_, below)| living_run(&below, depth - 1))
}

/// Removes the sockets that killed supervisors left in the directories of a goal's runs.
pub(crate) fn remove_dead_sockets(goal_logs: &Path) {
    let mut level = vec![goal_logs.to_path_buf()];
    for _ in 0..DEEPEST_RUN {
        level = level.iter().flat_map(|dir| directories::<String>(dir)).map(|(_, below)| below).collect();
        level.iter().for_each(|dir| remove_dead_socket(dir));
    }
}

/// How many bytes the files at and below a path have; what cannot be read counts as nothing.
pub(crate) fn size_of(path: &Path) -> u64 {
    let Ok(about) = fs::symlink_metadata(path) else { return 0 };
    if !about.is_dir() {
        return about.len();
    }
    let entries: io::Result<Vec<fs::DirEntry>> = fs::read_dir(path).and_then(Iterator::collect);
    entries.unwrap_or_default().iter().map(|entry| size_of(&entry.path())).sum()
}
