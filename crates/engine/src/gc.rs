//! Garbage collection: [`look`] finds leftovers, [`Engine::remove_waste`] removes exactly those.
//!
//! A workspace is removed only if its goal is done for good and a branch of the user has its work; raw logs and
//! conversations only if they are old and no goal can continue them. Whatever is not certain stays, with a reason.
//! Goals themselves are removed by `removal`, never here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use tokio::task::spawn_blocking;
use towline_core::{GoalId, Phase, WorkspaceMode};
use towline_store::{GoalRecord, Listing, Loaded, Store, StoreError, UnreadableGoal, load_all};
use towline_workspace::{GoalWork, Remains, Repository, Standing};

use crate::checkouts;
use crate::control::is_driven;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::home::Home;
use crate::place::repository_of;
use crate::presence::stale_files;
use crate::removal::{is_alive, remains, size_of};
use crate::sweep::{directories, is_directory, modified, named_entries};

/// Something that is no longer needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waste {
    /// What it is.
    pub kind: WasteKind,
    pub path: PathBuf,
    /// The goal that it belongs or belonged to.
    pub goal: Option<GoalId>,
    /// The goal's branch in the user's repository, which goes with its workspace.
    pub branch: Option<String>,
    /// The room it takes.
    pub bytes: u64,
}

/// The kinds of leftovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WasteKind {
    /// The workspace and the branch of a goal whose work is merged, or that has none.
    Workspace,
    /// A clean checkout that was left over.
    Checkout,
    /// The raw logs of a goal that ended long ago.
    Logs,
    /// A conversation of the built-in agent that no goal can continue.
    Session,
    /// What is left of a goal that does not exist.
    Orphan,
    /// The lock or the socket of an engine that is dead.
    EngineFile,
}

impl WasteKind {
    /// The name in JSON and on screens.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Checkout => "checkout",
            Self::Logs => "logs",
            Self::Session => "session",
            Self::Orphan => "orphan",
            Self::EngineFile => "engine",
        }
    }
}

/// Something that might be taken for waste, and stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spared {
    pub path: PathBuf,
    /// The goal that it belongs to.
    pub goal: Option<GoalId>,
    pub why: SpareReason,
}

