//! Everything that is recorded about a goal: its settings, and each of its attempts.

use jiff::Timestamp;
use towline_agent::Kind;
use towline_app::CHANNEL;
use towline_app::report::{WARM, confirmed_by, trust_level};
use towline_core::{
    Attempt, Baseline, BaselineMode, CheckResult, Checkout, Goal, GoalState, Need, Origin, Prerequisite,
    show_duration,
};
use towline_store::GoalRecord;
use towline_terminal::{PASSED_ONLY_WARM, Paint, brief, clock_time, in_words, speaks_to_towline, spent};

use crate::{few, spent_of_limits};

/// How many lines of a failed check's output are shown.
const EVIDENCE: usize = 12;

/// The settings of a goal and what was found out about it, a line each; `hold` is why it waits in the queue.
pub fn fact_lines(record: &GoalRecord, hold: Option<String>, now: Timestamp) -> Vec<String> {
    let mut facts = vec![
        ("id", record.goal.id.to_string()),
        ("repository", record.goal.workspace.repository.clone()),
        ("base", record.goal.workspace.base.to_string()),
    ];
    facts.extend(hold.map(|hold| ("queued", hold)));
    facts.extend(request(record, now));
    if let Some(workspace) = &record.state.workspace {
        facts.extend(record.state.branch.clone().map(|branch| ("branch", branch)));
        let mode = if record.goal.workspace.mode.is_in_place() { " (in place)" } else { "" };
        facts.push(("workspace", format!("{}{mode}", workspace.path)));
    }
    facts.push(("trust", trust_words(&record.state)));
    facts.extend(about(&record.goal));
    facts.extend(
        record.goal.checks.iter().map(|check| ("check", format!("{}: {}", check.name, check.describe()))),
    );
    facts.extend(baseline(record, now));
    facts.extend(conversation(record, now));
    facts.extend(protection(&record.goal));
    let limits = spent_of_limits(record, now);
    if !limits.is_empty() {
        facts.push(("spent", limits.join(" · ")));
    }
    facts.iter().map(|(name, value)| format!("  {name:<10} {}", brief(value))).collect()
}

/// The level of trust of a goal, and why it is that.
pub(crate) fn trust_words(state: &GoalState) -> String {
    let confirmed = confirmed_by(state).filter(|by| *by == WARM);
    let confirmed = confirmed.map_or("", |_| ", confirmed in a warm checkout only");
    let sandbox = state.confined_by();
    let named =
        sandbox.map_or_else(|| "no sandbox".to_owned(), |sandbox| format!("sandbox: {}", sandbox.name()));
    format!("level {}, {named}{confirmed}", trust_level(sandbox))
}

/// What was asked for and when, and what came of it when.
fn request(GoalRecord { goal, state, .. }: &GoalRecord, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    // A short prompt is the title.
    if goal.prompt.trim() != goal.title {
        facts.push(("prompt", goal.prompt.trim().to_owned()));
    }
    let time = |what: &str, at: Timestamp| format!("{what} {}", clock_time(at, now));
    let times = [Some(("created", goal.created_at)), started_at(state).map(|at| ("started", at))];
    let ended = state.settled_at.filter(|_| state.phase.is_settled()).map(|at| (state.phase.name(), at));
    let times = times.into_iter().chain([ended]).flatten().map(|(what, at)| time(what, at));
    facts.push(("times", times.collect::<Vec<_>>().join(" · ")));
    let after = goal.scheduling.after.iter().map(|Prerequisite { goal, need }| match need {
        Need::Done => goal.short(),
        Need::Merged => format!("{} (merged)", goal.short()),
    });
    let after = after.collect::<Vec<_>>().join(", ");
    facts.extend((!after.is_empty()).then_some(("after", after)));
    let priority = goal.scheduling.priority;
    facts.extend((priority != 0).then(|| ("priority", priority.to_string())));
    facts
}

/// When the work began. The start that wall time counts from moves on while a goal waits for a person.
fn started_at(state: &GoalState) -> Option<Timestamp> {
    state.attempts.first().map(|first| first.started_at).into_iter().chain(state.first_started_at).min()
}

