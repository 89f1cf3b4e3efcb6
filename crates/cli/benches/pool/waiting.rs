//! A server whose goals all wait: it has nothing to do until one of them is due or somebody comes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use towline_core::{Goal, GoalState, Need, PauseReason, Phase, Prerequisite};
use towline_engine::{Clock, SystemClock};
use towline_testkit::figures::{Figure, shown};

use crate::processes::{Watched, pss_of, wait_for_rest, watch};
use crate::server::Server;
use crate::stored::{AGENT, Template, fill};
use crate::support::Desk;

const SECTION: &str = "1,000 goals that wait";
const GOALS: usize = 1_000;
/// How long the server is watched.
const WATCHED: Duration = Duration::from_secs(10);

pub(crate) fn measure() {
    let mut desk = Desk::new();
    desk.leaves_nothing_to_replay("no goal starts");
    desk.configure(&format!("[agents.{AGENT}]\nkind = \"command\"\ncommand = [\"true\"]\n"));
    let template = Template::of(&desk.project);
    let until = SystemClock.now().checked_add(SignedDuration::from_hours(24)).expect("tomorrow");
    let first = template.goal(0);
    let paused =
        GoalState { phase: Phase::Paused { reason: PauseReason::Operator }, ..GoalState::new(&first) };
    let needed = Prerequisite { goal: first.id, need: Need::Done };
    let others = (1..GOALS).map(|number| waiting(template.goal(number), number, until, needed));
    fill(&desk.home.towline().join("towline.db"), std::iter::once((paused, first)).chain(others));

    let server = Server::up(&desk, 4);
    wait_for_rest(server.pid());
    let Watched { work: [work], seconds } = watch([server.pid()], WATCHED);
    let memory = pss_of(server.pid());
    server.down(&desk);

    let time = format!("over {} s", shown(seconds.round()));
    Figure::new(SECTION, "the server wakes up", work.switches as f64, "times")
        .below(1.0)
        .beside(time)
        .print();
    Figure::new(SECTION, "its processor time", work.ticks as f64, "ticks")
        .below(1.0)
        .beside(format!("PSS: {} MB", shown(memory / 1e6)))
        .print();
}

/// A goal that waits: for a time, for its provider, for a person, or for another goal.
fn waiting(mut goal: Goal, number: usize, until: Timestamp, needed: Prerequisite) -> (GoalState, Goal) {
    let phase = match number % 4 {
        0 => Phase::Sleeping { until, reason: "the build takes a while".to_owned() },
        1 => Phase::Limited { until, guessed: false },
        2 => Phase::Paused { reason: PauseReason::Operator },
        _ => {
            goal.scheduling.after.push(needed);
            Phase::Queued
        }
    };
    (GoalState { phase, ..GoalState::new(&goal) }, goal)
}
