//! `towline cancel`: ends a goal, wherever it is driven.

use std::process::ExitCode;

use towline_core::{Event, Illegal, Phase};
use towline_engine::{EngineError, Wish, follow};

use crate::args::Cancel;
use crate::commands::steer::{pass_on, unreachable};
use crate::context::Context;
use crate::draft::agents_of;
use crate::failure::Failure;
use crate::find::{self, Found};
use crate::output;

/// Ends the goal and waits until nothing of it is left.
pub(crate) async fn run(context: &Context, args: Cancel) -> Result<ExitCode, Failure> {
    let found = find::goal(context, &args.id).await?;
    let goal = found.record.goal.id;
    let phase = if pass_on(&found, Wish::Cancel).await? {
        wait_for_its_end(&found).await?
    } else {
        end_it_ourselves(context, found).await?
    };
    if phase != Phase::Cancelled {
        // It came to another end in the same moment.
        let illegal = Illegal::WrongPhase { phase: phase.name(), event: "cancel" };
        return Err(EngineError::Illegal { goal: goal.short(), illegal }.into());
    }
    output::tell(format_args!("goal {} is cancelled", goal.short()));
    Ok(ExitCode::SUCCESS)
}

async fn wait_for_its_end(found: &Found) -> Result<Phase, Failure> {
    let (home, store, record) = (&found.state.home, &found.state.store, &found.record);
    let following = follow(home, store.clone(), record, record.last_seq).await;
    let mut following = following.map_err(unreachable)?;
    while following.next().await?.is_some() {}
    Ok(store.load(record.goal.id).await?.state.phase)
}

async fn end_it_ourselves(context: &Context, found: Found) -> Result<Phase, Failure> {
    // A configuration that is broken by now must not keep anybody from ending what runs.
    let agents = agents_of(context, &found.record.goal).unwrap_or_default();
    let engine = context.engine(found.state, agents)?;
    let handle = engine.take_up(found.record.goal.id, Some(Event::CancelRequested)).await?;
    let record = handle.result().await;
    engine.close().await;
    Ok(record?.state.phase)
}
