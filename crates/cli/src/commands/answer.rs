//! `towline answer`: answers what an agent asks.

use std::process::ExitCode;

use towline_app::{Taken, steer};
use towline_core::{EscalationReason, GoalState, Phase, Question, QuestionNo};
use towline_engine::GoalCommand;

use crate::args::Answer;
use crate::context::Context;
use crate::failure::Failure;
use crate::prompt::message;
use crate::{find, output};

/// Answers the question.
pub(crate) async fn run(context: &Context, args: Answer) -> Result<ExitCode, Failure> {
    let text = message(&args.text, "answer")?;
    let found = find::goal(context, &args.id).await?;
    let goal = found.record.goal.id.short();
    let question = open_question(&found.record.state, args.question, &goal)?;
    let (n, title) = (question.n, question.ask.title());
    let reply = question
        .ask
        .read_answer(&text)
        .map_err(|bad| Failure::usage(format!("{bad}\n  the question: {}", output::brief(&title))))?;
    let words = reply.words();
    let phase = &found.record.state.phase;
    let reopens = matches!(phase, Phase::Escalated { reason: EscalationReason::Unanswered { .. } });
    let needs_retry = phase.is_settled() && !reopens;
    let taken = steer(context, found, GoalCommand::Answer { question: n, reply }).await?;
    output::tell(format_args!("answered question {n}: {}", output::brief(&title)));
    output::tell(format_args!("  {}", output::brief(&words)));
    if taken == Taken::Recorded {
        let go_on =
            if needs_retry { format!("towline retry {goal}") } else { format!("towline run --goal {goal}") };
        output::tell(format_args!("no engine is running this goal; continue it with: {go_on}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn open_question<'a>(state: &'a GoalState, wanted: Option<u32>, goal: &str) -> Result<&'a Question, Failure> {
    let hint = "`towline questions` lists what is asked";
    match wanted {
        None => state
            .open_question()
            .ok_or_else(|| Failure::usage(format!("goal {goal} asks nothing")).hint(hint)),
        Some(n) => state
            .question(QuestionNo(n))
            .filter(|question| question.is_open())
            .ok_or_else(|| Failure::usage(format!("goal {goal} has no open question {n}")).hint(hint)),
    }
}
