//! Removing goals with everything that belongs to them, and never their work.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use towline_api::{PreservedReport, RmReport};
use towline_core::{Commit, GoalId};
use towline_engine::{
    Engine, Home, RemovalError, Removed, Request, UnmergedWork, ask_engine, is_driven, running_server,
};
use towline_store::{GoalRecord, Listing, Store, StoreError};

use crate::context::{Context, State};
use crate::error::Error;
use crate::find;

/// One goal that was to be removed.
pub struct Removal {
    pub goal: GoalId,
    /// The goal as it was; none if it could not be read.
    pub record: Option<GoalRecord>,
    /// Removed files, and work that was not.
    pub removed: Result<Removed, RemovalError>,
}

impl Removal {
    /// As programs read it.
    pub fn report(&self) -> RmReport {
        let preserved = |reference: Option<String>, commit: &Commit| PreservedReport {
            reference,
            commit: commit.to_string(),
        };
        let (preserved, removed) = match &self.removed {
            Ok(removed) => {
                let work = removed.preserved.iter();
                (
                    work.map(|work| preserved(Some(work.reference.clone()), &work.commit)).collect(),
                    Some(removed),
                )
            }
            Err(RemovalError::Unmerged { work }) => {
                (work.iter().map(|work| preserved(None, &work.commit)).collect(), None)
            }
            Err(_) => (Vec::new(), None),
        };
        let left = removed.and_then(|removed| removed.left.files.as_ref());
        RmReport {
            id: self.goal.to_string(),
            removed: removed.is_some(),
            error: self.removed.as_ref().err().map(ToString::to_string),
            preserved,
            left: left.map(|files| files.display().to_string()),
            bytes: removed.map_or(0, |removed| removed.bytes),
        }
    }
}

/// Removes goals one by one and shows each; one that cannot be removed does not keep the others. One that has not ended is removed if
/// `agrees` does. With `force`, there is no question, unmerged work is stored under a private ref, and goals that cannot be read are removed, too.
pub async fn remove(
    context: &Context,
    ids: &[String],
    force: bool,
    mut agrees: impl FnMut(&GoalRecord) -> bool,
    mut show: impl FnMut(&Removal),
) -> Result<Vec<Removal>, Error> {
    let mut records: Vec<GoalRecord> = Vec::new();
    let mut state = None;
    // All of them are looked up before the first is removed: a typing error removes nothing.
    let mut unreadable = BTreeSet::new();
    for id in ids {
        let (found, goal) = find::goal_id(context, id).await?;
        if force && is_unreadable(&found, goal).await {
            unreadable.insert(goal);
            state = Some(found);
            continue;
        }
        let found = find::load(context, found, goal).await?;
        if records.iter().all(|known| known.goal.id != found.record.goal.id) {
            records.push(found.record);
        }
        state = Some(found.state);
    }
    let Some(state) = state else { return Ok(Vec::new()) };
    let (home, store) = (state.home.clone(), Arc::clone(&state.store));
    let engine = context.engine(state)?;
    let unmerged = if force { UnmergedWork::Keep } else { UnmergedWork::Refuse };
    let mut removals = Vec::new();
    for record in records {
        let goal = record.goal.id;
        let is_given_up = force || is_agreed(&home, &record, &mut agrees);
        let removed = remove_one(&engine, goal, unmerged, is_given_up).await;
        if removed.as_ref().is_ok_and(|removed| removed.preserved.is_empty() && removed.left.files.is_none())
        {
            remove_sample(&home, store.as_ref(), &record.goal.workspace.repository).await;
        }
        if removed.is_ok() {
            report_to_server(&home, goal).await;
        }
        removals.push(Removal { goal, record: Some(record), removed });
        removals.last().into_iter().for_each(&mut show);
    }
    for goal in unreadable {
        let removed = engine.discard(goal).await.map(|()| Removed::default());
        if removed.is_ok() {
            report_to_server(&home, goal).await;
        }
        removals.push(Removal { goal, record: None, removed });
        removals.last().into_iter().for_each(&mut show);
    }
    engine.close().await;
    Ok(removals)
}

async fn is_unreadable(state: &State, goal: GoalId) -> bool {
    matches!(state.store.load(goal).await, Err(StoreError::Unreadable { .. }))
}

/// Reports the removal to the server, which shows it to those who look at its goals.
async fn report_to_server(home: &Home, goal: GoalId) {
    if let Some(server) = running_server(home) {
        // Without this, they see it when they open the goal or come back.
        let _ = ask_engine(home, &server.worker, &Request::Removed { goal }).await;
    }
}

/// Whether a person gives up a goal that could go on. What an engine runs is refused anyway, without a question.
fn is_agreed(home: &Home, record: &GoalRecord, agrees: &mut impl FnMut(&GoalRecord) -> bool) -> bool {
    !record.state.phase.has_ended() && !is_driven(home, record.lease.as_ref()) && agrees(record)
}

async fn remove_one(
    engine: &Engine,
    goal: GoalId,
    unmerged: UnmergedWork,
    is_given_up: bool,
) -> Result<Removed, RemovalError> {
    let held = engine.hold(goal).await?;
    let phase = &held.record.state.phase;
    if !is_given_up && !phase.has_ended() {
        let phase = phase.name();
        held.give_back().await;
        return Err(RemovalError::Unfinished { phase });
    }
    held.remove(unmerged).await
}

/// Removes the sample project of a demo with the last goal in it.
async fn remove_sample(home: &Home, store: &dyn Store, repository: &str) {
    let samples = home.samples();
    let Some(folder) = Path::new(repository).parent().filter(|folder| folder.parent() == Some(&samples))
    else {
        return;
    };
    let listing = Listing { repository: Some(repository.to_owned()), limit: 1, ..Listing::all() };
    if store.list(&listing).await.is_ok_and(|goals| goals.is_empty()) {
        // A sample that cannot be removed only uses space.
        let _ = home.remove(folder);
    }
}
