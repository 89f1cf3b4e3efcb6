//! `towline resume`: continues a paused goal in its session.

use std::process::ExitCode;

use towline_engine::GoalCommand;

use crate::args::Resume;
use crate::commands::retry::resume_goal;
use crate::context::Context;
use crate::failure::Failure;
use crate::find;

/// Resumes the goal and drives it in the foreground.
pub(crate) async fn run(context: &Context, args: Resume) -> Result<ExitCode, Failure> {
    let id = match args.id {
        Some(id) => id,
        None => find::only_paused(context).await?.to_string(),
    };
    resume_goal(context, &id, Some(GoalCommand::Resume), &[], args.format).await
}
