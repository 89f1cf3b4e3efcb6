//! Stops of every kind, a hundred in all, of trees that do what they can to survive: their processes are in sessions
//! of their own, ignore signals, fork when they are asked to end and move on from process to process. Nothing may be
//! left of any of them.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use support::{Desk, LIMIT, finish, of_attempts};
use towline_testkit::hostile;
use towline_testkit::scratch::{wait_for, wait_until_process_tree_gone};

/// Stops of each kind, and how many of them at the same time.
const STOPS: usize = 20;
const AT_ONCE: usize = 5;

/// Once towline has ended, the tree is gone; its supervisor may be leaving.
const AT_ONCE_GONE: Duration = Duration::from_secs(1);

/// Starts the tools and marks that they run. Should a test fail, they end by themselves: what moves on from process to
/// process, and so may escape the clean-up, within a minute or two, the others within ten.
const TOOLS: &str = r#"
stubborn='trap "" INT TERM HUP; sleep 600'
forker='trap "" INT HUP; trap "setsid sleep 600 & setsid sh -c \"$1\" &" TERM
  n=0; while [ $n -lt 6000 ]; do sleep 0.1; n=$((n + 1)); done'
wanderer='trap "" INT TERM HUP; sleep 0.04
  [ $2 -lt 1 ] || setsid sh -c "$1" sh "$1" $(($2 - 1)) &'
setsid sh -c "$stubborn" &
setsid sh -c "$forker" sh "$stubborn" </dev/null >/dev/null 2>&1 &
setsid sh -c "$wanderer" sh "$wanderer" 1200 </dev/null >/dev/null 2>&1 &
setsid sh -c 'setsid sh -c "$1" sh "$1" 1200 & sleep 600' sh "$wanderer" </dev/null >/dev/null 2>&1 &
: > "$HOME/standing"
"#;

/// An agent with such tools in the middle of a turn.
fn agent(dir: &Path) -> std::path::PathBuf {
    let body = format!("await_prompt\ninit\n{TOOLS}\nassistant 'Working.'\nlinger\n");
    hostile::with_body(dir, "wandering", &body)
}

fn desk_with_agent() -> Desk {
    let desk = Desk::with_script(agent);
    desk.agent_settings("stop_grace = \"100ms\"");
    desk
}

fn is_complete(desk: &Desk) -> bool {
    desk.home.path().join("standing").exists()
}

fn start(desk: &Desk, more: &[&str]) -> Child {
    let towline = desk.start(["run", "never stop", "--check", "true", "--json"].iter().chain(more));
    wait_for(LIMIT, "the tree to be complete", || is_complete(desk));
    towline
}

fn press_ctrl_c(towline: &Child) {
    kill_process(Pid::from_child(towline), Signal::INT).expect("Ctrl-C");
}

/// Stops so many trees, some at the same time, and looks after each.
fn again_and_again(stop: impl Fn() -> Desk + Sync) {
    let begun = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while begun.fetch_add(1, Ordering::Relaxed) < STOPS {
                    let desk = stop();
                    wait_until_process_tree_gone(&desk.home.marker(), AT_ONCE_GONE);
                }
            });
        }
    });
}

#[test]
fn a_turn_that_takes_too_long_leaves_nothing() {
    let complete = AtomicUsize::new(0);
    again_and_again(|| {
        let desk = desk_with_agent();
        desk.agent_settings("turn_timeout = \"2s\"");
        let ran = desk.towline(["run", "never stop", "--check", "true", "--budget", "errors=1", "--json"]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let report = ran.json();
        assert_eq!(of_attempts(&report, "end"), ["timed_out"], "{report}");
        complete.fetch_add(usize::from(is_complete(&desk)), Ordering::Relaxed);
        desk
    });
    assert!(
        complete.into_inner() > 0,
        "the time was always up before the tree was complete: nothing was tested"
    );
}

#[test]
fn a_budget_that_is_spent_in_mid_turn_leaves_nothing() {
    again_and_again(|| {
        let desk = desk_with_agent();
        let ran = desk.towline(["run", "never stop", "--check", "true", "--budget", "tokens=15", "--json"]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let report = ran.json();
        assert_eq!(
            (&report["reason"], &report["attempts"][0]["end"]),
            (&json!("budget: tokens"), &json!("over_budget"))
        );
        assert!(is_complete(&desk), "there was no tree");
        desk
    });
}

#[test]
fn a_cancelled_goal_leaves_nothing() {
    again_and_again(|| {
        let desk = desk_with_agent();
        let towline = start(&desk, &[]);
        let cancelled = desk.towline(["cancel", &desk.only_goal()]);
        assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
        let ran = finish(towline);
        assert_eq!(ran.code, Some(130), "{ran:?}");
        assert_eq!(of_attempts(&ran.json(), "end"), ["cancelled"]);
        desk
    });
}

#[test]
fn a_goal_cancelled_during_its_checks_leaves_nothing() {
    again_and_again(|| {
        let desk = Desk::with_script(hostile::well_behaved).without_baseline();
        let check = desk.home.path().join("check");
        std::fs::write(&check, format!("{TOOLS}\nsleep 600\n")).expect("a check");
        let towline = desk.start(["run", "check for ever", "--check", "sh \"$HOME/check\"", "--json"]);
        wait_for(LIMIT, "the check's tree to be complete", || is_complete(&desk));
        let cancelled = desk.towline(["cancel", &desk.only_goal()]);
        assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
        let ran = finish(towline);
        assert_eq!(ran.code, Some(130), "{ran:?}");
        let report = ran.json();
        assert_eq!(
            (&report["phase"], &report["attempts"][0]["end"]),
            (&json!("cancelled"), &json!("completed"))
        );
        desk
    });
}

#[test]
fn a_second_ctrl_c_leaves_nothing() {
    again_and_again(|| {
        let desk = Desk::with_script(agent);
        // A grace that nobody would wait for: only insisting ends it in time.
        desk.agent_settings("stop_grace = \"10m\"");
        let towline = start(&desk, &[]);
        let goal = desk.only_goal();
        press_ctrl_c(&towline);
        wait_for(LIMIT, "the goal to be stopping", || desk.show(&goal)["phase"] == "stopping");
        press_ctrl_c(&towline);
        let ran = finish(towline);
        assert_eq!(ran.code, Some(130), "{ran:?}");
        assert_eq!(of_attempts(&ran.json(), "end"), ["cancelled"]);
        desk
    });
}