/// The result of the checks before any work, and whether the checks are still the same.
fn baseline(GoalRecord { goal, state, .. }: &GoalRecord, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(replaced) = &state.replaced_checks {
        let since = clock_time(replaced.since, now);
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
fn conversation(record: &GoalRecord, now: Timestamp) -> Vec<(&'static str, String)> {
    let GoalState { continued_by, entered_at, .. } = &record.state;
    let continues = record
        .goal
        .continues
        .as_ref()
        .map(|continued| ("continues", format!("the conversation of goal {}", continued.goal.short())));
    let continued = continued_by.map(|by| ("continued", format!("by goal {}", by.short())));
    let entered =
        entered_at.map(|at| ("entered", format!("a person was in the session at {}", clock_time(at, now))));
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

/// The line of an attempt's last message that is shown. What a command printed comes to its point at the end, a message of a
/// model at its beginning.
fn quoted_line(text: &str, kind: Option<Kind>) -> Option<&str> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    if kind == Some(Kind::Command) { lines.next_back() } else { lines.next() }
}

/// An attempt: how it ended, the agent's last message and the results of its checks, with the output of those that failed in
/// the last attempt.
pub fn attempt_lines(paint: Paint, attempt: &Attempt, kind: Option<Kind>, is_last: bool) -> Vec<String> {
    let end = attempt.end.as_ref().map_or_else(|| "running".to_owned(), in_words);
    let resumed = if attempt.resumed { ", resumed" } else { "" };
    let model = attempt.model.as_deref().map(|model| format!(" ({model})")).unwrap_or_default();
    let head = format!("attempt {}  {}{model}{resumed}: {end}", attempt.n, attempt.agent);
    let mut lines =
        vec![format!("{} {}", paint.bold(&head), paint.dim(&format!("· {}", spent(&attempt.usage))))];
    let message = Some(attempt.text.trim()).filter(|text| !speaks_to_towline(text));
    if let Some(line) = message.and_then(|text| quoted_line(text, kind)) {
        lines.push(format!("  “{}”", brief(line)));
    }
    for check in attempt.verdict.iter().flat_map(|verdict| &verdict.checks) {
        let sign = if check.met { paint.good("✓") } else { paint.bad("✗") };
        lines.push(format!("  {sign} {} {}", brief(&check.name), paint.dim(&show_duration(check.took))));
        if is_last && !check.met {
            lines.extend(evidence(check).iter().map(|line| paint.dim(&format!("      {}", brief(line)))));
        }
    }
    let restored = attempt.verdict.iter().flat_map(|verdict| &verdict.restored);
    lines.extend(restored.map(|path| paint.warn(&format!("  restored as in the base: {}", brief(path)))));
    let checkout = attempt.verdict.as_ref().and_then(|verdict| match verdict.checkout {
        _ if verdict.passed_only_warm() => Some(paint.bad(PASSED_ONLY_WARM)),
        Checkout::Clean => None,
        Checkout::Warm => Some(paint.dim("in a warm checkout")),
        Checkout::WarmThenClean => Some(paint.dim("passed warm, confirmed in a clean checkout")),
    });
    lines.extend(checkout.map(|text| format!("  {text}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{at, record};

    #[test]
    fn of_a_command_the_last_line_is_quoted_and_of_a_message_the_first() {
        let text = "reading\nfixed 3 files\n\n";
        assert_eq!(quoted_line(text, Some(Kind::Command)), Some("fixed 3 files"));
        assert_eq!(quoted_line(text, Some(Kind::Claude)), Some("reading"));
        assert_eq!(quoted_line(text, None), Some("reading"));
        assert_eq!(quoted_line(" \n", None), None);
    }

    #[test]
    fn the_request_is_shown_with_its_times_and_its_place_in_the_queue() {
        let mut record = record();
        record.goal.prompt = format!("{}\n\nAll of it.", record.goal.title);
        record.goal.scheduling.priority = 2;
        record.goal.scheduling.after = vec![Prerequisite { goal: record.goal.id, need: Need::Merged }];
        let facts = request(&record, at(0));
        let names: Vec<&str> = facts.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["prompt", "times", "after", "priority"]);
        assert!(facts[1].1.starts_with("created "), "{facts:?}");
        assert_eq!(facts[2].1, format!("{} (merged)", record.goal.id.short()));
    }

    #[test]
    fn the_start_that_is_shown_stays_when_waiting_moves_the_one_that_wall_time_counts_from() {
        let mut state = record().state;
        assert_eq!(started_at(&state), Some(at(0)), "before the first attempt");
        state.attempts[0].started_at = at(60);
        assert_eq!(started_at(&state), Some(at(0)), "when the workspace was made");
        state.first_started_at = Some(at(3_600));
        assert_eq!(started_at(&state), Some(at(60)));
    }
}
