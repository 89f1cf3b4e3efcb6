//! `towline queue`: what runs and what waits, and why.

use std::path::Path;

use towline_api::{QueueLine, QueueReport};
use towline_app::{Action, Context, Error, Notice, queue};
use towline_core::HoldReason;
use towline_engine::{Clock, SystemClock};
use towline_view::hints;

use crate::args::OutputFormat;
use crate::notices;
use crate::output::{self, Layout};

/// How far the reason of a goal is indented.
const INDENT: &str = "          ";

/// Lists the goals that run and those that wait.
pub(crate) async fn run(context: &Context, args: OutputFormat) -> Result<(), Error> {
    let report = queue(context, SystemClock.now()).await?;
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &report);
        return Ok(());
    }
    lines(&report).iter().for_each(output::print_or_exit);
    let problem = report.problem.clone().map(Notice::BrokenConfiguration);
    notices::print(problem.as_slice());
    if report.server.is_none() {
        output::eprint(format_args!(
            "no server is running; start one with: {}",
            hints::command_line(&Action::Up)
        ));
    }
    Ok(())
}

fn lines(report: &QueueReport) -> Vec<String> {
    let QueueReport { running, waiting, idle, more, .. } = report;
    let goals = || running.iter().chain(idle).chain(waiting);
    if goals().next().is_none() {
        return vec!["no goals run or wait".to_owned()];
    }
    let heads = ["ID", "PROJECT", "PHASE", "AGENT", "TITLE"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(goals().map(cells));
    let mut table = output::table(&rows, &["AGENT", "PROJECT"]).into_iter();
    let mut lines: Vec<String> = table.next().into_iter().collect();
    for goal in goals() {
        lines.extend(table.next());
        // That no server is running is printed once, for all of them.
        let hold = goal.hold.as_ref().filter(|hold| hold.reason != HoldReason::NoServer.name());
        let reason = hold.map(|hold| format!("{INDENT}{}", output::brief(&hold.text)));
        lines.extend(reason.into_iter().flat_map(|reason| output::fitted(&reason)));
    }
    lines.extend(table);
    lines.extend(more.then(|| "and more".to_owned()));
    lines
}

fn cells(goal: &QueueLine) -> Vec<String> {
    let project = Path::new(&goal.repository).file_name().unwrap_or_default();
    vec![
        output::short_id(&goal.id),
        output::brief(&project.to_string_lossy()),
        goal.phase.clone(),
        output::brief(&goal.agent),
        output::brief(&goal.title),
    ]
}
