//! `towline resume`: continues a paused goal in its session.

use std::process::ExitCode;

use towline_engine::Wish;

use crate::args::Resume;
use crate::commands::retry::take_up;
use crate::context::Context;
use crate::failure::Failure;
use crate::find;

/// Resumes the goal and drives it in the foreground.
pub(crate) async fn run(context: &Context, args: Resume) -> Result<ExitCode, Failure> {
    let id = match args.id {
        Some(id) => id,
        None => find::only_paused(context).await?.to_string(),
    };
    let found = find::goal(context, &id).await?;
    take_up(context, found, Wish::Resume, Vec::new(), args.format).await
}
