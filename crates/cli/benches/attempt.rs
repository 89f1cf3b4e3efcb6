//! What Towline adds to an attempt whose agent answers at once.
//!
//! `cargo xtask bench` runs it. The agent is `echo`, the check is `true`, and the project is small: what is left is
//! Towline's own. The parts are read off the goal's log; the whole is wall time of the release program.

#![expect(clippy::expect_used, reason = "a bench that cannot measure ends with the reason")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use serde_json::Value;
use support::Desk;
use towline_testkit::figures::{Figure, median, shown};
use towline_testkit::scratch::clean_command;

const SECTION: &str = "An attempt whose agent answers at once";
/// How many goals are run.
const TIMES: usize = 25;
/// What Towline may add to an attempt, in milliseconds.
const GOAL: f64 = 60.0;

const SANDBOX: &str = "The sandbox of an attempt";
/// What it may add to an agent and to a check, in milliseconds.
const AGENT_GOAL: f64 = 15.0;
const CHECK_GOAL: f64 = 10.0;

const LARGE: &str = "An attempt in a repository with 100,000 files";
const FILES: usize = 100_000;
/// An attempt makes the candidate and one checkout, and hashes every file of that.
const LARGE_GOAL: f64 = 2.5;

/// The parts of an attempt: the events that they end with.
const PARTS: [(&str, &str); 5] = [
    ("the supervisor and the agent start", "attempt_started"),
    ("the agent, until its tree is gone and its end is reported", "attempt_ended"),
    ("the candidate, and its clean checkout", "check_started"),
    ("the check `true`, under a supervisor of its own", "check_finished"),
    ("the verdict", "verdict_reached"),
];

/// One goal, in milliseconds.
struct Run {
    whole: f64,
    /// From the goal's creation to its workspace, which it gets once.
    workspace: f64,
    parts: [f64; PARTS.len()],
    /// The bare agent.
    agent: f64,
}

impl Run {
    fn attempt(&self) -> f64 {
        self.parts.iter().sum()
    }
}

fn main() {
    in_a_small_repository();
    in_a_sandbox();
    in_a_large_repository();
}

fn desk() -> Desk {
    let desk = Desk::new();
    desk.configure("[defaults]\nagents = [\"instant\"]\n[agents.instant]\nkind = \"command\"\ncommand = [\"echo\", \"done\"]\n");
    desk
}

fn in_a_small_repository() {
    let desk = desk();
    // The first run creates the state folder and its database, and stores the result of the check on the base.
    run(&desk);
    let runs: Vec<Run> = (0..TIMES).map(|_| run(&desk)).collect();
    let middle = |of: &dyn Fn(&Run) -> f64| median(runs.iter().map(of));
    let agent = middle(&|run| run.agent);
    let beside = format!(
        "from the workspace to the verdict: {} ms; the bare agent, `echo`: {} ms",
        shown(middle(&Run::attempt)),
        shown(agent)
    );
    let added = middle(&|run| run.attempt() - run.agent);
    Figure::new(SECTION, "added to the attempt", added, "ms").below(GOAL).beside(beside).print();
    for (place, (what, _)) in PARTS.iter().enumerate() {
        Figure::new(SECTION, format!("— {what}"), middle(&|run| run.parts[place]), "ms").print();
    }
    let beside = "once for a goal: its private clone";
    Figure::new(SECTION, "the workspace", middle(&|run| run.workspace), "ms").beside(beside).print();
    let beside = "`towline run` from its start to its exit";
    Figure::new(SECTION, "the whole goal", middle(&|run| run.whole), "ms").beside(beside).print();
}

