//! `towline verify`: runs a goal's checks again on its recorded commit, and compares the results.

use std::process::ExitCode;

use towline_app::Verified;
use towline_core::Verdict;

use crate::commands::{STOPPED, recheck};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{self, Layout};
use crate::view::Paint;

/// Run a goal's checks again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 the checks pass, as recorded · 3 they fail now · 4 they pass now and failed then · 130 stopped")]
pub(crate) struct Verify {
    /// The goal's id, a prefix of it, or `@`
    id: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the checks in a clean checkout of the candidate.
pub(crate) async fn run(context: &Context, args: Verify) -> Result<ExitCode, Failure> {
    let show = recheck::show(context, args.json);
    let Some(verified) = towline_app::verify(context, &args.id, recheck::stopped(), show).await? else {
        return Ok(ExitCode::from(STOPPED));
    };
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &verified.report());
    } else {
        conclude(Paint::for_stdout(context), &verified);
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
        (true, true) => paint.good("✓ recorded met, and met now"),
        (true, false) => paint.bad(&format!("✗ recorded met, now not met: {}", failing(now))),
        (false, true) => paint.warn(&format!("! recorded not met ({}), now met", failing(then))),
        (false, false) => {
            paint.bad(&format!("✗ recorded not met ({}), and not met now: {}", failing(then), failing(now)))
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
