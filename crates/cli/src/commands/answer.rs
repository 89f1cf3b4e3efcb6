//! `towline answer`: answers what an agent asks.

use std::process::ExitCode;

use towline_app::{Answered, answer};

use crate::args::Answer;
use crate::context::Context;
use crate::failure::Failure;
use crate::hints::command_line;
use crate::output;
use crate::prompt::message;

/// Answers the question.
pub(crate) async fn run(context: &Context, args: Answer) -> Result<ExitCode, Failure> {
    let text = message(&args.text, "answer")?;
    let answered = answer(context, &args.id, args.question, &text).await?;
    let Answered { question, title, words, next } = answered;
    output::print_or_exit(format_args!("answered question {question}: {}", output::brief(&title)));
    output::print_or_exit(format_args!("  {}", output::brief(&words)));
    if let Some(next) = next {
        let command = command_line(&next);
        output::print_or_exit(format_args!("no engine is running this goal; continue it with: {command}"));
    }
    Ok(ExitCode::SUCCESS)
}