/// Why something stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpareReason {
    /// The next verdict of a goal in this phase reuses or replaces its checkout.
    NextVerdict { phase: &'static str, bytes: u64 },
    /// A goal in this phase may continue in its workspace.
    MayContinue { phase: &'static str },
    /// The goal's work is in no branch of the user.
    Unmerged,
    /// Work in these submodules is nowhere else.
    Submodules { paths: Vec<String> },
    /// The goal's repository cannot be read.
    NoRepository { error: String },
    /// The goal cannot be read, so it is unknown which of its files are needed.
    Unreadable { error: String },
    /// A workspace with files whose goal does not exist.
    NoGoal,
    /// A repository of a removed goal: nothing else may have what is in it.
    History,
    /// Another process works on the goal.
    Busy,
    /// The goal was opened again after the look.
    Reopened,
    /// Something still runs for the goal.
    Alive,
    /// The goal went on after the look, and has ended again.
    JustEnded,
    /// Git does not know what is in the workspace.
    UnknownFiles,
    /// It could not be examined or removed.
    Failed { error: String },
}

impl SpareReason {
    fn failed(error: impl Display) -> Self {
        Self::Failed { error: error.to_string() }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// Files that are no longer needed.
    pub waste: Vec<Waste>,
    pub spared: Vec<Spared>,
    /// Goals whose logs are among it ended before this.
    pub ended_before: Timestamp,
}

/// How many workspaces there are, and how many bytes they have with Towline's own repositories of their goals.
pub fn workspaces_size(home: &Home) -> (usize, u64) {
    (named_entries::<GoalId>(&home.workspaces()).len(), size_of(&home.workspaces()))
}

/// Finds files that are no longer needed, without removing anything. Reports how many of how many goals it has looked at.
pub async fn look(
    home: &Home,
    store: &Arc<dyn Store>,
    now: Timestamp,
    older_than: Duration,
    on_progress: impl Fn(usize, usize) + Send + 'static,
) -> Result<Findings, StoreError> {
    let home = home.clone();
    let limit = now.checked_sub(older_than).unwrap_or(Timestamp::MIN);
    // Directories before goals: whatever made one was recorded before.
    let found = blocking({
        let home = home.clone();
        move || Directories::of(&home)
    })
    .await;
    let Loaded { records, unreadable } = load_all(store.as_ref(), Listing::all()).await?;
    Ok(blocking(move || {
        let mut findings = Findings { ended_before: limit, ..Findings::default() };
        let stale = stale_files(&home.engines()).unwrap_or_default().into_iter();
        findings.waste.extend(stale.map(|path| waste(WasteKind::EngineFile, path, None)));
        let standings = standings(&home, &records);
        for (place, record) in records.iter().enumerate() {
            on_progress(place, records.len());
            let standing = standings.get(&record.goal.id).copied().unwrap_or(Standing::Unclear);
            look_at_goal(&home, record, standing, limit, &mut findings);
        }
        on_progress(records.len(), records.len());
        let ids = records.iter().flat_map(|record| [record.goal.id, record.goal.place()]);
        let known = ids.chain(unreadable.iter().map(|goal| goal.id)).collect();
        orphans(&home, &found, &known, &mut findings);
        histories(&found, &known, &mut findings);
        // Any of the conversations may be one of theirs.
        if unreadable.is_empty() {
            sessions(&found, &records, limit, &mut findings);
        }
        findings.spared.extend(unreadable.into_iter().map(|UnreadableGoal { id, why: error, .. }| {
            let why = SpareReason::Unreadable { error };
            Spared { path: home.workspace(id), goal: Some(id), why }
        }));
        findings
    })
    .await)
}

async fn blocking<T: Default + Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    // A look that dies has found nothing.
    spawn_blocking(work).await.unwrap_or_default()
}

/// What is on disk.
#[derive(Default)]
struct Directories {
    logs: Vec<(GoalId, PathBuf)>,
    checkouts: Vec<(GoalId, PathBuf)>,
    workspaces: Vec<(GoalId, PathBuf)>,
    /// Towline's own repositories of goals.
    histories: Vec<(GoalId, PathBuf)>,
    sessions: Vec<PathBuf>,
    /// The homes of what runs in a sandbox.
    homes: Vec<(GoalId, PathBuf)>,
}

impl Directories {
    fn of(home: &Home) -> Self {
        let sessions = named_entries::<String>(&home.sessions()).into_iter().map(|(_, path)| path);
        let histories = directories::<String>(&home.workspaces()).into_iter();
        let histories =
            histories.filter_map(|(name, path)| Some((name.strip_suffix(".git")?.parse().ok()?, path)));
        let homes = named_entries::<String>(&home.homes()).into_iter().filter_map(|(name, path)| {
            let goal = name.split('.').next()?.parse().ok()?;
            Some((goal, path))
        });
        Self {
            logs: named_entries(&home.attempts()),
            checkouts: checkouts::all(home),
            workspaces: named_entries(&home.workspaces()),
            histories: histories.collect(),
            homes: homes.collect(),
            sessions: sessions.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect(),
        }
    }
}

fn waste(kind: WasteKind, path: PathBuf, goal: Option<GoalId>) -> Waste {
    let bytes = size_of(&path);
    Waste { kind, path, goal, branch: None, bytes }
}

/// Whether the work of goals is merged, for goals whose workspaces may be removed. A repository that does not answer is
/// unclear.
fn standings(home: &Home, records: &[GoalRecord]) -> BTreeMap<GoalId, Standing> {
    let mut works: BTreeMap<&str, Vec<(GoalId, GoalWork)>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.goal.workspace.mode == WorkspaceMode::Clone) {
        let Remains { base, candidate, branch, path, .. } = remains(home, record);
        if let Some(candidate) =
            candidate.filter(|_| record.state.phase == Phase::Done && is_directory(&path))
        {
            let goals = works.entry(&record.goal.workspace.repository).or_default();
            goals.push((record.goal.id, GoalWork { base, candidate, branch }));
        }
    }
    let mut standings = BTreeMap::new();
    for (folder, goals) in works {
        let (ids, goals): (Vec<GoalId>, Vec<GoalWork>) = goals.into_iter().unzip();
        let found = Repository::at(Path::new(folder)).and_then(|repository| repository.standings(&goals));
        standings.extend(ids.into_iter().zip(found.unwrap_or_default()));
    }
    standings
}

/// Whether something at or below a path was changed after this time. What cannot be read counts as changed.
fn is_changed_since(path: &Path, at: Timestamp) -> bool {
    let Ok(about) = fs::symlink_metadata(path) else { return true };
    let nanoseconds = i32::try_from(about.ctime_nsec()).unwrap_or(0);
    if Timestamp::new(about.ctime(), nanoseconds).map_or(true, |changed| changed > at) {
        return true;
    }
    let entries = || fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    about.is_dir()
        && entries().map_or(true, |all| all.iter().any(|entry| is_changed_since(&entry.path(), at)))
}

