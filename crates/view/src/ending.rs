//! The end of a story: how the goal ended, and what to do now.

use jiff::Timestamp;
use towline_app::report::{WARM, confirmed_by};
use towline_app::{NextStep, hint_about_end};
use towline_core::{GoalState, Phase, Usage, show_duration};
use towline_store::GoalRecord;
use towline_terminal::{Paint, brief, clock_time, counted, printable, question_lines, spent, time_left};

use crate::facts::trust_words;
use crate::hints::words;

/// How many lines of a long reason are shown: the last ones, because errors are at the end of what a command prints.
const MORE: usize = 12;

/// How the goal ended: one line, and more if the reason has more.
pub fn ending(paint: Paint, record: &GoalRecord, now: Timestamp) -> Vec<String> {
    let state = &record.state;
    let why = without_repetition(state);
    let mut reasons = why.trim_end().lines();
    let reason = reasons.next().map(brief).unwrap_or_default();
    let head = match &state.phase {
        Phase::Done if state.changed() == Some(false) => paint.warn("✓ done, and nothing was changed"),
        Phase::Done => paint.good("✓ done"),
        Phase::Unproven => {
            paint.warn("? unproven: the agent reports that it is done, and the goal has no checks")
        }
        Phase::Cancelled => paint.warn("cancelled"),
        Phase::Paused { .. } => paint.warn(&format!("paused{reason}")),
        Phase::Escalated { .. } => paint.warn(&format!("! a person is needed{reason}")),
        Phase::Blocked { .. } => paint.warn(&format!("? waiting for an answer: {}", asked(record))),
        Phase::Failed { .. } => paint.bad(&format!("✗ failed{reason}")),
        Phase::Limited { until, .. } | Phase::Sleeping { until, .. } => {
            format!("{} until {}{reason}", state.phase.name(), clock_time(*until, now))
        }
        phase => format!("{}{reason}", phase.name()),
    };
    let mut facts = Vec::new();
    if let (Phase::Done, Some(candidate)) = (&state.phase, &state.candidate) {
        facts.push(format!("candidate {}", candidate.short()));
        if confirmed_by(state) == Some(WARM) {
            facts.push("confirmed warm, not in a clean checkout".to_owned());
        }
    }
    if state.phase != Phase::Done && state.phase.has_ended() && state.changed() == Some(false) {
        facts.push("nothing was changed".to_owned());
    }
    if let Some(merge) = &state.merged {
        facts.push(format!("merged into {}", brief(&merge.into)));
    }
    facts.push(counted(state.attempts.len(), "attempt"));
    // What happens to a settled goal later, such as a merge, does not make its work longer.
    let worked_until = state.settled_at.unwrap_or(record.updated_at);
    facts
        .push(show_duration(elapsed(state.first_started_at.unwrap_or(record.goal.created_at), worked_until)));
    let usage = state.usage();
    if usage != Usage::nothing() {
        facts.push(spent(&usage));
    }
    let mut lines = vec![format!("{head} {}", paint.dim(&format!("· {}", facts.join(" · "))))];
    let reasons: Vec<&str> = reasons.collect();
    let (before, last) = reasons.split_at(reasons.len().saturating_sub(MORE));
    if !before.is_empty() {
        let (count, id) = (before.len(), record.goal.id.short());
        lines.push(paint.dim(&format!("    … {count} lines before: towline logs {id}")));
    }
    lines.extend(last.iter().map(|line| paint.dim(&format!("    {}", brief(line)))));
    lines.extend(open_questions(record, now));
    lines.extend(hint_about_end(record).map(|hint| paint.dim(&format!("    hint: {hint}"))));
    lines
}

