//! Pausing and resuming from the outside: by SIGTERM, by a second terminal, and by a signal to the supervisor.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use support::{Desk, Ran, finish, of_attempts};
use towline_testkit::hostile;
use towline_testkit::scratch::wait_until_process_tree_gone;

/// An agent that never ends by itself. Resumed with a prompt that reports the interruption, it finishes.
fn works_until_interrupted(dir: &Path, before: &str) -> PathBuf {
    let body = format!(
        r#"
{before}
await_prompt
case "$line" in
  *Interrupted*)
    init
    echo done > work.txt
    assistant 'Done.'
    result false null 'Done.'
    while IFS= read -r line; do :; done
    exit 0 ;;
esac
init
assistant 'Working.'
linger
"#
    );
    hostile::with_body(dir, "works", &body)
}

fn desk() -> Desk {
    Desk::with_script(|dir| works_until_interrupted(dir, ""))
}

const RUN: [&str; 5] = ["run", "finish it", "--check", "test -s work.txt", "--json"];

fn send(signal: Signal, process: u32) {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(process, signal).expect("the signal is sent");
}

/// Waits until the agent works.
fn wait_for_work(desk: &Desk, goal: &str) {
    desk.wait_for(goal, "work", |report| {
        report["attempts"][0]["usage"]["output"].as_u64().is_some_and(|output| output > 0)
    });
}

fn assert_paused(desk: &Desk, goal: &str, reason: &str) {
    let report = desk.show(goal);
    assert_eq!((&report["phase"], &report["reason"]), (&json!("paused"), &json!(reason)), "{report}");
    assert_eq!(of_attempts(&report, "end"), ["interrupted"], "{report}");
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
}

/// The goal resumes in its session, and the pause cost nothing.
fn assert_done(resumed: &Ran) {
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let report = resumed.json();
    assert_eq!(of_attempts(&report, "end"), ["interrupted", "completed"]);
    assert_eq!(report["attempts"][0]["session"], report["attempts"][1]["session"]);
    assert_eq!(report["budget"]["attempts"], json!({"limit": 10, "left": 9}));
}

#[test]
fn sigterm_pauses_and_the_only_paused_goal_is_resumed_in_its_session() {
    let desk = desk();
    let run = desk.start(RUN);
    let goal = desk.only_goal();
    wait_for_work(&desk, &goal);
    send(Signal::TERM, run.id());
    let ran = finish(run);
    assert_eq!(ran.code, Some(143), "{ran:?}");
    assert_paused(&desk, &goal, "shutdown");
    assert_done(&desk.towline(["resume", "--json"]));
}

#[test]
fn sigterm_takes_less_than_eight_seconds_with_an_agent_that_ignores_it() {
    let desk = Desk::with_script(|dir| works_until_interrupted(dir, "trap '' INT TERM HUP"));
    let run = desk.start(RUN);
    let goal = desk.only_goal();
    wait_for_work(&desk, &goal);
    let asked = Instant::now();
    send(Signal::TERM, run.id());
    let ran = finish(run);
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
    assert_eq!(ran.code, Some(143), "{ran:?}");
    assert_paused(&desk, &goal, "shutdown");
}

#[test]
fn a_goal_is_paused_from_a_second_terminal() {
    let desk = desk();
    let run = desk.start(RUN);
    let goal = desk.only_goal();
    wait_for_work(&desk, &goal);
    let paused = desk.towline(["pause", &goal]);
    assert_eq!(paused.code, Some(0), "{paused:?}");
    assert_eq!(finish(run).code, Some(143));
    assert_paused(&desk, &goal, "operator");
    let twice = desk.towline(["pause", &goal]);
    assert_eq!(twice.code, Some(2), "{twice:?}");
    assert_done(&desk.towline(["resume", &goal, "--json"]));
}

#[test]
fn a_signal_to_the_supervisor_pauses_the_goal() {
    let desk = desk();
    let run = desk.start(RUN);
    let goal = desk.only_goal();
    wait_for_work(&desk, &goal);
    let dir = desk.show(&goal)["attempts"][0]["dir"].as_str().expect("a directory").to_owned();
    let supervisor = towline_process::supervisor_process(Path::new(&dir)).expect("its identity");
    send(Signal::TERM, supervisor.expect("the supervisor").pid);
    let ran = finish(run);
    assert_eq!(ran.code, Some(143), "{ran:?}");
    assert_paused(&desk, &goal, "shutdown");
    assert_done(&desk.towline(["resume", &goal, "--json"]));
}

#[test]
fn a_pause_whose_engine_was_killed_is_completed_by_resuming() {
    let desk = Desk::with_script(|dir| works_until_interrupted(dir, "trap '' INT TERM HUP"));
    let run = desk.start(RUN);
    let goal = desk.only_goal();
    wait_for_work(&desk, &goal);
    send(Signal::TERM, run.id());
    desk.wait_for(&goal, "the pause to be stored", |report| report["phase"] == "stopping");
    send(Signal::KILL, run.id());
    finish(run);
    assert_done(&desk.towline(["resume", &goal, "--json"]));
}

#[test]
fn nothing_is_resumed_where_nothing_is_paused() {
    let desk = desk();
    let none = desk.towline(["resume"]);
    assert_eq!(none.code, Some(5), "{none:?}");
}
