//! What the log has of a verdict that was interrupted because its engine was killed.

use towline_check::Interrupted;
use towline_core::{Check, Envelope, Event, Goal, Seq};

use crate::engine::Shared;

/// How many events are read. A verdict that has more of them runs again from its start.
const MOST_EVENTS: u64 = 256;

/// The check or setup command that may still run, with the results before it. None when nothing was running, and when the log
/// cannot be read: the verdict then runs from its start.
pub(crate) async fn find(shared: &Shared, goal: &Goal, last: Seq) -> Option<Interrupted> {
    let after = Seq(last.0.saturating_sub(MOST_EVENTS));
    let events = shared.store.events(goal.id, after, usize::try_from(MOST_EVENTS).ok()?).await.ok()?;
    interrupted(&events, &goal.checks)
}

/// Reads the end of a log backwards: first what has begun and not ended, then the results of the checks before it. The directory
/// of a check's run begins with its number, that of a setup command with a word.
pub(crate) fn interrupted(events: &[Envelope], checks: &[Check]) -> Option<Interrupted> {
    let mut newest_first = events.iter().rev().filter(|envelope| is_of_verdict(&envelope.event));
    let begun = newest_first.next()?;
    let Event::CheckStarted { process: Some(process), .. } = &begun.event else { return None };
    let before = match process.directory.split_once('-')?.0 {
        "setup" => &[],
        number => checks.get(..number.parse::<usize>().ok()?.checked_sub(1)?)?,
    };
    // Judges are asked after all other checks.
    let before = before.iter().filter(|check| !check.kind.is_judge());
    let mut finished = newest_first.filter(|envelope| !matches!(envelope.event, Event::CheckStarted { .. }));
    let mut results = Vec::new();
    for check in before.rev() {
        match &finished.next()?.event {
            Event::CheckFinished { result } if result.name == check.name => results.push(result.clone()),
            _ => return None,
        }
    }
    results.reverse();
    let started_at_ms = u64::try_from(begun.at.as_millisecond()).ok()?;
    Some(Interrupted { results, process: process.clone(), started_at_ms })
}

/// Whether an event belongs to a verdict, or ends one.
fn is_of_verdict(event: &Event) -> bool {
    matches!(
        event,
        Event::CheckStarted { .. }
            | Event::CheckFinished { .. }
            | Event::VerdictReached { .. }
            | Event::ChecksFailed { .. }
            | Event::JudgeUnavailable { .. }
            | Event::AttemptEnded { .. }
            | Event::Stopped
    )
}