fn look_at_goal(
    home: &Home,
    record: &GoalRecord,
    standing: Standing,
    limit: Timestamp,
    findings: &mut Findings,
) {
    let goal = record.goal.id;
    if is_driven(home, record.lease.as_ref()) || is_alive(home, goal) {
        return;
    }
    let checkouts = checkouts::of_goal(home, goal).into_iter();
    let checkouts = checkouts.filter(|checkout| fs::symlink_metadata(checkout).is_ok());
    let Some(settled_at) = record.state.settled_at.filter(|_| record.state.phase.has_ended()) else {
        // The next verdict of a goal that has not ended uses what the last one left, or replaces it.
        let phase = record.state.phase.name();
        findings.spared.extend(checkouts.map(|path| {
            let why = SpareReason::NextVerdict { phase, bytes: size_of(&path) };
            Spared { path, goal: Some(goal), why }
        }));
        return;
    };
    findings.waste.extend(checkouts.map(|checkout| waste(WasteKind::Checkout, checkout, Some(goal))));
    let workspace = home.workspace_of(&record.goal, &record.state);
    if fs::symlink_metadata(&workspace).is_ok() {
        match first_reason_to_spare(home, record, standing, settled_at) {
            None => {
                let branch = record.state.branch.clone();
                findings.waste.push(Waste { branch, ..waste(WasteKind::Workspace, workspace, Some(goal)) });
            }
            Some(why) => findings.spared.push(Spared { path: workspace, goal: Some(goal), why }),
        }
    }
    let logs = home.goal_logs(goal);
    if settled_at < limit && size_of(&logs) > 0 {
        findings.waste.push(waste(WasteKind::Logs, logs, Some(goal)));
    }
}

/// Why the workspace of an ended goal stays, as far as the list of all goals shows. Before the removal, the goal is
/// examined by itself.
fn first_reason_to_spare(
    home: &Home,
    record: &GoalRecord,
    standing: Standing,
    settled_at: Timestamp,
) -> Option<SpareReason> {
    let workspace = home.workspace_of(&record.goal, &record.state);
    let has_submodules = || workspace.join(".gitmodules").exists();
    match standing {
        Standing::Unmerged => Some(SpareReason::Unmerged),
        Standing::Merged if !has_submodules() && !is_changed_since(&workspace, settled_at) => None,
        Standing::Merged | Standing::Unclear => reason_to_spare(home, record),
    }
}

/// Why the workspace of an ended goal stays, if it does.
fn reason_to_spare(home: &Home, record: &GoalRecord) -> Option<SpareReason> {
    if record.state.phase != Phase::Done {
        return Some(SpareReason::MayContinue { phase: record.state.phase.name() });
    }
    let repository = match repository_of(home, &record.goal) {
        Ok(repository) => repository,
        Err(error) => return Some(SpareReason::NoRepository { error: error.to_string() }),
    };
    let remains = remains(home, record);
    let work = repository.unmerged(&remains);
    match work.and_then(|work| Ok((work, repository.work_in_submodules(&remains)?))) {
        Ok((work, submodules)) if work.is_empty() && submodules.is_empty() => None,
        Ok((_, paths)) if !paths.is_empty() => Some(SpareReason::Submodules { paths }),
        Ok(_) => Some(SpareReason::Unmerged),
        Err(error) => Some(SpareReason::failed(error)),
    }
}

fn orphans(home: &Home, found: &Directories, known: &BTreeSet<GoalId>, findings: &mut Findings) {
    for (goal, path) in found.logs.iter().chain(&found.checkouts).chain(&found.homes) {
        if !known.contains(goal) && !is_alive(home, *goal) {
            findings.waste.push(waste(WasteKind::Orphan, path.clone(), Some(*goal)));
        }
    }
    for (goal, path) in found.workspaces.iter().filter(|(goal, _)| !known.contains(goal)) {
        let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        if !is_directory(path) || is_empty() {
            findings.waste.push(waste(WasteKind::Orphan, path.clone(), Some(*goal)));
        } else {
            let why = SpareReason::NoGoal;
            findings.spared.push(Spared { path: path.clone(), goal: Some(*goal), why });
        }
    }
}

/// Repositories of goals that do not exist any more. A removal leaves one where nothing else has what is in it (a folder
/// without git, a workspace that was left), or when it was killed before its last step.
fn histories(found: &Directories, known: &BTreeSet<GoalId>, findings: &mut Findings) {
    for (goal, path) in found.histories.iter().filter(|(goal, _)| !known.contains(goal)) {
        let why = SpareReason::History;
        findings.spared.push(Spared { path: path.clone(), goal: Some(*goal), why });
    }
}

