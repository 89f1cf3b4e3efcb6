//! `towline tell`: sends a message to the agent that works on a goal.

use std::process::ExitCode;

use towline_app::{Taken, steer};
use towline_core::Phase;
use towline_engine::GoalCommand;

use crate::args::Tell;
use crate::context::Context;
use crate::failure::Failure;
use crate::prompt::message;
use crate::{find, output};

/// Passes the words on.
pub(crate) async fn run(context: &Context, args: Tell) -> Result<ExitCode, Failure> {
    let text = message(&args.text, "message")?;
    let found = find::goal(context, &args.id).await?;
    let goal = found.record.goal.id.short();
    let when = match found.record.state.phase {
        // Which of the two depends on the agent: `towline agents check` shows it.
        Phase::Running { .. } => "when its running tool has ended, or its turn",
        // If the work passes its checks, there is no next attempt.
        Phase::Checking { .. } => "if it continues",
        _ => "when it continues",
    };
    match steer(context, found, GoalCommand::Tell { text }).await? {
        Taken::ByDriver => output::print_or_exit(format_args!("sent: the agent gets the message {when}")),
        Taken::Recorded => {
            output::print_or_exit(format_args!(
                "stored: no engine is running this goal; resume it with: towline run --goal {goal}"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}
