//! `towline show`: everything about a goal.

use towline_app::report::{TRUST_LEVEL, WARM, confirmed_by, goal_report};
use towline_app::{CHANNEL, Context, Error, agents_of};
use towline_core::{
    Attempt, Baseline, BaselineMode, CheckResult, Checkout, Goal, GoalState, Origin, show_duration,
};
use towline_engine::{Clock, SystemClock, is_driven};
use towline_store::GoalRecord;

use crate::args::Show;
use crate::notices::{self, few};
use crate::view::{
    PASSED_ONLY_WARM, Paint, clock_time, ending, in_words, speaks_to_towline, spent, spent_of_limits,
    step_lines,
};
use crate::{
    find,
    output::{self, Layout},
};

/// How many lines of a failed check's output are shown.
const EVIDENCE: usize = 12;

/// Shows a goal.
pub(crate) async fn run(context: &Context, args: Show) -> Result<(), Error> {
    let found = find::goal(context, &args.id).await?;
    let record = &found.record;
    if args.json {
        output::print_json_or_exit(
            Layout::Pretty,
            &goal_report(record, &found.state.home, SystemClock.now()),
        );
        return Ok(());
    }
    let paint = Paint::for_stdout(context);
    let print = |line: &str| output::fitted(line).iter().for_each(output::print_or_exit);
    print(&paint.bold(&output::brief(&record.goal.title)));
    ending(paint, record).iter().for_each(|line| print(line));
    let mut facts = vec![
        ("id", record.goal.id.to_string()),
        ("repository", record.goal.workspace.repository.clone()),
        ("base", record.goal.workspace.base.to_string()),
    ];
    if let Some(workspace) = &record.state.workspace {
        facts.extend(record.state.branch.clone().map(|branch| ("branch", branch)));
        let mode = if record.goal.workspace.mode.is_in_place() { " (in place)" } else { "" };
        facts.push(("workspace", format!("{}{mode}", workspace.path)));
    }
    let confirmed = confirmed_by(&record.state).filter(|by| *by == WARM);
    let confirmed = confirmed.map_or("", |_| ", confirmed in a warm checkout only");
    facts.push(("trust", format!("level {TRUST_LEVEL}, no sandbox{confirmed}")));
    facts.extend(about(&record.goal));
    facts.extend(
        record.goal.checks.iter().map(|check| ("check", format!("{}: {}", check.name, check.describe()))),
    );
    facts.extend(baseline(record));
    facts.extend(conversation(record));
    facts.extend(protection(&record.goal));
    let limits = spent_of_limits(record, SystemClock.now());
    if !limits.is_empty() {
        facts.push(("spent", limits.join(" · ")));
    }
    for (name, value) in facts {
        print(&format!("  {name:<10} {}", output::brief(&value)));
    }
    for attempt in &record.state.attempts {
        let is_last = record.state.last_attempt().is_some_and(|last| last.n == attempt.n);
        attempt_lines(paint, attempt, is_last).iter().for_each(|line| print(line));
    }
    // The way out may need the agent's settings; a configuration that is broken by now does not hide the goal.
    let found_agents = agents_of(context, &record.goal).ok();
    found_agents.iter().for_each(|found| notices::print(&found.notices));
    let first = record.goal.agents.first().and_then(|name| found_agents.as_ref()?.agents.get(name));
    let driven = is_driven(&found.state.home, record.lease.as_ref());
    step_lines(record, driven, first).iter().for_each(|line| print(line));
    Ok(())
}

/// The result of the checks before any work, and whether the checks are still the same.
fn baseline(GoalRecord { goal, state, .. }: &GoalRecord) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(replaced) = &state.replaced_checks {
        let since = clock_time(replaced.since, SystemClock.now());
        facts.push((
            "replaced",
            format!("checks replaced at {since}; earlier verdicts are about other checks"),
        ));
    }
    let was_stopped = state.baseline == Baseline::Unknown && !state.attempts.is_empty();
    if was_stopped && goal.baseline != BaselineMode::Off && !goal.checks.is_empty() {
        facts.push(("baseline", "unknown".to_owned()));
    }
    let Baseline::Known { checks } = &state.baseline else { return facts };
    let failed: Vec<&str> =
        checks.iter().filter(|check| !check.met).map(|check| check.name.as_str()).collect();
    facts.push((
        "baseline",
        match state.baseline.met() {
            Some(true) => "checks passed before any work".to_owned(),
            _ => format!("failed before any work: {}", failed.join(", ")),
        },
    ));
    facts
}

