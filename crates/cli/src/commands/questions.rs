//! `towline questions`: what agents ask and nobody has answered yet.

use std::process::ExitCode;

use towline_store::{Listing, load_all};

use crate::args::Questions;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{self, Layout};
use crate::report::QuestionLine;
use crate::view::{how_to_answer, question_lines};

/// Lists open questions, of the newest goal first.
pub(crate) async fn run(context: &Context, args: Questions) -> Result<ExitCode, Failure> {
    let records = match context.existing_state()? {
        Some(state) => {
            load_all(state.store.as_ref(), Listing { asks: true, ..Listing::all() }).await?.records
        }
        None => Vec::new(),
    };
    let open = records.iter().flat_map(|record| {
        let open = record.state.questions.iter().filter(|question| question.is_open());
        open.map(move |question| (&record.goal, question))
    });
    let open: Vec<_> = open.collect();
    if args.json {
        let lines: Vec<QuestionLine> =
            open.iter().map(|(goal, question)| QuestionLine::of(goal, question)).collect();
        output::tell_json(Layout::Pretty, &lines);
        return Ok(ExitCode::SUCCESS);
    }
    if open.is_empty() {
        output::say(format_args!("nobody asks anything"));
    }
    for (goal, question) in &open {
        let has_several = open.iter().filter(|(other, _)| other.id == goal.id).nth(1).is_some();
        let number = Some(question.n).filter(|number| has_several || number.0 > 1);
        output::tell(format_args!("{}  {}", goal.id.short(), output::brief(&goal.title)));
        question_lines(&question.ask, number).iter().for_each(output::tell);
        let command = how_to_answer(goal.id, number.filter(|_| has_several));
        output::tell(format_args!("  answer it: {command}"));
    }
    Ok(ExitCode::SUCCESS)
}