/// What follows the phase: its reason, without what the line of the last attempt shows in full.
fn without_repetition(state: &GoalState) -> String {
    let why = state.why(&state.phase);
    let detail = state.last_attempt().and_then(|last| last.end.as_ref()?.detail());
    let shown = detail.filter(|detail| brief(detail) == *detail).map(|detail| format!(": {detail}"));
    match shown.and_then(|shown| why.strip_suffix(&shown).map(str::to_owned)) {
        Some(short) if !short.is_empty() => short,
        _ => why,
    }
}

/// What is asked, with options and defaults. The head has the first line of what a blocked goal waits for.
fn open_questions(record: &GoalRecord, now: Timestamp) -> Vec<String> {
    let state = &record.state;
    let open: Vec<_> = state.open_questions().filter(|_| state.phase.takes_answers()).collect();
    let is_in_head =
        matches!(state.phase, Phase::Blocked { .. }) && printable(&first_asked(record)) == asked(record);
    let in_head = usize::from(is_in_head);
    let lines = open.iter().flat_map(|question| {
        let number = Some(question.n).filter(|_| open.len() > 1);
        question_lines(&question.ask, number, time_left(state, question, now))
    });
    lines.skip(in_head).collect()
}

fn asked(record: &GoalRecord) -> String {
    brief(&first_asked(record))
}

/// The first line of what is asked first.
fn first_asked(record: &GoalRecord) -> String {
    let title = record.state.open_question().map(|question| question.ask.title()).unwrap_or_default();
    title.lines().next().unwrap_or_default().to_owned()
}

fn elapsed(from: Timestamp, to: Timestamp) -> std::time::Duration {
    std::time::Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// What a goal that is done proves.
pub fn trust_line(record: &GoalRecord) -> Option<String> {
    (record.state.phase == Phase::Done).then(|| named("trust", &trust_words(&record.state)))
}

/// What a person can do now, each with its command.
pub fn step_lines(steps: &[NextStep]) -> Vec<String> {
    steps.iter().map(|(what, hint)| named(what, &printable(&words(hint)))).collect()
}

fn named(name: &str, text: &str) -> String {
    format!("  {:<24} {text}", format!("{name}:"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use towline_core::FailureReason;

    use super::*;
    use crate::samples::{at, record};
    use crate::spent_of_limits;

    #[test]
    fn the_time_of_a_finished_goal_does_not_grow() {
        let mut record = record();
        record.state.phase = Phase::Done;
        record.state.settled_at = Some(at(90));
        let shown = |record: &GoalRecord, now| {
            (ending(Paint::Plain, record, at(now)), spent_of_limits(record, at(now)))
        };
        let before = shown(&record, 100);
        assert!(before.0[0].contains(" · 1m 30s · "), "{before:?}");
        assert!(before.1.iter().any(|limit| limit == "wall 1m 30s of 4h"), "{before:?}");
        // A merge a day later changes the record, and nothing about the work.
        record.updated_at = at(90) + Duration::from_secs(86_400);
        assert_eq!(shown(&record, 90_000), before);
    }

    #[test]
    fn a_long_reason_is_shown_by_its_last_lines() {
        let mut record = record();
        let printed: Vec<String> = (1..=90).map(|number| format!("npm line {number}")).collect();
        let error = format!("the setup command failed. Output:\n{}", printed.join("\n"));
        record.state.phase = Phase::Failed { reason: FailureReason::Setup { error } };
        let lines = ending(Paint::Plain, &record, at(100));
        let before = format!("    … 78 lines before: towline logs {}", record.goal.id.short());
        assert_eq!((&lines[1], &lines[2]), (&before, &"    npm line 79".to_owned()));
        assert!(lines.contains(&"    npm line 90".to_owned()), "{lines:?}");
    }

    #[test]
    fn a_limited_goal_shows_until_when() {
        let mut record = record();
        record.state.phase = Phase::Limited { until: at(3_600), guessed: false };
        let lines = ending(Paint::Plain, &record, at(86_400));
        assert!(lines[0].starts_with("limited until 2027-01-15 09:00 "), "{lines:?}");
    }
}