/// The same with a sandbox and without, by turns, for a user who develops in three languages.
fn in_a_sandbox() {
    let (open, confined) = (desk(), desk().in_sandbox());
    for cache in [".cargo", ".npm", ".cache/pip"] {
        std::fs::create_dir_all(confined.home.path().join(cache)).expect("a cache");
    }
    run(&open);
    run(&confined);
    let mut bare = Vec::new();
    let in_turn = |_| {
        bare.push(millis(bare_bubblewrap()));
        (run(&open), run(&confined))
    };
    let (open, confined): (Vec<Run>, Vec<Run>) = (0..TIMES).map(in_turn).unzip();
    let bare = median(bare);
    let added = |what: &str, part: fn(&Run) -> f64, goal: f64| {
        let (without, with) = (median(open.iter().map(part)), median(confined.iter().map(part)));
        let beside = format!(
            "with: {} ms; without: {} ms; bubblewrap alone: {} ms",
            shown(with),
            shown(without),
            shown(bare)
        );
        Figure::new(SANDBOX, what, with - without, "ms").below(goal).beside(beside).print();
    };
    added("added to an agent", |run| run.parts[0] + run.parts[1], AGENT_GOAL);
    added("added to a check", |run| run.parts[3], CHECK_GOAL);
}

/// What bubblewrap itself takes, for `true` with the namespaces of a check and nothing but the root directory in it: no sandbox that it
/// makes can take less.
fn bare_bubblewrap() -> Duration {
    let namespaces =
        ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"];
    let mut command = clean_command("bwrap");
    command.args(namespaces).args(["--unshare-net", "--ro-bind", "/", "/", "--", "true"]);
    let confined = taken(|| assert!(command.output().expect("bubblewrap").status.success()));
    let open = taken(|| assert!(clean_command("true").output().expect("true").status.success()));
    confined.saturating_sub(open)
}

/// The same in a large repository, once: beside git's own checkout of the same files.
fn in_a_large_repository() {
    // What is measured is the attempt; the checks on the base are another verdict before it.
    let desk = desk().without_baseline();
    for number in 0..FILES {
        let path = format!("folder-{:02}/{:02}/file-{number}.txt", number % 100, number / 100 % 20);
        desk.project.write(path, format!("file {number}\n"));
    }
    desk.project.commit("many files");
    let checkout = desk.home.path().join("checkout").display().to_string();
    let git = millis(taken(|| {
        desk.project.git(["worktree", "add", "--quiet", "--detach", &checkout]);
    }));
    let run = run(&desk);
    let seconds = |millis: f64| format!("{} s", shown(millis / 1e3));
    let beside = format!("`git worktree add`: {}; the attempt: {}", seconds(git), seconds(run.attempt()));
    Figure::new(LARGE, "the attempt, times git's own checkout", run.attempt() / git, "")
        .below(LARGE_GOAL)
        .gates()
        .beside(beside)
        .print();
    for ((what, _), part) in PARTS.iter().zip(run.parts) {
        Figure::new(LARGE, format!("— {what}"), part, "ms").print();
    }
    let beside = "once for a goal: its private clone";
    Figure::new(LARGE, "the workspace", run.workspace, "ms").beside(beside).print();
}

fn run(desk: &Desk) -> Run {
    let agent = taken(|| assert!(clean_command("echo").output().expect("echo").status.success()));
    let mut report = Value::Null;
    let whole = taken(|| {
        let ran = desk.towline(["run", "answer at once", "--check", "true", "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        report = ran.json();
    });
    let events = desk.events(report["id"].as_str().expect("an id"));
    let begun = time_of(&events, "created");
    let prepared = time_of(&events, "prepared");
    let mut before = prepared;
    let parts = PARTS.map(|(_, event)| {
        let at = time_of(&events, event);
        millis(at - std::mem::replace(&mut before, at))
    });
    Run { whole: millis(whole), workspace: millis(prepared - begun), parts, agent: millis(agent) }
}

fn taken(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

/// When an event was recorded, since the beginning of time.
fn time_of(events: &[Value], kind: &str) -> Duration {
    let event = events.iter().find(|event| event["event"]["kind"] == kind);
    let event = event.unwrap_or_else(|| panic!("no `{kind}` in {events:?}"));
    let at: jiff::Timestamp = event["at"].as_str().expect("a time").parse().expect("a time");
    Duration::try_from(at.as_duration()).expect("after 1970")
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
