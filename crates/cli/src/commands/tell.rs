//! `towline tell`: says something to the agent that works on a goal.

use std::process::ExitCode;

use towline_core::Phase;
use towline_engine::Wish;

use crate::args::Tell;
use crate::commands::steer::{Taken, steer};
use crate::context::Context;
use crate::failure::Failure;
use crate::prompt::words;
use crate::{find, output};

/// The longest message. More than this belongs into a file that the agent is told to read.
const LONGEST: usize = 256 * 1024;

/// Passes the words on.
pub(crate) async fn run(context: &Context, args: Tell) -> Result<ExitCode, Failure> {
    let text = words(&args.text, "message")?;
    if text.len() > LONGEST {
        return Err(Failure::usage(format!("the message has {} bytes; {LONGEST} are the most", text.len()))
            .hint("put it into a file and tell the agent to read that"));
    }
    let found = find::goal(context, &args.id).await?;
    let goal = found.record.goal.id.short();
    let lives = matches!(found.record.state.phase, Phase::Running { .. });
    match steer(context, found, Wish::Tell { text }).await? {
        Taken::ByDriver if lives => {
            output::tell(format_args!("told: the agent hears it as soon as its running tool has ended"));
        }
        Taken::ByDriver => output::tell(format_args!("told: the agent hears it when it goes on")),
        Taken::Recorded => {
            output::tell(format_args!("kept: nobody drives the goal; go on with: towline run --goal {goal}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
