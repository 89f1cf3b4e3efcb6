//! What the terminal of a server shows: a line for each thing that matters.

use std::collections::BTreeMap;

use jiff::Timestamp;
use towline_core::{Event, GoalId, Phase, QuestionNo};
use towline_store::GoalRecord;
use towline_terminal::{brief, clock_time};

/// A line about a goal in the terminal of a server.
pub fn journal_line(at: Timestamp, goal: GoalId, what: &str, now: Timestamp) -> String {
    format!("{}  {}  {what}", clock_time(at, now), goal.short())
}

/// Whether a server shows this event.
pub const fn is_worth_a_line(event: &Event) -> bool {
    matches!(event, Event::Dispatched { .. } | Event::PhaseChanged { .. })
}

/// The questions that have a line. A goal is blocked twice by one: when its agent asks, and when that agent has ended.
#[derive(Debug, Default)]
pub struct ShownQuestions(BTreeMap<GoalId, QuestionNo>);

impl ShownQuestions {
    /// Whether the event is about a question that has its line. Those of goals that are settled are forgotten.
    pub fn has_shown(&mut self, goal: GoalId, event: &Event) -> bool {
        let Event::PhaseChanged { phase } = event else { return false };
        if phase.is_settled() {
            self.0.remove(&goal);
        }
        let Phase::Blocked { question, .. } = phase else { return false };
        self.0.insert(goal, *question) == Some(*question)
    }
}

/// What happened to a goal, in the words of a server's terminal; none for what only matters to those who watch the goal.
pub fn what_happened(event: &Event, record: &GoalRecord, now: Timestamp) -> Option<String> {
    let (title, state) = (brief(&record.goal.title), &record.state);
    let why = |phase: &Phase| state.why(phase).lines().next().map(brief).unwrap_or_default();
    Some(match event {
        Event::Dispatched { .. } if state.attempts.is_empty() => format!("starts: {title}"),
        Event::Dispatched { .. } => format!("continues: {title}"),
        Event::PhaseChanged { phase } => match phase {
            Phase::Blocked { question, .. } => {
                let asked = state.question(*question).map(|question| brief(&question.ask.title()));
                format!("needs an answer: {title}: {}", asked.unwrap_or_default())
            }
            Phase::Escalated { .. } => format!("needs you: {title}{}", why(phase)),
            Phase::Limited { until, .. } => {
                format!("waits for the quota until {}: {title}", clock_time(*until, now))
            }
            Phase::Done => format!("is done: {title}"),
            Phase::Unproven => format!("ended without checks: {title}"),
            Phase::Failed { .. } => format!("failed: {title}{}", why(phase)),
            Phase::Cancelled => format!("was cancelled: {title}"),
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use towline_core::{AttemptNo, Axis, FailureReason, PauseReason, StopWhy, Stopping};

    use super::*;
    use crate::samples::{at, record};

    #[test]
    fn a_question_gets_one_line_however_often_it_blocks_its_goal() {
        let goal = record().goal.id;
        let attempt = Some(AttemptNo::FIRST);
        let blocked = |number, attempt| Phase::Blocked { question: QuestionNo(number), attempt, until: None };
        let stopping = Phase::Stopping(Stopping { attempt, why: StopWhy::Asked });
        let paused = Phase::Paused { reason: PauseReason::Operator };
        let mut shown = ShownQuestions::default();
        for (phase, is_shown) in [
            (blocked(1, attempt), false),
            (stopping, false),
            (blocked(1, None), true),
            (blocked(2, None), false),
            (paused, false),
            (blocked(2, None), false),
        ] {
            let event = Event::PhaseChanged { phase };
            assert_eq!(shown.has_shown(goal, &event), is_shown, "{event:?}");
        }
        assert_eq!(shown.0.len(), 1);
        shown.has_shown(goal, &Event::PhaseChanged { phase: Phase::Done });
        assert!(shown.0.is_empty(), "ended goals use no space");
    }

    #[test]
    fn what_matters_gets_a_line_and_the_rest_none() {
        let record = record();
        let entered = |phase: Phase| what_happened(&Event::PhaseChanged { phase }, &record, at(0));
        let title = brief(&record.goal.title);
        assert_eq!(entered(Phase::Done), Some(format!("is done: {title}")));
        let until = at(3_600);
        assert_eq!(
            entered(Phase::Limited { until, guessed: false }),
            Some(format!("waits for the quota until 09:00:00: {title}"))
        );
        let failed = entered(Phase::Failed { reason: FailureReason::Budget { axis: Axis::Usd } });
        assert!(failed.is_some_and(|text| text.starts_with(&format!("failed: {title}: "))));
        assert_eq!(entered(Phase::Queued), None);
        assert_eq!(entered(Phase::Paused { reason: PauseReason::Operator }), None);
        assert!(!is_worth_a_line(&Event::Created));
        let line = journal_line(at(0), record.goal.id, "is done: x", at(0));
        assert!(line.ends_with(&format!("  {}  is done: x", record.goal.id.short())), "{line}");
    }
}
