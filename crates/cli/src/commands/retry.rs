//! `towline retry`: opens an ended goal again and goes on with it.

use std::process::ExitCode;

use towline_core::Event;

use crate::args::Retry;
use crate::commands::foreground::Foreground;
use crate::context::Context;
use crate::draft::agents_of;
use crate::failure::Failure;
use crate::find;

/// Opens the goal again and drives it in the foreground.
pub(crate) async fn run(context: &Context, args: Retry) -> Result<ExitCode, Failure> {
    let found = find::goal(context, &args.id).await?;
    let goal = &found.record.goal;
    let agents = agents_of(context, goal)?;
    let first = goal.agents.first().and_then(|name| agents.get(name)).cloned();
    let engine = context.engine(found.home.clone(), found.store, agents)?;
    let handle = engine.take_up_with(goal.id, Event::RetryRequested { budget: args.budget }).await?;
    let foreground = Foreground { context, home: &found.home, settings: first.as_ref(), format: args.format };
    Ok(foreground.follow(engine, handle, found.record.last_seq).await?.1)
}
