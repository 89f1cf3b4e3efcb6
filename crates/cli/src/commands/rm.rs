//! `towline rm`: removes goals with everything that belongs to them, and never their work.

use std::collections::BTreeSet;
use std::process::ExitCode;

use serde::Serialize;
use towline_core::GoalId;
use towline_engine::{Engine, EngineError, RemovalError, Removed, UnmergedWork};
use towline_store::{GoalRecord, StoreError};
use towline_workspace::{Unmerged, WorkKind};

use crate::context::{Context, State};
use crate::failure::Failure;
use crate::{
    find,
    output::{self, Layout},
};

/// Remove goals.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Work that none of your branches, remote branches or tags has keeps a goal from being removed. With --force it is kept \
under refs/towline/removed/ in the repository, and its commit is printed: `git branch NAME COMMIT` brings it back.")]
pub(crate) struct Rm {
    /// The goals' ids, or prefixes of them
    #[arg(required = true)]
    ids: Vec<String>,
    /// Remove goals with unmerged work, too, and goals that cannot be read
    #[arg(short, long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What became of one goal, as JSON.
#[derive(Serialize)]
struct RmReport {
    id: String,
    removed: bool,
    error: Option<String>,
    kept: Vec<KeptReport>,
    left: Option<String>,
    bytes: u64,
}

#[derive(Serialize)]
struct KeptReport {
    reference: Option<String>,
    commit: String,
}

/// Removes the goals one by one; those that cannot be removed do not keep the others.
pub(crate) async fn run(context: &Context, args: Rm) -> Result<ExitCode, Failure> {
    let mut records: Vec<GoalRecord> = Vec::new();
    let mut state = None;
    // All of them are looked up before the first is removed: a typing error removes nothing.
    let mut unreadable = BTreeSet::new();
    for id in &args.ids {
        let (found, goal) = find::goal_id(context, id).await?;
        if args.force && is_unreadable(&found, goal).await {
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
    let Some(state) = state else { return Ok(ExitCode::SUCCESS) };
    let engine = context.engine(state)?;
    let unmerged = if args.force { UnmergedWork::Keep } else { UnmergedWork::Refuse };
    let several = records.len() + unreadable.len() > 1 || args.json;
    let mut reports = Vec::new();
    let mut failures = Vec::new();
    for record in &records {
        let removed = remove(&engine, record.goal.id, unmerged).await;
        reports.push(report(record.goal.id, &removed));
        match removed {
            Ok(removed) if !args.json => tell(record, &removed),
            Ok(_) => {}
            Err(error) => failures.push(explained(record.goal.id, error)),
        }
    }
    for goal in unreadable {
        let removed = engine.discard(goal).await.map(|()| Removed::default());
        reports.push(report(goal, &removed));
        match removed {
            Ok(_) if !args.json => tell_discarded(goal),
            Ok(_) => {}
            Err(error) => failures.push(explained(goal, error)),
        }
    }
    engine.close().await;
    if args.json {
        output::tell_json(Layout::Pretty, &reports);
    }
    if several {
        failures.iter().for_each(|failure| output::say(format_args!("{failure}")));
    }
    match failures.pop() {
        None => Ok(ExitCode::SUCCESS),
        Some(failure) if several => Ok(failure.exit_code()),
        Some(failure) => Err(failure),
    }
}

async fn is_unreadable(state: &State, goal: GoalId) -> bool {
    matches!(state.store.load(goal).await, Err(StoreError::Unreadable { .. }))
}

fn tell_discarded(goal: GoalId) {
    let id = goal.short();
    output::tell(format_args!(
        "removed goal {id}, which could not be read; its files stay: towline gc lists them"
    ));
}

async fn remove(engine: &Engine, goal: GoalId, unmerged: UnmergedWork) -> Result<Removed, RemovalError> {
    engine.hold(goal).await?.remove(unmerged).await
}

fn tell(record: &GoalRecord, removed: &Removed) {
    let id = record.goal.id.short();
    output::tell(format_args!("removed goal {id} ({} freed)", output::bytes(removed.bytes)));
    for kept in &removed.kept {
        output::tell(format_args!(
            "  what only this goal had is kept as {}: git -C {} branch NAME {}",
            kept.reference,
            record.goal.workspace.repository,
            kept.commit.short()
        ));
    }
    if let Some(files) = &removed.left.files {
        if !removed.left.submodules.is_empty() {
            let submodules = removed.left.submodules.join(", ");
            output::tell(format_args!("  work in its submodules is nowhere else: {submodules}"));
        }
        output::tell(format_args!(
            "  left alone, because nobody can tell what you need of it: {}",
            files.display()
        ));
    }
    if let Some(checkout) = &removed.left.branch_in {
        output::tell(format_args!("  its branch stays, because it is checked out in {}", checkout.display()));
    }
}

fn report(goal: GoalId, removed: &Result<Removed, RemovalError>) -> RmReport {
    let id = goal.to_string();
    match removed {
        Ok(Removed { kept, left, bytes }) => RmReport {
            id,
            removed: true,
            error: None,
            kept: kept
                .iter()
                .map(|kept| KeptReport {
                    reference: Some(kept.reference.clone()),
                    commit: kept.commit.to_string(),
                })
                .collect(),
            left: left.files.as_ref().map(|files| files.display().to_string()),
            bytes: *bytes,
        },
        Err(error) => {
            let work = match error {
                RemovalError::Unmerged { work } => work.as_slice(),
                _ => &[],
            };
            let commits =
                work.iter().map(|work| KeptReport { reference: None, commit: work.commit.to_string() });
            RmReport {
                id,
                removed: false,
                error: Some(error.to_string()),
                kept: commits.collect(),
                left: None,
                bytes: 0,
            }
        }
    }
}

fn explained(goal: GoalId, error: RemovalError) -> Failure {
    let id = goal.short();
    let message = format!("goal {id} was not removed: {error}");
    match error {
        RemovalError::Engine(error @ EngineError::Store(_)) => error.into(),
        RemovalError::Engine(EngineError::Busy { .. }) | RemovalError::Alive { .. } => {
            Failure::usage(format!("goal {id} was not removed: something works on it"))
                .hint(format!("end it first: towline cancel {id}"))
        }
        RemovalError::Unmerged { work } => {
            let work: Vec<String> = work.iter().map(described).collect();
            Failure::person(format!("{message}: {}", work.join("; "))).hint(format!(
                "take it (towline merge {id}), look at it (towline diff {id}), or remove the goal and keep the work under \
                 a private ref: towline rm --force {id}"
            ))
        }
        RemovalError::Submodules { workspace, .. } => Failure::person(message).hint(format!(
            "commit and push it in {}, or remove the goal and leave the workspace there: towline rm --force {id}",
            workspace.display()
        )),
        RemovalError::NoRepository { .. } => Failure::person(message).hint(format!(
            "put the repository back, or give the goal up and leave its files where they are: towline rm --force {id}"
        )),
        RemovalError::Files { .. } => Failure::internal(message),
        RemovalError::Workspace(error) => error.into(),
        RemovalError::Engine(error) => error.into(),
    }
}

fn described(work: &Unmerged) -> String {
    let Unmerged { kind, commit } = work;
    match kind {
        WorkKind::Files => format!("files in its workspace (as commit {})", commit.short()),
        WorkKind::Branch => format!("commits on its branch (up to {})", commit.short()),
        WorkKind::Candidate => format!("the candidate {}", commit.short()),
    }
}
