//! `towline verify`: runs a goal's checks again on its recorded commit, and compares the results.

use std::process::ExitCode;

use towline_app::{Context, Error, RecheckStep, Verified};
use towline_check::Progress;
use towline_core::Verdict;
use towline_terminal::{Detail, Paint, Story};

use crate::args::GoalAndFormat;
use crate::commands::STOPPED;
use crate::commands::foreground::Interrupts;
use crate::output::{self, Layout};

/// Runs the checks in a clean checkout of the candidate.
pub(crate) async fn run(context: &Context, args: GoalAndFormat) -> Result<ExitCode, Error> {
    let show = show_checks(context, args.json);
    let Some(verified) = towline_app::verify(context, &args.id, stopped(), show).await? else {
        return Ok(ExitCode::from(STOPPED));
    };
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &verified.report());
    } else {
        conclude(output::paint(context), &verified);
    }
    Ok(match (verified.now.met(), verified.agrees) {
        (false, _) => ExitCode::from(3),
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(4),
    })
}

fn conclude(paint: Paint, verified: &Verified) {
    let Verified { goal, then, now, .. } = verified;
    let failing = |verdict: &Verdict| {
        let names: Vec<String> = verdict.failed().map(|check| output::brief(&check.name)).collect();
        names.join(", ")
    };
    output::print_or_exit(match (then.met(), now.met()) {
        (true, true) => paint.good("✓ the checks passed then and pass now"),
        (true, false) => {
            paint.bad(&format!("✗ the checks passed then, and now these fail: {}", failing(now)))
        }
        (false, true) => paint.warn(&format!("! the checks failed then ({}) and pass now", failing(then))),
        (false, false) => {
            paint.bad(&format!("✗ the checks failed then ({}) and fail now: {}", failing(then), failing(now)))
        }
    });
    let id = goal.short();
    if then.met() && !now.met() {
        output::print_or_exit(
            "  the files are the same: a check depends on something outside of them, or on chance",
        );
    }
    if !then.met() && now.met() {
        output::print_or_exit(format_args!("  to continue it: towline retry {id}"));
    }
}

/// Ends when a person wants the checks to stop. Signals are caught from the first poll on: before, Ctrl-C ends the program.
pub(super) async fn stopped() {
    let Ok(mut interrupts) = Interrupts::listen() else { return std::future::pending().await };
    interrupts.stop().await;
    output::eprint(format_args!("stopping the checks"));
}

/// Shows how the checks go to a person; to a program nothing.
pub(super) fn show_checks(context: &Context, json: bool) -> impl FnMut(RecheckStep) {
    let paint = output::paint(context);
    let story = Story::new(paint, Detail::Short);
    move |step| match step {
        _ if json => {}
        RecheckStep::MovedOn { into } => output::print(format_args!(
            "`{into}` has moved on since the goal began: what was proven is not what would be merged.\n\
             The checks run on the merge first:"
        )),
        RecheckStep::Checking { goal, commit } => output::print(format_args!(
            "checks of goal {} on {}, in a clean checkout:",
            goal.short(),
            commit.short()
        )),
        // A recheck runs in a clean checkout from the start.
        RecheckStep::Check(Progress::Confirming | Progress::Adopted { .. }, _) => {}
        RecheckStep::Check(Progress::Started { name, .. }, _) => {
            output::print(paint.dim(&format!("  … {}", output::brief(&name))));
        }
        RecheckStep::Check(Progress::Finished { result }, goal) => {
            story.check(&result, goal).iter().for_each(output::print);
        }
    }
}