/// Whose conversation it continues, who continues its own, and whether a person took part in it.
fn conversation(record: &GoalRecord) -> Vec<(&'static str, String)> {
    let GoalState { continued_by, entered_at, .. } = &record.state;
    let continues = record
        .goal
        .continues
        .as_ref()
        .map(|continued| ("continues", format!("the conversation of goal {}", continued.goal.short())));
    let continued = continued_by.map(|by| ("continued", format!("by goal {}", by.short())));
    let entered = entered_at.map(|at| {
        ("entered", format!("a person was in the session at {}", clock_time(at, SystemClock.now())))
    });
    continues.into_iter().chain(continued).chain(entered).collect()
}

/// What the agent may not change, and what it may change nevertheless.
fn protection(goal: &Goal) -> Vec<(&'static str, String)> {
    let named = [("protected", &goal.protect), ("lifted", &goal.unprotect)];
    named.into_iter().filter(|(_, paths)| !paths.is_empty()).map(|(name, paths)| (name, few(paths))).collect()
}

/// The settings of a goal.
fn about(goal: &Goal) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if !goal.labels.is_empty() {
        facts.push(("labels", goal.labels.join(", ")));
    }
    let Origin { channel, thread, by } = &goal.origin;
    if channel != CHANNEL || thread.is_some() {
        let words: Vec<&str> =
            [Some(channel), thread.as_ref(), by.as_ref()].into_iter().flatten().map(String::as_str).collect();
        facts.push(("origin", words.join(" · ")));
    }
    facts.extend(goal.metadata.iter().map(|(name, value)| ("metadata", format!("{name} = {value}"))));
    facts
}

/// Why a check failed: its problem or exit code, and the last lines of its output.
fn evidence(check: &CheckResult) -> Vec<String> {
    let code = check.exit_code.map(|code| format!("exit code {code}"));
    let mut lines: Vec<String> = check.problem.clone().or(code).into_iter().collect();
    let output: Vec<&str> = check.evidence.lines().filter(|line| !line.trim().is_empty()).collect();
    let left_out = output.len().saturating_sub(EVIDENCE);
    if left_out > 0 {
        lines.push(format!("… {left_out} lines before these"));
    }
    lines.extend(output.iter().skip(left_out).map(|line| (*line).to_owned()));
    lines
}

fn attempt_lines(paint: Paint, attempt: &Attempt, is_last: bool) -> Vec<String> {
    let end = attempt.end.as_ref().map_or_else(|| "running".to_owned(), in_words);
    let resumed = if attempt.resumed { ", resumed" } else { "" };
    let model = attempt.model.as_deref().map(|model| format!(" ({model})")).unwrap_or_default();
    let head = format!("attempt {}  {}{model}{resumed}: {end}", attempt.n, attempt.agent);
    let mut lines =
        vec![format!("{} {}", paint.bold(&head), paint.dim(&format!("· {}", spent(&attempt.usage))))];
    let message = Some(attempt.text.trim()).filter(|text| !speaks_to_towline(text));
    if let Some(first) = message.and_then(|text| text.lines().next()) {
        lines.push(format!("  “{}”", output::brief(first)));
    }
    for check in attempt.verdict.iter().flat_map(|verdict| &verdict.checks) {
        let sign = if check.met { paint.good("✓") } else { paint.bad("✗") };
        lines.push(format!(
            "  {sign} {} {}",
            output::brief(&check.name),
            paint.dim(&show_duration(check.took))
        ));
        if is_last && !check.met {
            lines.extend(
                evidence(check).iter().map(|line| paint.dim(&format!("      {}", output::brief(line)))),
            );
        }
    }
    let restored = attempt.verdict.iter().flat_map(|verdict| &verdict.restored);
    lines.extend(
        restored.map(|path| paint.warn(&format!("  restored as in the base: {}", output::brief(path)))),
    );
    let checkout = attempt.verdict.as_ref().and_then(|verdict| match verdict.checkout {
        _ if verdict.passed_only_warm() => Some(paint.bad(PASSED_ONLY_WARM)),
        Checkout::Clean => None,
        Checkout::Warm => Some(paint.dim("in a warm checkout")),
        Checkout::WarmThenClean => Some(paint.dim("passed warm, confirmed in a clean checkout")),
    });
    lines.extend(checkout.map(|text| format!("  {text}")));
    lines
}
