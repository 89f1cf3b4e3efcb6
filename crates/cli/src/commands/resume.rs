//! `towline resume`: continues a paused goal in its session.

use std::path::Path;
use std::process::ExitCode;

use towline_core::{Phase, StopWhy, Stopping};
use towline_engine::Wish;
use towline_store::{GoalSummary, Listed, Listing, list_all};

use crate::args::Resume;
use crate::commands::retry::take_up;
use crate::context::Context;
use crate::failure::Failure;
use crate::{find, output};

/// Resumes the goal and drives it in the foreground.
pub(crate) async fn run(context: &Context, args: Resume) -> Result<ExitCode, Failure> {
    let id = match args.id {
        Some(id) => id,
        None => only_paused(context).await?,
    };
    let found = find::goal(context, &id).await?;
    take_up(context, found, Wish::Resume, Vec::new(), args.format).await
}

/// The only paused goal of the repository that this process is in.
async fn only_paused(context: &Context) -> Result<String, Failure> {
    let listing = Listing { phases: vec!["paused", "stopping"], ..Listing::all() };
    let listed = match context.existing_state()? {
        Some(state) => list_all(state.store.as_ref(), listing).await?,
        None => Vec::new(),
    };
    let paused: Vec<GoalSummary> = listed
        .into_iter()
        .filter_map(Listed::readable)
        .filter(|goal| is_paused(goal) && is_here(context, goal))
        .collect();
    match &paused[..] {
        [] => {
            Err(Failure::not_found("no goal of this repository is paused")
                .hint("`towline ls` lists all goals"))
        }
        [goal] => Ok(goal.id.to_string()),
        several => {
            let line = |goal: &GoalSummary| format!("{}  {}", goal.id.short(), output::brief(&goal.title));
            let lines: Vec<String> = several.iter().map(line).collect();
            Err(Failure::usage(format!("several goals are paused:\n  {}", lines.join("\n  ")))
                .hint("name one: towline resume ID"))
        }
    }
}

/// Whether the goal is paused, or was about to be when its engine was killed.
fn is_paused(goal: &GoalSummary) -> bool {
    matches!(goal.phase, Phase::Paused { .. } | Phase::Stopping(Stopping { why: StopWhy::Pause { .. }, .. }))
}

fn is_here(context: &Context, goal: &GoalSummary) -> bool {
    context.directory.starts_with(Path::new(&goal.repository))
}