/// Conversations that are old, not open, and that no goal can continue. Conversations of editors with the built-in agent
/// are in the same folder.
fn sessions(found: &Directories, records: &[GoalRecord], limit: Timestamp, findings: &mut Findings) {
    let may_go_on = records.iter().filter(|record| record.state.phase != Phase::Done);
    let bound: BTreeSet<String> = may_go_on
        .flat_map(|record| {
            let now = record.state.session.as_ref().map(|session| &session.native_id);
            now.into_iter().chain(record.state.attempts.iter().filter_map(|attempt| attempt.session.as_ref()))
        })
        .map(ToString::to_string)
        .collect();
    for path in &found.sessions {
        let is_bound = path.file_stem().and_then(|id| id.to_str()).is_none_or(|id| bound.contains(id));
        if !is_bound && modified(path).is_some_and(|changed| changed < limit) && !is_open(path) {
            findings.waste.push(waste(WasteKind::Session, path.clone(), None));
        }
    }
}

fn is_open(path: &Path) -> bool {
    towline_files::open(path).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
}

impl Engine {
    /// Removes what a look has found, as far as it still is what it was. Gives back what is gone; what could not be
    /// removed is among what stays, with the reason.
    pub async fn remove_waste(&self, findings: Findings) -> Findings {
        let Findings { waste, spared, ended_before } = findings;
        let mut done = Findings { waste: Vec::new(), spared, ended_before };
        for waste in waste {
            let (path, goal) = (waste.path.clone(), waste.goal);
            let outcome = match (waste.kind, goal) {
                (WasteKind::Workspace | WasteKind::Checkout | WasteKind::Logs, Some(goal)) => {
                    self.clear_of_goal(goal, waste.kind, ended_before).await
                }
                _ => self.clear_orphan(path.clone()).await,
            };
            match outcome {
                Ok(()) => done.waste.push(waste),
                Err(why) => done.spared.push(Spared { path, goal, why }),
            }
        }
        done
    }

    /// Removes leftovers that belong to no goal.
    async fn clear_orphan(&self, path: PathBuf) -> Result<(), SpareReason> {
        let home = self.shared().home.clone();
        let removed = spawn_blocking(move || home.remove(&path).map_err(SpareReason::failed));
        removed.await.unwrap_or_else(|panic| Err(SpareReason::failed(panic)))
    }

    /// Removes leftovers of a goal that this process holds.
    async fn clear_of_goal(
        &self,
        goal: GoalId,
        kind: WasteKind,
        ended_before: Timestamp,
    ) -> Result<(), SpareReason> {
        let guard = match self.hold(goal).await {
            Ok(guard) => guard,
            Err(EngineError::Busy { .. }) => return Err(SpareReason::Busy),
            Err(EngineError::Store(StoreError::NotFound(_))) => return Ok(()),
            Err(error) => return Err(SpareReason::failed(error)),
        };
        let (home, record) = (guard.home().clone(), guard.record.clone());
        let cleared = spawn_blocking(move || clear(&home, &record, kind, ended_before)).await;
        guard.give_back().await;
        cleared.unwrap_or_else(|panic| Err(SpareReason::failed(panic)))
    }
}

fn clear(
    home: &Home,
    record: &GoalRecord,
    kind: WasteKind,
    ended_before: Timestamp,
) -> Result<(), SpareReason> {
    let goal = record.goal.id;
    let Some(settled_at) = record.state.settled_at.filter(|_| record.state.phase.has_ended()) else {
        return Err(SpareReason::Reopened);
    };
    if is_alive(home, goal) {
        return Err(SpareReason::Alive);
    }
    match kind {
        WasteKind::Logs if settled_at >= ended_before => return Err(SpareReason::JustEnded),
        WasteKind::Logs => return home.remove(&home.goal_logs(goal)).map_err(SpareReason::failed),
        WasteKind::Checkout => return checkouts::remove(home, goal).map_err(SpareReason::failed),
        _ => {}
    }
    if let Some(why) = reason_to_spare(home, record) {
        return Err(why);
    }
    let remains = remains(home, record);
    let left = repository_of(home, &record.goal).and_then(|repository| {
        repository.keep_protected(&remains)?;
        repository.remove_workspace(&remains)
    });
    match left.map_err(SpareReason::failed)?.files {
        Some(_) => Err(SpareReason::UnknownFiles),
        // Conversations of agents are found by the workspace.
        None => {
            let homes = home.homes_of(&record.goal, &record.state);
            homes.iter().try_for_each(|path| home.remove(path)).map_err(SpareReason::failed)
        }
    }
}
