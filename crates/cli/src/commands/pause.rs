//! `towline pause`: interrupts a goal, wherever it is driven.

use std::process::ExitCode;

use towline_app::halt;
use towline_core::Phase;
use towline_engine::GoalCommand;

use crate::args::Pause;
use crate::context::Context;
use crate::failure::Failure;
use crate::output;

/// Pauses the goal and waits until nothing of it is left.
pub(crate) async fn run(context: &Context, args: Pause) -> Result<ExitCode, Failure> {
    let goal =
        halt(context, &args.id, GoalCommand::Pause, |phase| matches!(phase, Phase::Paused { .. })).await?;
    let id = goal.short();
    output::tell(format_args!("goal {id} is paused; resume it with: towline resume {id}"));
    Ok(ExitCode::SUCCESS)
}
