//! `towline verify`: runs a goal's checks again on what it stands for, and compares with what was found then.

use std::process::ExitCode;

use serde::Serialize;
use towline_core::{Event, Verdict};
use towline_engine::{Custody, Home, Recheck};
use towline_store::GoalRecord;

use crate::commands::STOPPED;
use crate::commands::recheck::{Reader, recheck};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::VerdictReport;
use crate::view::Paint;
use crate::{
    find,
    output::{self, Layout},
};

/// Run a goal's checks again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 the checks hold, as recorded · 3 they fail now · 4 they hold now and did not then · 130 stopped")]
pub(crate) struct Verify {
    /// The goal's id, or a prefix of it
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was found then and now, as JSON.
#[derive(Serialize)]
struct VerifyReport {
    id: String,
    candidate: String,
    met: bool,
    agrees: bool,
    recorded: VerdictReport,
    now: VerdictReport,
}

/// Runs the checks in a clean checkout of the candidate.
pub(crate) async fn run(context: &Context, args: Verify) -> Result<ExitCode, Failure> {
    let found = find::goal(context, &args.id).await?;
    recorded(&found.record)?;
    let (goal, home) = (found.record.goal.id, found.state.home.clone());
    let engine = context.engine(found.state)?;
    let verified = match engine.hold(goal).await {
        Ok(mut custody) => {
            let verified = verify(context, &args, &home, &mut custody).await;
            custody.give_back().await;
            verified
        }
        Err(error) => Err(error.into()),
    };
    engine.close().await;
    verified
}

async fn verify(
    context: &Context,
    args: &Verify,
    home: &Home,
    custody: &mut Custody,
) -> Result<ExitCode, Failure> {
    let record = custody.record.clone();
    let then = recorded(&record)?;
    let repository = find::repository(home, &record)?;
    let candidate = repository.candidate_again(&then.candidate, then.head.as_ref(), &then.restored)?;
    if !args.json {
        let (id, commit) = (record.goal.id.short(), then.candidate.short());
        output::print(format_args!("checks of goal {id} on {commit}, in a clean checkout:"));
    }
    let base = &record.goal.workspace.base;
    let what = Recheck { repository: &repository, candidate: &candidate, base };
    let Some(now) = recheck(context, custody, what, Reader::of(args.json)).await? else {
        return Ok(ExitCode::from(STOPPED));
    };
    custody.note(Event::Verified { verdict: now.clone() }).await?;
    let agrees = outcomes(then) == outcomes(&now);
    if args.json {
        let report = VerifyReport {
            id: record.goal.id.to_string(),
            candidate: then.candidate.to_string(),
            met: now.met(),
            agrees,
            recorded: VerdictReport::of(then),
            now: VerdictReport::of(&now),
        };
        output::tell_json(Layout::Pretty, &report);
    } else {
        conclude(Paint::for_stdout(context), &record, then, &now);
    }
    Ok(match (now.met(), agrees) {
        (false, _) => ExitCode::from(3),
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(4),
    })
}

/// The verdict on what the goal stands for.
fn recorded(record: &GoalRecord) -> Result<&Verdict, Failure> {
    let id = record.goal.id.short();
    if record.goal.checks.is_empty() {
        return Err(Failure::usage(format!("goal {id} has no checks: there is nothing to verify"))
            .hint(format!("look at its work: towline diff {id}")));
    }
    if !record.state.phase.is_settled() {
        let phase = record.state.phase.name();
        return Err(Failure::usage(format!("goal {id} is {phase}: Towline checks its work itself"))
            .hint(format!("follow it: towline logs -f {id}")));
    }
    record.state.last_verdict().ok_or_else(|| {
        Failure::usage(format!("goal {id} has no work that was ever checked"))
            .hint(format!("see what became of it: towline show {id}"))
    })
}

/// Each check with how it went.
fn outcomes(verdict: &Verdict) -> Vec<(&str, bool)> {
    verdict.checks.iter().map(|check| (check.name.as_str(), check.met)).collect()
}

fn conclude(paint: Paint, record: &GoalRecord, then: &Verdict, now: &Verdict) {
    let failing = |verdict: &Verdict| {
        let names: Vec<String> = verdict.failed().map(|check| output::brief(&check.name)).collect();
        names.join(", ")
    };
    output::tell(match (then.met(), now.met()) {
        (true, true) => paint.good("✓ recorded met, and met now"),
        (true, false) => paint.bad(&format!("✗ recorded met, now not met: {}", failing(now))),
        (false, true) => paint.warn(&format!("! recorded not met ({}), now met", failing(then))),
        (false, false) => {
            paint.bad(&format!("✗ recorded not met ({}), and not met now: {}", failing(then), failing(now)))
        }
    });
    let id = record.goal.id.short();
    if then.met() && !now.met() {
        output::tell("  the files are the same: a check depends on something outside of them, or on chance");
    }
    if !then.met() && now.met() {
        output::tell(format_args!("  to go on with it: towline retry {id}"));
    }
}
