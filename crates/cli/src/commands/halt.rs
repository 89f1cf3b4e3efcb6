//! `towline cancel` and `towline pause`: stop a goal, whichever process runs it.

use std::process::ExitCode;

use towline_app::halt;
use towline_core::Phase;
use towline_engine::GoalCommand;

use crate::args::OneGoal;
use crate::context::Context;
use crate::failure::Failure;
use crate::output;

/// Ends the goal and waits until none of its processes is left.
pub(crate) async fn cancel(context: &Context, args: OneGoal) -> Result<ExitCode, Failure> {
    let goal = halt(context, &args.id, GoalCommand::Cancel, |phase| *phase == Phase::Cancelled).await?;
    output::print_or_exit(format_args!("goal {} is cancelled", goal.short()));
    Ok(ExitCode::SUCCESS)
}

/// Pauses the goal and waits until none of its processes is left.
pub(crate) async fn pause(context: &Context, args: OneGoal) -> Result<ExitCode, Failure> {
    let is_paused = |phase: &Phase| matches!(phase, Phase::Paused { .. });
    let id = halt(context, &args.id, GoalCommand::Pause, is_paused).await?.short();
    output::print_or_exit(format_args!("goal {id} is paused; resume it with: towline resume {id}"));
    Ok(ExitCode::SUCCESS)
}
