//! Showing checks that run once more, until a person stops them.

use towline_app::RecheckStep;
use towline_check::Progress;

use crate::commands::foreground::{Interrupt, Interrupts, suspend};
use crate::context::Context;
use crate::output;
use crate::view::{Detail, Paint, Story};

/// Ends when a person wants the checks to stop. Signals are caught from the first poll on: before, Ctrl-C ends the program.
pub(super) async fn stopped() {
    let Ok(mut interrupts) = Interrupts::listen() else { return std::future::pending().await };
    while interrupts.next().await == Interrupt::Suspend {
        suspend();
    }
    output::eprint(format_args!("stopping the checks"));
}

/// Shows how the checks go to a person; to a program nothing.
pub(super) fn show(context: &Context, json: bool) -> impl FnMut(RecheckStep) {
    let paint = Paint::for_stdout(context);
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
