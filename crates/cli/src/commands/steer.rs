//! `towline answer`, `tell`, `compact`, `cancel` and `pause`: what is asked of a goal, whichever process runs it.

use towline_app::{Answered, Arrival, Context, Error, Taken, find, halt};
use towline_engine::GoalCommand;
use towline_view::hints::command_line;

use crate::args::{Answer, OneGoal, Tell};
use crate::output;
use crate::prompt::message;

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

/// Answers a question.
pub(crate) async fn answer(context: &Context, args: Answer) -> Result<(), Error> {
    let text = message(&args.text, "answer")?;
    let Answered { question, title, words, next } =
        towline_app::answer(context, &args.id, args.question, &text).await?;
    output::print_or_exit(format_args!("answered question {question}: {}", output::brief(&title)));
    output::print_or_exit(format_args!("  {}", output::brief(&words)));
    if let Some(next) = next {
        let command = command_line(&next);
        output::print_or_exit(format_args!("no engine is running this goal; continue it with: {command}"));
    }
    Ok(())
}

/// Sends a message, and prints when the agent gets it.
pub(crate) async fn tell(context: &Context, args: Tell) -> Result<(), Error> {
    let text = message(&args.text, "message")?;
    output::print_or_exit(match towline_app::send_message(context, &args.id, text).await? {
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
    Ok(())
}

/// Requests a summary of the conversation.
pub(crate) async fn compact(context: &Context, args: Compact) -> Result<(), Error> {
    let focus = match args.focus.as_slice() {
        [] => None,
        given => Some(message(given, "focus")?),
    };
    let found = find::goal(context, &args.id).await?;
    let goal = found.record.goal.id.short();
    match towline_app::compact(context, found, focus).await? {
        Taken::ByDriver => output::print("the next attempt starts with a summary of the conversation"),
        Taken::Recorded { next } => output::print(format_args!(
            "stored: the next attempt of goal {goal} starts with a summary of the conversation; continue it with: {}",
            command_line(&next)
        )),
    }
    Ok(())
}

/// Ends a goal and waits until none of its processes is left.
pub(crate) async fn cancel(context: &Context, args: OneGoal) -> Result<(), Error> {
    let goal = halt(context, &args.id, GoalCommand::Cancel).await?;
    output::print_or_exit(format_args!("goal {} is cancelled", goal.short()));
    Ok(())
}

/// Pauses a goal and waits until none of its processes is left.
pub(crate) async fn pause(context: &Context, args: OneGoal) -> Result<(), Error> {
    let id = halt(context, &args.id, GoalCommand::Pause).await?.short();
    output::print_or_exit(format_args!("goal {id} is paused; resume it with: towline resume {id}"));
    Ok(())
}
