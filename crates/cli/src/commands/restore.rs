//! `towline restore`: the files of an in-place goal as they were before it.

use std::path::PathBuf;
use std::process::ExitCode;

use towline_core::{Commit, Event, WorkspaceBinding};
use towline_engine::{Home, is_at_work, workspace_of};
use towline_store::{GoalRecord, GoalSummary};
use towline_workspace::{Stop, WorkspaceError};

use crate::context::Context;
use crate::failure::Failure;
use crate::{find, output};

/// Put files back.
#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    /// The goal's id, or a prefix of it
    pub(crate) id: String,
    /// Only these files or directories, by their path from the top of the goal's directory
    pub(crate) paths: Vec<String>,
}

/// Puts the files back, unless somebody is at work on them.
pub(crate) async fn run(context: &Context, args: Restore) -> Result<ExitCode, Failure> {
    let found = find::goal(context, &args.id).await?;
    let (record, home) = (&found.record, &found.state.home);
    let id = record.goal.id.short();
    if !record.goal.workspace.mode.is_in_place() {
        return Err(Failure::usage(format!(
            "goal {id} has a clone of its own: your files are as you left them"
        ))
        .hint(format!("see what it changed: towline diff {id}")));
    }
    let Some(binding) = &record.state.workspace else {
        return Err(Failure::usage(format!("goal {id} has not begun: nothing is changed")));
    };
    let at_work = || {
        Failure::usage(format!("goal {id} is at work on these files"))
            .hint(format!("end it first: towline cancel {id}"))
    };
    if is_at_work(home, &GoalSummary::of(record)) {
        return Err(at_work());
    }
    let home = home.clone();
    let engine = context.engine(found.state)?;
    let mut custody = engine.hold_place(record.goal.id).await?;
    let named = args.paths.join(", ");
    let restored =
        if custody.is_alive() { Err(at_work()) } else { put_back(&home, record, binding, args.paths).await };
    if let Ok(restored) = &restored
        && custody.record.state.phase.is_settled()
    {
        let text =
            format!("the files were put back; what was there is kept as {}", restored.replaced.short());
        // The files are back all the same when nobody can write that down.
        let _ = custody.note(Event::Notice { text }).await;
    }
    custody.give_back().await;
    engine.close().await;
    let Restored { replaced, folder, history } = restored?;
    let folder = folder.display();
    let what = if named.is_empty() { folder.to_string() } else { format!("{named} in {folder}") };
    output::print(format_args!("restored {what} to the state before goal {id}"));
    output::print(format_args!(
        "  what was there is kept as commit {} in {}",
        replaced.short(),
        history.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Files that are as they were.
struct Restored {
    /// What was there.
    replaced: Commit,
    folder: PathBuf,
    history: PathBuf,
}

/// Puts the files back beside what keeps the goal in our hands meanwhile.
async fn put_back(
    home: &Home,
    record: &GoalRecord,
    binding: &WorkspaceBinding,
    paths: Vec<String>,
) -> Result<Restored, Failure> {
    let (_, workspace) = workspace_of(home, &record.goal, binding, &Stop::default())?;
    let work = move || {
        let replaced = workspace.restore(&paths)?;
        Ok(Restored { replaced, folder: workspace.path().to_path_buf(), history: workspace.history() })
    };
    let restored: Result<Restored, WorkspaceError> =
        tokio::task::spawn_blocking(work).await.map_err(|panic| Failure::internal(panic.to_string()))?;
    Ok(restored?)
}
