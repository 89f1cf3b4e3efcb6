//! `towline retry`: opens an ended goal again and goes on with it.

use std::process::ExitCode;

use towline_core::Event;

use crate::args::Retry;
use crate::commands::foreground::{Beginning, Foreground};
use crate::context::Context;
use crate::draft::agents_of;
use crate::failure::Failure;
use crate::find;

/// Opens the goal again and drives it in the foreground.
pub(crate) async fn run(context: &Context, args: Retry) -> Result<ExitCode, Failure> {
    let found = find::goal(context, &args.id).await?;
    let agents = agents_of(context, &found.record.goal)?;
    let foreground = Foreground { context, state: found.state, agents, format: args.format };
    let wish = Event::RetryRequested { budget: args.budget };
    let (_, code) =
        foreground.drive(Beginning::Existing(Box::new(found.record), Some(Box::new(wish)))).await?;
    Ok(code)
}
