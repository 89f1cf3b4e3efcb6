//! `towline questions`: lists open questions.

use towline_app::report::{asking, open_questions};
use towline_app::{Context, Error};

use crate::args::OutputFormat;
use crate::output::{self, Layout};
use crate::view::{how_to_answer, question_lines};

/// Lists open questions, of the newest goal first.
pub(crate) async fn run(context: &Context, args: OutputFormat) -> Result<(), Error> {
    let records = asking(context).await?;
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &open_questions(&records));
        return Ok(());
    }
    let open = records.iter().flat_map(|record| {
        let open = record.state.questions.iter().filter(|question| question.is_open());
        open.map(move |question| (&record.goal, question))
    });
    let open: Vec<_> = open.collect();
    if open.is_empty() {
        output::eprint(format_args!("no open questions"));
    }
    for (goal, question) in &open {
        let has_several = open.iter().filter(|(other, _)| other.id == goal.id).nth(1).is_some();
        let number = Some(question.n).filter(|number| has_several || number.0 > 1);
        output::print_or_exit(format_args!("{}  {}", goal.id.short(), output::brief(&goal.title)));
        question_lines(&question.ask, number).iter().for_each(output::print_or_exit);
        let command = how_to_answer(goal.id, number.filter(|_| has_several));
        output::print_or_exit(format_args!("  answer it: {command}"));
    }
    Ok(())
}
