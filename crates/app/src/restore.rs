//! Putting the files of an in-place goal back as they were before it.

use std::path::PathBuf;

use towline_core::{Commit, Event, GoalId, WorkspaceBinding};
use towline_engine::{Home, is_at_work, workspace_of};
use towline_store::{GoalRecord, GoalSummary};
use towline_workspace::{Stop, WorkspaceError};

use crate::context::Context;
use crate::error::{Action, Error};
use crate::find;

/// Files that are as they were.
pub struct Restored {
    pub goal: GoalId,
    /// The files that were there, as a commit.
    pub replaced: Commit,
    /// The paths of those that were changed or missing.
    pub paths: Vec<String>,
    /// The paths of those that are gone, because they were not there before the goal.
    pub removed: Vec<String>,
    pub folder: PathBuf,
    /// The repository with the commit.
    pub history: PathBuf,
}

/// Puts the files at these paths back, or all of them, unless the goal is at work on them.
pub async fn restore(context: &Context, id: &str, paths: Vec<String>) -> Result<Restored, Error> {
    let found = find::goal(context, id).await?;
    let (record, home) = (&found.record, &found.state.home);
    let (goal, id) = (record.goal.id, record.goal.id.short());
    if !record.goal.workspace.mode.is_in_place() {
        return Err(Error::usage(format!(
            "goal {id} has a clone of its own: your files are as you left them"
        ))
        .hint([("see what it changed", Action::Diff(goal))]));
    }
    let Some(binding) = &record.state.workspace else {
        return Err(Error::usage(format!("goal {id} has not begun: nothing is changed")));
    };
    let at_work = || {
        Error::usage(format!("goal {id} is at work on these files"))
            .hint([("end it first", Action::Cancel(goal))])
    };
    if is_at_work(home, &GoalSummary::of(record)) {
        return Err(at_work());
    }
    let home = home.clone();
    let engine = context.engine(found.state)?;
    let mut guard = engine.hold_place(goal).await?;
    let restored =
        if guard.is_alive() { Err(at_work()) } else { put_back(&home, record, binding, paths.clone()).await };
    if let Ok(restored) = &restored
        && guard.record.state.phase.is_settled()
    {
        let (replaced, paths) = (restored.replaced.clone(), paths);
        // The files are restored even if this cannot be recorded.
        let _ = guard.note(Event::Restored { replaced, paths }).await;
    }
    guard.give_back().await;
    engine.close().await;
    restored
}

/// Works beside what keeps the goal's lease meanwhile.
async fn put_back(
    home: &Home,
    record: &GoalRecord,
    binding: &WorkspaceBinding,
    paths: Vec<String>,
) -> Result<Restored, Error> {
    let goal = record.goal.id;
    let (_, workspace) = workspace_of(home, &record.goal, binding, &Stop::default())?;
    let work = move || {
        let replaced = workspace.restore(&paths)?;
        let (paths, removed) = workspace.replaced_paths(&replaced, &paths)?;
        let (folder, history) = (workspace.path().to_path_buf(), workspace.history());
        Ok::<_, WorkspaceError>(Restored { goal, replaced, paths, removed, folder, history })
    };
    let restored = tokio::task::spawn_blocking(work).await;
    Ok(restored.map_err(|panic| Error::internal(panic.to_string()))??)
}
