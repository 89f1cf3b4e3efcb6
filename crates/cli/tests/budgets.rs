//! Every budget from the outside: reaching it ends the goal as failed, in mid-turn where it can be reached there,
//! and keeps a turn from starting where it is reached before.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Desk, Ran, of_attempts};
use towline_testkit::hostile;
use towline_testkit::scratch::wait_until_process_tree_gone;

/// Changes something in each turn, so that it is the budget that ends the goal and not the lack of progress.
fn busy(dir: &Path) -> PathBuf {
    hostile::doing(dir, "date +%s%N >> work.txt")
}

fn run(desk: &Desk, check: &str, budget: &str) -> Ran {
    desk.towline(["run", "spend it", "--check", check, "--budget", budget, "--json"])
}

/// The goal failed by this axis and nothing runs any more.
fn assert_spent(desk: &Desk, ran: &Ran, axis: &str, ends: &[&str]) -> Value {
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let report = ran.json();
    assert_eq!((&report["phase"], &report["reason"]), (&json!("failed"), &json!(format!("budget: {axis}"))));
    assert_eq!(of_attempts(&report, "end"), ends, "{report}");
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
    report
}

fn prompts(desk: &Desk) -> usize {
    hostile::received(&desk.home.path().join("doing")).len()
}

#[test]
fn tokens_that_are_spent_end_the_turn_and_are_counted() {
    let body = "await_prompt\ninit\nassistant 'Working.'\nlinger\n";
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "spends", body));
    let report = assert_spent(&desk, &run(&desk, "true", "tokens=15"), "tokens", &["over_budget"]);
    // It was ended before it could report its cost.
    let used = json!({
        "input": 10, "output": 5, "cache_read": 0, "cache_write": 0,
        "cost_usd": null, "estimated": false, "partial": false,
    });
    assert_eq!((&report["usage"], &report["attempts"][0]["usage"]), (&used, &used));
    assert_eq!(report["budget"]["tokens"], json!({"limit": 15, "left": 0}));
}

#[test]
fn money_that_is_spent_ends_what_still_runs_after_the_turn() {
    let body = "await_prompt\ninit\nresult false null 'Done, but busy.'\nlinger\n";
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "spends", body));
    let report = assert_spent(&desk, &run(&desk, "false", "usd=0.001"), "usd", &["completed"]);
    assert_eq!(report["usage"]["cost_usd"], 0.001);
    assert_eq!(report["attempts"][0]["verdict"]["met"], false, "{report}");
}

#[test]
fn a_turn_that_finished_over_budget_is_done_when_its_work_passes() {
    let desk = Desk::with_script(busy);
    let ran = run(&desk, "test -s work.txt", "usd=0.001");
    assert_eq!((ran.code, &ran.json()["phase"]), (Some(0), &json!("done")), "{ran:?}");
}

#[test]
fn work_of_a_turn_that_was_stopped_over_budget_is_done_when_it_passes() {
    let body = "await_prompt\ninit\necho x > work.txt\nassistant 'Working.'\nlinger\n";
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "spends", body));
    let ran = run(&desk, "test -s work.txt", "tokens=15");
    let report = ran.json();
    assert_eq!((ran.code, &report["phase"]), (Some(0), &json!("done")), "{ran:?}");
    assert_eq!(of_attempts(&report, "end"), ["over_budget"]);
}

#[test]
fn money_adds_up_over_the_attempts() {
    let desk = Desk::with_script(busy);
    let ran = run(&desk, "false", "usd=0.0015");
    assert_spent(&desk, &ran, "usd", &["completed", "completed"]);
}

#[test]
fn tokens_and_money_that_are_spent_keep_the_next_turn_from_starting() {
    let desk = Desk::with_script(busy);
    let report = assert_spent(&desk, &run(&desk, "false", "attempts=1"), "attempts", &["completed"]);
    let goal = report["id"].as_str().expect("an id");
    for (budget, fix) in [("tokens=15", "--budget tokens=+"), ("usd=0.001", "--budget usd=+")] {
        let refused = desk.towline(["retry", goal, "--budget", "attempts=+1", "--budget", budget]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(fix), "{}", refused.stderr);
    }
    assert_eq!(prompts(&desk), 1);
}

#[test]
fn turns_that_are_spent_keep_the_next_from_starting() {
    let desk = Desk::with_script(busy);
    assert_spent(&desk, &run(&desk, "false", "turns=2"), "turns", &["completed", "completed"]);
    assert_eq!(prompts(&desk), 2);
}

#[test]
fn time_that_is_up_ends_the_turn() {
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "lingers", "await_prompt\ninit\nlinger\n"));
    assert_spent(&desk, &run(&desk, "true", "wall=2s"), "wall", &["over_budget"]);
}

#[test]
fn time_that_is_up_between_turns_keeps_the_next_from_starting() {
    let desk = Desk::with_script(busy);
    assert_spent(&desk, &run(&desk, "sleep 3; false", "wall=3s"), "wall", &["completed"]);
    assert_eq!(prompts(&desk), 1);
}

#[test]
fn time_that_is_up_ends_the_checks_and_a_retry_runs_them_first() {
    let desk = Desk::with_script(busy);
    let quick = desk.home.path().join("quick");
    let slow = format!("test -e '{}' || sleep 600", quick.display());
    let report = assert_spent(&desk, &run(&desk, &slow, "wall=4s"), "wall", &["completed"]);
    std::fs::write(quick, "").expect("the check passes from now on");
    let goal = report["id"].as_str().expect("an id");
    let retried = desk.towline(["retry", goal, "--budget", "wall=+1h", "--json"]);
    assert_eq!((retried.code, &retried.json()["phase"]), (Some(0), &json!("done")), "{retried:?}");
    assert_eq!(prompts(&desk), 1);
}

#[test]
fn time_that_is_up_ends_the_setup() {
    let desk = Desk::with_script(busy);
    desk.agent_settings("[workspace]\nsetup = [\"sleep 600\"]");
    assert_spent(&desk, &run(&desk, "true", "wall=2s"), "wall", &[]);
}

#[test]
fn bad_endings_in_a_row_spend_the_errors() {
    let desk = Desk::with_script(hostile::dies_in_half_a_line);
    let report = assert_spent(&desk, &run(&desk, "true", "errors=2"), "errors", &["crashed", "crashed"]);
    assert_eq!(report["attempts"][0]["session"], report["attempts"][1]["session"]);
}

#[test]
fn refused_permissions_in_a_row_end_the_turn() {
    let body = r#"
await_prompt
init
n=0
while [ $n -lt 10 ]; do
  n=$((n + 1))
  printf '{"type":"control_request","request_id":"r%s","request":{"subtype":"can_use_tool","tool_name":"WebFetch","input":{"url":"http://localhost"},"tool_use_id":"toolu_%s"}}\n' $n $n
  IFS= read -r answer
done
linger
"#;
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "begs", body));
    desk.agent_settings("permission = \"deny\"");
    let report = assert_spent(&desk, &run(&desk, "true", "denials=3"), "denials", &["over_budget"]);
    let decisions = report["attempts"][0]["decisions"].as_array().expect("decisions");
    let denied = json!({"tool": "WebFetch", "outcome": "deny", "by": "rule"});
    assert!(decisions.len() >= 3 && decisions.iter().all(|decision| *decision == denied), "{decisions:?}");
}
