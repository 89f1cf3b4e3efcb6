//! Goals in a table, one a row.

use std::path::Path;

use jiff::Timestamp;
use towline_api::HoldReport;
use towline_app::Holds;
use towline_app::report::UNREADABLE;
use towline_core::{MicroUsd, Phase, Spent};
use towline_store::{GoalSummary, Listed};
use towline_terminal::{age, brief, clock_time, cut, table};

/// Instead of a value that there is not.
const NOTHING: &str = "–";

/// How many columns the phase and its reason may take, and how many of a hundred in a narrow terminal.
const PHASE: usize = 40;
const PART: usize = 35;

/// Each goal in a row below the names of the columns, as far as there is room.
pub fn goal_table(listed: &[Listed], holds: &Holds, now: Timestamp, room: Option<usize>) -> Vec<String> {
    let heads = ["ID", "AGE", "PROJECT", "PHASE", "AGENT", "ATTEMPTS", "COST", "TITLE"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let for_phase = room.map_or(usize::MAX, |width| PHASE.min(width * PART / 100));
    rows.extend(listed.iter().map(|listed| match listed {
        Listed::Goal(goal) => cells(goal, holds.report(goal.id, now), now, for_phase),
        Listed::Unreadable(goal) => {
            let [project, agent, attempts, cost] = [NOTHING; 4].map(str::to_owned);
            let (age, why) = (age(goal.created_at, now), brief(&goal.why));
            vec![goal.id.short(), age, project, UNREADABLE.to_owned(), agent, attempts, cost, why]
        }
    }));
    table(&rows, &["ATTEMPTS", "AGENT", "PROJECT", "COST", "AGE"], room)
}

fn cells(goal: &GoalSummary, hold: Option<HoldReport>, now: Timestamp, room: usize) -> Vec<String> {
    let project = Path::new(&goal.repository).file_name().unwrap_or_default();
    vec![
        goal.id.short(),
        age(goal.created_at, now),
        brief(&project.to_string_lossy()),
        match hold {
            Some(hold) => cut(&format!("{}: {}", goal.phase.name(), brief(&hold.text)), room),
            None => phase(goal, now, room),
        },
        goal.agent.as_ref().map(ToString::to_string).unwrap_or_default(),
        goal.attempts.to_string(),
        match goal.usage.spent() {
            _ if !goal.usage.knows_cost() => "unknown".to_owned(),
            Spent { amount: MicroUsd(0), .. } => NOTHING.to_owned(),
            spent => spent.to_string(),
        },
        brief(&goal.title),
    ]
}

/// The phase with its reason, as far as there is room.
fn phase(goal: &GoalSummary, now: Timestamp, room: usize) -> String {
    let name = goal.phase.name();
    let text = match (&goal.phase, &goal.merged) {
        (_, Some(_)) => format!("{name}, merged"),
        (Phase::Blocked { .. }, None) => format!("{name}: needs an answer"),
        (Phase::Limited { until, .. } | Phase::Sleeping { until, .. }, None) => {
            format!("{name} until {}", clock_time(*until, now))
        }
        (phase, None) => {
            let why = phase.why(|_| goal.spent.clone());
            format!("{name}{}", why.lines().next().map(brief).unwrap_or_default())
        }
    };
    cut(&text, room)
}

#[cfg(test)]
mod tests {
    use towline_core::{Axis, FailureReason, PauseReason};

    use super::*;
    use crate::samples::{at, record};

    const fn failed(axis: Axis) -> Phase {
        Phase::Failed { reason: FailureReason::Budget { axis } }
    }

    #[test]
    fn a_waiting_goal_has_its_time_and_another_one_its_reason() {
        let until = at(3_600);
        for (phase, wanted) in [
            (Phase::Limited { until, guessed: true }, "limited until 09:00:00"),
            (Phase::Sleeping { until, reason: "CI".into() }, "sleeping until 09:00:00"),
            (Phase::Done, "done"),
            (Phase::Paused { reason: PauseReason::Operator }, "paused by you"),
            (Phase::Paused { reason: PauseReason::Shutdown }, "paused by a shutdown signal"),
            (failed(Axis::Usd), "failed: budget of $0.05 spent ($0.06)"),
        ] {
            let spent = Some("budget of $0.05 spent ($0.06)".to_owned());
            let goal = GoalSummary { phase, spent, ..GoalSummary::of(&record()) };
            assert_eq!(super::phase(&goal, at(0), PHASE), wanted);
        }
        // One that an earlier version recorded.
        let goal = GoalSummary { phase: failed(Axis::Usd), spent: None, ..GoalSummary::of(&record()) };
        assert_eq!(super::phase(&goal, at(0), PHASE), "failed: budget: usd");
        assert_eq!(super::phase(&goal, at(0), 10), "failed: b…");
    }
}
