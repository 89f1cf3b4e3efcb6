//! `towline verify`: runs a goal's checks again on its recorded commit and compares the results, or verifies a proof.

use std::path::PathBuf;
use std::process::ExitCode;

use towline_api::{ProofFinding, ProofVerifyReport};
use towline_app::{Context, Error, ProofRequest, RecheckStep, Verified};
use towline_check::Progress;
use towline_core::Verdict;
use towline_engine::{Clock, SystemClock};
use towline_terminal::{Detail, Paint, Story};

use crate::commands::STOPPED;
use crate::commands::foreground::Interrupts;
use crate::output::{self, Layout};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline verify 1a2b3c4d                                  run a goal's checks again
  towline verify --proof proof.json                        who signed it, and is the commit here
  towline verify --proof proof.json --key keys.pem         signed on another machine
  towline verify --proof proof.json --run                  and run its checks

Exit codes with an id:
  0 the checks pass, as recorded · 3 they fail now · 4 they pass now and failed then · 130 stopped
Exit codes with --proof:
  0 the proof holds · 2 wrong usage · 3 it does not hold · 5 a file does not exist · 130 stopped")]
pub(crate) struct Verify {
    /// The goal's id, any prefix of it that no other goal shares, or `@` for the newest goal
    #[arg(required_unless_present = "proof", conflicts_with_all = ["proof", "key", "run"])]
    id: Option<String>,
    /// Verify this proof in the repository that you are in
    #[arg(long, value_name = "FILE")]
    proof: Option<PathBuf>,
    /// Accept the signature of the public keys in this file (PEM) instead of your own
    #[arg(long, value_name = "FILE", requires = "proof")]
    key: Option<PathBuf>,
    /// Run the checks of the proof again, in a clean checkout
    ///
    /// This runs the setup commands and checks that are in the proof, on your machine. They run only if the signature is accepted and
    /// everything else holds.
    #[arg(long, requires = "proof")]
    run: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    /// Whether it does more than look.
    pub(crate) const fn runs_checks(&self) -> bool {
        self.proof.is_none() || self.run
    }
}

/// Runs the checks of a goal, or verifies a proof.
pub(crate) async fn run(context: &Context, args: Verify) -> Result<ExitCode, Error> {
    match args {
        Verify { proof: Some(file), key, run, json, .. } => {
            verify_proof(context, &ProofRequest { file, key, run }, json).await
        }
        Verify { id, json, .. } => verify_goal(context, &id.unwrap_or_default(), json).await,
    }
}

async fn verify_proof(context: &Context, request: &ProofRequest, json: bool) -> Result<ExitCode, Error> {
    let show = show_checks(context, json);
    let verified = towline_app::verify_proof(context, request, SystemClock.now(), stopped(), show).await?;
    let Some(report) = verified else { return Ok(ExitCode::from(STOPPED)) };
    if json {
        output::print_json_or_exit(Layout::Pretty, &report);
    } else {
        proof_lines(output::paint(context), &report).iter().for_each(output::print_or_exit);
    }
    Ok(if report.holds { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

/// What was compared, and what follows. Everything in a proof may have been written by anybody.
fn proof_lines(paint: Paint, report: &ProofVerifyReport) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(goal), Some(title)) = (&report.goal, &report.title) {
        lines.push(format!("proof of goal {}: {}", output::brief(goal), output::brief(title)));
    }
    lines.extend(report.findings.iter().map(|ProofFinding { part, holds, text }| {
        let line = format!("{part}: {}", output::printable(text));
        if *holds { paint.good(&format!("  ✓ {line}")) } else { paint.bad(&format!("  ✗ {line}")) }
    }));
    if let (Some(level), Some(checkout), Some(at)) = (report.level, &report.checkout, &report.reached_at) {
        let sandbox = report.sandbox.as_deref().map_or("no sandbox".to_owned(), output::brief);
        let (checkout, at) = (output::brief(checkout), output::brief(at));
        lines.push(format!("  trust: level {level}, {sandbox}, checkout {checkout}; verdict of {at}"));
    }
    lines.push(match report.holds {
        true => paint.good("✓ the proof holds"),
        false => paint.bad("✗ the proof does not hold"),
    });
    lines
}

/// Runs the checks in a clean checkout of the candidate.
async fn verify_goal(context: &Context, id: &str, json: bool) -> Result<ExitCode, Error> {
    let show = show_checks(context, json);
    let Some(verified) = towline_app::verify(context, id, stopped(), show).await? else {
        return Ok(ExitCode::from(STOPPED));
    };
    if json {
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
