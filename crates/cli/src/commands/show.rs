//! `towline show`: everything about a goal.

use towline_api::GoalReport;
use towline_app::report::goal_report;
use towline_app::{Context, Error, Holds, agents_of, next_steps};
use towline_engine::{Clock, SystemClock};
use towline_view::{attempt_lines, ending, fact_lines, step_lines};

use crate::args::GoalAndFormat;
use crate::output::{self, Layout};
use crate::{find, notices};

/// Shows a goal.
pub(crate) async fn run(context: &Context, args: GoalAndFormat) -> Result<(), Error> {
    let found = find::goal(context, &args.id).await?;
    let record = &found.record;
    let now = SystemClock.now();
    // A configuration that cannot be read must not hide the goal.
    let holds = Holds::of_records(context, &found.state, std::slice::from_ref(record), now).await;
    let hold = holds.unwrap_or_default().report(record.goal.id, now);
    if args.json {
        output::print_json_or_exit(
            Layout::Pretty,
            &GoalReport { hold, ..goal_report(record, &found.state.home, now) },
        );
        return Ok(());
    }
    let paint = output::paint(context);
    output::print_fitted(&[paint.bold(&output::brief(&record.goal.title))]);
    output::print_fitted(&ending(paint, record, now));
    output::print_fitted(&fact_lines(record, hold.map(|hold| hold.text), now));
    // Attempts and the way out may need the agents' settings; a configuration that is broken by now does not hide the goal.
    let found_agents = agents_of(context, &record.goal).ok();
    for attempt in &record.state.attempts {
        let is_last = record.state.last_attempt().is_some_and(|last| last.n == attempt.n);
        let settings = found_agents.as_ref().and_then(|found| found.agents.get(&attempt.agent));
        let kind = settings.map(|settings| settings.kind);
        output::print_fitted(&attempt_lines(paint, attempt, kind, is_last));
    }
    found_agents.iter().for_each(|found| notices::print(&found.notices));
    let first = record.goal.agents.first().and_then(|name| found_agents.as_ref()?.agents.get(name));
    output::print_fitted(&step_lines(&next_steps(record, &found.state.home, first)));
    Ok(())
}
