//! What a command costs beside many stored goals.
//!
//! `cargo xtask bench` runs it. Each size has a state directory of its own, filled through the store with goals that have ended
//! after three attempts. The commands are timed in turns, so that a busy moment of the machine meets all sizes.

#![expect(clippy::expect_used, reason = "a bench that cannot measure ends with the reason")]

#[path = "shared/stored.rs"]
mod stored;
#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use jiff::Timestamp;
use stored::{AGENT, Template, fill};
use support::Desk;
use towline_core::{AgentName, Attempt, AttemptNo, Goal, GoalId, GoalState, Phase};
use towline_engine::{Clock, SystemClock};
use towline_testkit::figures::{Figure, median, shown};

const SECTION: &str = "Commands beside many goals";
/// How many goals are stored.
const SIZES: [usize; 3] = [1, 1_000, 100_000];
/// How often each command is run on each size.
const TIMES: usize = 15;
/// What a command may take beside the most goals, times what it takes beside one.
const GOAL: f64 = 2.0;

/// Runs a command and returns how long it took, in milliseconds.
type Timed = fn(&mut Stored) -> f64;

const COMMANDS: [(&str, Timed); 4] =
    [("show ID", show), ("ls -n 20", ls), ("cancel ID", cancel), ("run, until its agent starts", run)];

/// A state directory with goals.
struct Stored {
    desk: Desk,
    goals: usize,
    /// One that has ended.
    ended: GoalId,
    /// Those that have not begun, one for each `cancel`.
    queued: VecDeque<GoalId>,
}

fn main() {
    let mut all: Vec<Stored> = SIZES.into_iter().map(Stored::new).collect();
    let mut taken: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    // The first round warms the caches of the system.
    for round in 0..=TIMES {
        for (place, (_, command)) in COMMANDS.iter().enumerate() {
            for stored in &mut all {
                let millis = command(stored);
                if round > 0 {
                    taken.entry((place, stored.goals)).or_default().push(millis);
                }
            }
        }
    }
    for (place, (what, _)) in COMMANDS.iter().enumerate() {
        let times = SIZES.map(|goals| median(taken[&(place, goals)].iter().copied()));
        let beside: Vec<String> = SIZES
            .iter()
            .zip(times)
            .map(|(goals, millis)| format!("{}: {} ms", shown(*goals as f64), shown(millis)))
            .collect();
        let slowest = times.into_iter().fold(0.0, f64::max);
        Figure::new(SECTION, format!("`{what}`, times the same beside one goal"), slowest / times[0], "")
            .below(GOAL)
            .gates()
            .beside(beside.join("; "))
            .print();
    }
}

impl Stored {
    fn new(goals: usize) -> Self {
        let mut desk = Desk::new();
        desk.leaves_nothing_to_replay("its goals were never run");
        let agent = format!("[agents.{AGENT}]\nkind = \"command\"\ncommand = [\"echo\", \"done\"]\n");
        desk.configure(&format!("[defaults]\nagents = [\"{AGENT}\"]\n{agent}"));
        let template = Template::of(&desk.project);
        let queued: Vec<Goal> = (goals..=goals + TIMES).map(|number| template.goal(number)).collect();
        let ids = queued.iter().map(|goal| goal.id).collect();
        let ended = (0..goals).map(|number| template.goal(number)).map(|goal| (ended_state(&goal), goal));
        let queued = queued.into_iter().map(|goal| (GoalState::new(&goal), goal));
        fill(&desk.home.towline().join("towline.db"), ended.chain(queued));
        let middle = template.goal(goals / 2).id;
        Self { desk, goals, ended: middle, queued: ids }
    }

    /// How long a command takes, in milliseconds.
    fn time(&self, args: &[&str]) -> f64 {
        let begun = Instant::now();
        let ran = self.desk.towline(args);
        let millis = begun.elapsed().as_secs_f64() * 1e3;
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        millis
    }
}

fn show(stored: &mut Stored) -> f64 {
    stored.time(&["show", &stored.ended.short()])
}

fn ls(stored: &mut Stored) -> f64 {
    stored.time(&["ls", "-n", "20"])
}

fn cancel(stored: &mut Stored) -> f64 {
    let goal = stored.queued.pop_front().expect("a goal for each time");
    stored.time(&["cancel", &goal.to_string()])
}

fn run(stored: &mut Stored) -> f64 {
    let begun = SystemClock.now();
    let ran = stored.desk.towline(["run", "answer at once", "--check", "true", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let goal = ran.json()["id"].as_str().expect("an id").to_owned();
    let events = stored.desk.events(&goal);
    let started =
        events.iter().find(|event| event["event"]["kind"] == "attempt_started").expect("it started");
    let started: Timestamp = started["at"].as_str().expect("a time").parse().expect("a time");
    started.duration_since(begun).as_secs_f64() * 1e3
}

/// A goal that was done in its third attempt.
fn ended_state(goal: &Goal) -> GoalState {
    let attempt = |number| {
        let number = AttemptNo::new(number).expect("no attempt 0");
        let mut attempt = Attempt::begun(goal.id, number, AgentName::new(AGENT), None, goal.created_at);
        attempt.ended_at = Some(goal.created_at);
        attempt.text = "The tests pass now; what failed was the order of the arguments. ".repeat(20);
        attempt
    };
    let attempts = (1..=3).map(attempt).collect();
    GoalState { phase: Phase::Done, settled_at: Some(goal.created_at), attempts, ..GoalState::new(goal) }
}
