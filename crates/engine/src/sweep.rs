//! Removes leftovers of goals: agents that no engine watches, and checkouts of verdicts that were never reached.
//!
//! It runs in the background at the start of every engine. The newest attempt of a goal that is not settled can be adopted,
//! and a checkout can be used until its goal has ended. Neither is touched here, nor is anything of a goal that an engine
//! drives, nor any workspace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use towline_core::{AttemptNo, GoalId, GoalState, Phase};
use towline_process::{ProcessId, connect, end_supervisor, supervisor_process};
use towline_store::{GoalRecord, StoreError};

use crate::engine::Shared;
use crate::home::{BASE, Home};
use crate::removal::remove_dead_sockets;
use crate::{baseline, checkouts, control, runs, supervisors};

/// How long a sweep may take. What it does not get to is found by the next one.
const LIMIT: Duration = Duration::from_secs(15);
/// How long the end of one agent may take, through its supervisor and then without it.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// Sweeps the state directory once. What cannot be removed stays: nothing depends on it.
pub(crate) async fn run(shared: Arc<Shared>) {
    if !shared.executors.start_processes() {
        return;
    }
    let _ = timeout(LIMIT, async {
        end_strays(&shared).await;
        end_left_checks(&shared).await;
        end_baselines(&shared).await;
        discard_checkouts(&shared).await;
    })
    .await;
}

/// A run whose supervisor is alive.
struct Living {
    goal: GoalId,
    attempt: AttemptNo,
    dir: PathBuf,
    supervisor: ProcessId,
}

async fn end_strays(shared: &Shared) {
    let home = shared.home.clone();
    // The goals are looked up after the supervisors: whatever started a supervisor was recorded before.
    for living in spawn_blocking(move || living_supervisors(&home)).await.unwrap_or_default() {
        if is_left(shared, living.goal, |record| !may_be_adopted(&record.state, living.attempt)).await {
            end(shared, &living).await;
        }
    }
}

/// Ends supervisors of goals for which nothing can be adopted: their checks and setup commands outlived an engine.
async fn end_left_checks(shared: &Shared) {
    let program = shared.supervisor.clone();
    let living = spawn_blocking(move || supervisors::all(&program).unwrap_or_default()).await;
    for (goal, supervisor) in living.unwrap_or_default() {
        if is_left(shared, goal, |record| !has_work(&record.state.phase)).await {
            end_with_tree(shared, goal, supervisor).await;
        }
    }
}

/// Whether no engine will need what was found of a goal: there is no such goal, or no engine drives it and its record shows it.
async fn is_left(shared: &Shared, goal: GoalId, shows: impl Fn(&GoalRecord) -> bool) -> bool {
    match shared.store.load(goal).await {
        Err(StoreError::NotFound(_)) => true,
        Err(_) => false,
        Ok(record) => !is_driven(shared, &record) && shows(&record),
    }
}

/// Whether something may be running for a goal in this phase.
fn has_work(phase: &Phase) -> bool {
    matches!(phase, Phase::Preparing | Phase::Checking { .. } | Phase::Stopping(_))
        || phase.living_attempt().is_some()
}

/// Checks on a base are never adopted: the next driver runs them again.
async fn end_baselines(shared: &Shared) {
    let checkouts = named_entries::<String>(&shared.home.verifications()).into_iter();
    let of_bases = checkouts.filter_map(|(name, _)| name.strip_suffix(BASE)?.parse().ok());
    for goal in of_bases {
        if is_left(shared, goal, |_| true).await {
            // What cannot be removed now stays for the next sweep.
            let _ = baseline::clear(&shared.home, goal).await;
        }
    }
}

fn living_supervisors(home: &Home) -> Vec<Living> {
    let mut found = Vec::new();
    for (goal, attempts) in directories::<GoalId>(&home.attempts()) {
        for (number, dir) in directories::<u32>(&attempts) {
            let Some(attempt) = AttemptNo::new(number) else { continue };
            let supervisor = supervisor_process(&dir).ok().flatten();
            found.extend(supervisor.map(|supervisor| Living { goal, attempt, dir, supervisor }));
        }
    }
    found
}

/// The directories in this one that have a name of this kind. Symlinks are not followed.
pub(crate) fn directories<N: std::str::FromStr>(below: &Path) -> Vec<(N, PathBuf)> {
    let mut directories = named_entries(below);
    directories.retain(|(_, path)| is_directory(path));
    directories
}

/// What is in this directory and has a name of this kind, whatever it is. Symlinks are not followed.
pub(crate) fn named_entries<N: std::str::FromStr>(below: &Path) -> Vec<(N, PathBuf)> {
    if !is_directory(below) {
        return Vec::new();
    }
    let entries = fs::read_dir(below).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))).collect()
}

/// Whether this is a directory and no symlink to one.
pub(crate) fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_dir())
}

/// Whether this engine or another living one drives the goal.
fn is_driven(shared: &Shared, record: &GoalRecord) -> bool {
    shared.driven(record.goal.id).is_some() || control::is_driven(&shared.home, record.lease.as_ref())
}

/// Whether an engine may adopt this attempt.
fn may_be_adopted(state: &GoalState, attempt: AttemptNo) -> bool {
    let newest = state.last_attempt().filter(|newest| newest.n == attempt);
    !state.phase.is_settled() && newest.is_some_and(|newest| newest.ended_at.is_none())
}

/// Ends a run and waits until nothing of it is left. A supervisor that does not do it goes with its tree.
async fn end(shared: &Shared, living: &Living) {
    let ended = async { runs::kill(&mut connect(&living.dir).await?).await };
    if !matches!(timeout(END_PATIENCE, ended).await, Ok(Ok(()))) {
        end_with_tree(shared, living.goal, living.supervisor).await;
    }
}

/// Ends a supervisor of a goal with everything below it. What cannot be ended within its time is found again by the next sweep.
async fn end_with_tree(shared: &Shared, goal: GoalId, supervisor: ProcessId) {
    let logs = shared.home.goal_logs(goal);
    let _ = spawn_blocking(move || {
        let _ = end_supervisor(supervisor, END_PATIENCE);
        remove_dead_sockets(&logs);
    })
    .await;
}

async fn discard_checkouts(shared: &Shared) {
    let home = shared.home.clone();
    let left = spawn_blocking(move || checkouts::all(&home)).await.unwrap_or_default();
    for (goal, dir) in left {
        if let Ok(record) = shared.store.load(goal).await
            && record.state.phase.has_ended()
            && let Some(settled_at) = record.state.settled_at
            && !is_driven(shared, &record)
        {
            // What cannot be removed now stays for the next sweep.
            let home = shared.home.clone();
            let _ = spawn_blocking(move || discard(&home, &dir, settled_at)).await;
        }
    }
}

/// Removes a checkout that is older than the end of its goal. A newer one belongs to somebody who opened the goal again
/// in this very moment.
fn discard(home: &Home, dir: &Path, settled_at: Timestamp) -> io::Result<()> {
    if modified(dir).is_none_or(|changed| changed > settled_at) {
        return Ok(());
    }
    home.remove(dir)
}

/// When a file or the entries of a directory were changed.
pub(crate) fn modified(path: &Path) -> Option<Timestamp> {
    let modified = fs::symlink_metadata(path).and_then(|about| about.modified()).ok()?;
    Timestamp::try_from(modified).ok()
}
