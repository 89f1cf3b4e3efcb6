//! `towline compact`: has a goal's conversation summarised before its next prompt.

use std::process::ExitCode;

use towline_app::{Taken, compact};

use crate::context::Context;
use crate::failure::Failure;
use crate::hints::command_line;
use crate::prompt::message;
use crate::{find, output};

/// Summarise the conversation of a goal before its next prompt.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline compact 1a2b3c4d
  towline compact 1a2b3c4d keep the API and the failing tests")]
pub(crate) struct Compact {
    /// The goal's id, a prefix of it, or `@`
    id: String,
    /// What the summary is to keep [default: `compact_focus` of the agent]; `-` reads it from standard input
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    focus: Vec<String>,
}

/// Requests the summary.
pub(crate) async fn run(context: &Context, args: Compact) -> Result<ExitCode, Failure> {
    let focus = match args.focus.as_slice() {
        [] => None,
        given => Some(message(given, "focus")?),
    };
    let found = find::goal(context, &args.id).await?;
    let goal = found.record.goal.id.short();
    match compact(context, found, focus).await? {
        Taken::ByDriver => output::print("the next attempt starts with a summary of the conversation"),
        Taken::Recorded { next } => output::print(format_args!(
            "stored: the next attempt of goal {goal} starts with a summary of the conversation; continue it with: {}",
            command_line(&next)
        )),
    }
    Ok(ExitCode::SUCCESS)
}
