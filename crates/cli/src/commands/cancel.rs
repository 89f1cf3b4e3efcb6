//! `towline cancel`: ends a goal, wherever it is driven.

use std::process::ExitCode;

use towline_core::{Event, GoalId, Illegal, Phase};
use towline_engine::{EngineError, Wish, follow};

use crate::args::Cancel;
use crate::commands::steer::{pass_on, unreachable};
use crate::context::Context;
use crate::failure::Failure;
use crate::find::{self, Found};
use crate::output;

/// Ends the goal and waits until nothing of it is left.
pub(crate) async fn run(context: &Context, args: Cancel) -> Result<ExitCode, Failure> {
    let goal = halt(context, &args.id, Wish::Cancel, |phase| *phase == Phase::Cancelled).await?;
    output::tell(format_args!("goal {} is cancelled", goal.short()));
    Ok(ExitCode::SUCCESS)
}

/// Stops the goal through the engine that runs it, or here when none does, and waits until no process is left. Returns the goal.
pub(crate) async fn halt(
    context: &Context,
    id: &str,
    wish: Wish,
    is_done: impl Fn(&Phase) -> bool,
) -> Result<GoalId, Failure> {
    let found = find::goal(context, id).await?;
    let goal = found.record.goal.id;
    let event = Event::from(wish.clone());
    let name = event.request();
    let phase = if pass_on(&found, wish).await? {
        wait_for_its_end(&found).await?
    } else {
        end_it_ourselves(context, found, event).await?
    };
    if !is_done(&phase) {
        // It came to another end in the same moment.
        let illegal = Illegal::WrongPhase { phase: phase.name(), event: name };
        return Err(EngineError::Illegal { goal: goal.short(), illegal }.into());
    }
    Ok(goal)
}

async fn wait_for_its_end(found: &Found) -> Result<Phase, Failure> {
    let (home, store, record) = (&found.state.home, &found.state.store, &found.record);
    let following = follow(home, store.clone(), record, record.last_seq).await;
    let mut following = following.map_err(unreachable)?;
    while following.next().await?.is_some() {}
    Ok(store.load(record.goal.id).await?.state.phase)
}

async fn end_it_ourselves(context: &Context, found: Found, event: Event) -> Result<Phase, Failure> {
    let engine = context.engine(found.state)?;
    let handle = engine.take_up(found.record.goal.id, Some(event)).await?;
    let record = handle.result().await;
    engine.close().await;
    Ok(record?.state.phase)
}
