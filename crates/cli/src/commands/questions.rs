//! `towline questions`: lists open questions.

use towline_app::report::{asking, open_questions};
use towline_app::{Context, Error};
use towline_engine::{Clock, SystemClock};
use towline_store::GoalRecord;
use towline_terminal::{how_to_answer, question_lines, time_left};

use crate::args::OutputFormat;
use crate::output::{self, Layout};

/// Lists open questions, of the newest goal first.
pub(crate) async fn run(context: &Context, args: OutputFormat) -> Result<(), Error> {
    let records = asking(context).await?;
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &open_questions(&records));
        return Ok(());
    }
    if records.iter().all(|record| record.state.open_question().is_none()) {
        output::eprint(format_args!("no open questions"));
    }
    for GoalRecord { goal, state, .. } in &records {
        let has_several = state.open_questions().nth(1).is_some();
        for question in state.open_questions() {
            let number = Some(question.n).filter(|number| has_several || number.0 > 1);
            output::print_or_exit(format_args!("{}  {}", goal.id.short(), output::brief(&goal.title)));
            let left = time_left(state, question, SystemClock.now());
            question_lines(&question.ask, number, left).iter().for_each(output::print_or_exit);
            let command = how_to_answer(goal.id, number.filter(|_| has_several));
            output::print_or_exit(format_args!("  answer it: {command}"));
        }
    }
    Ok(())
}
