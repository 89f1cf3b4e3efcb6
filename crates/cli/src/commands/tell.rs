//! `towline tell`: sends a message to the agent that works on a goal.

use std::process::ExitCode;

use towline_app::{Arrival, send_message};

use crate::args::Tell;
use crate::context::Context;
use crate::failure::Failure;
use crate::hints::command_line;
use crate::output;
use crate::prompt::message;

/// Sends the message, and prints when the agent gets it.
pub(crate) async fn run(context: &Context, args: Tell) -> Result<ExitCode, Failure> {
    let text = message(&args.text, "message")?;
    output::print_or_exit(match send_message(context, &args.id, text).await? {
        Arrival::Running(Some(ability)) => format!("sent: {}", ability.words()),
        Arrival::Running(None) => {
            "sent: the agent gets the message when its running tool has ended, or its turn".into()
        }
        // Work that passes its checks is done, so there is no next attempt.
        Arrival::Checking => "sent: the agent gets the message if it continues".into(),
        Arrival::Waiting => "sent: the agent gets the message when it continues".into(),
        Arrival::Recorded { next } => {
            let command = command_line(&next);
            format!("stored: no engine is running this goal; continue it with: {command}")
        }
    });
    Ok(ExitCode::SUCCESS)
}
