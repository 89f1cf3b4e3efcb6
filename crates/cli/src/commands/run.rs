//! `towline run`: one goal in the foreground.

use std::process::ExitCode;

use towline_core::Seq;
use towline_engine::{Clock, SystemClock};

use crate::args::Run;
use crate::commands::foreground::Foreground;
use crate::context::{Context, open_store};
use crate::draft::{agents_of, draft};
use crate::failure::Failure;
use crate::{find, output};

/// Makes a goal and drives it, or goes on with one.
pub(crate) async fn run(context: &Context, args: Run) -> Result<ExitCode, Failure> {
    match &args.goal {
        Some(id) => go_on(context, id, &args).await,
        None => start(context, &args).await.map(|(_, code)| code),
    }
}

/// Makes a goal and drives it to its end.
pub(crate) async fn start(
    context: &Context,
    args: &Run,
) -> Result<(towline_store::GoalRecord, ExitCode), Failure> {
    let draft = draft(context, args, SystemClock.now())?;
    let home = context.home()?;
    let store = open_store(&home)?;
    let first = draft.goal.agents.first().and_then(|name| draft.agents.get(name)).cloned();
    let engine = context.engine(home.clone(), store, draft.agents)?;
    if !args.format.json && !args.format.events {
        output::print(format_args!("goal {}  {}", draft.goal.id.short(), draft.goal.title));
        if draft.goal.checks.is_empty() {
            output::say(format_args!(
                "note: no checks, so the goal can end as unproven at best (--check CMD)"
            ));
        }
    }
    let handle = engine.start(draft.goal).await?;
    let foreground = Foreground { context, home: &home, settings: first.as_ref(), format: args.format };
    foreground.follow(engine, handle, Seq(0)).await
}

async fn go_on(context: &Context, id: &str, args: &Run) -> Result<ExitCode, Failure> {
    let found = find::goal(context, id).await?;
    let goal = &found.record.goal;
    let agents = agents_of(context, goal)?;
    let first = goal.agents.first().and_then(|name| agents.get(name)).cloned();
    let engine = context.engine(found.home.clone(), found.store, agents)?;
    let handle = engine.take_up(goal.id).await?;
    let foreground = Foreground { context, home: &found.home, settings: first.as_ref(), format: args.format };
    Ok(foreground.follow(engine, handle, found.record.last_seq).await?.1)
}
