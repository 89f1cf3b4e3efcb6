//! `towline cancel`: ends a goal, wherever it is driven.

use std::process::ExitCode;

use towline_app::halt;
use towline_core::Phase;
use towline_engine::GoalCommand;

use crate::args::Cancel;
use crate::context::Context;
use crate::failure::Failure;
use crate::output;

/// Ends the goal and waits until nothing of it is left.
pub(crate) async fn run(context: &Context, args: Cancel) -> Result<ExitCode, Failure> {
    let goal = halt(context, &args.id, GoalCommand::Cancel, |phase| *phase == Phase::Cancelled).await?;
    output::tell(format_args!("goal {} is cancelled", goal.short()));
    Ok(ExitCode::SUCCESS)
}
