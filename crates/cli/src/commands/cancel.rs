//! `towline cancel`: ends a goal, wherever it is driven.

use std::collections::BTreeMap;
use std::process::ExitCode;

use towline_core::{Event, Phase};
use towline_engine::{Request, ask, follow};

use crate::args::Cancel;
use crate::context::Context;
use crate::failure::Failure;
use crate::{find, output};

/// Ends the goal and waits until nothing of it is left.
pub(crate) async fn run(context: &Context, args: Cancel) -> Result<ExitCode, Failure> {
    let found = find::goal(context, &args.id).await?;
    let (state, record) = (found.state, found.record);
    let goal = record.goal.id;
    let asked = ask(&state.home, &record, &Request::Cancel { goal }).await;
    let unreachable =
        |error| Failure::internal(format!("cannot reach the process that drives the goal: {error}"));
    let phase = if asked.map_err(unreachable)?.is_some() {
        let mut following =
            follow(&state.home, state.store.clone(), &record, record.last_seq).await.map_err(unreachable)?;
        while following.events.next().await?.is_some() {}
        state.store.load(goal).await?.state.phase
    } else {
        let engine = context.engine(state, BTreeMap::new())?;
        let handle = engine.take_up(goal, Some(Event::CancelRequested)).await?;
        let record = handle.result().await;
        engine.close().await;
        record?.state.phase
    };
    output::print(format_args!("goal {} is {}", goal.short(), phase.name()));
    // The goal may have come to another end in the same moment; then there was nothing left to cancel.
    Ok(if phase == Phase::Cancelled { ExitCode::SUCCESS } else { ExitCode::from(3) })
}
