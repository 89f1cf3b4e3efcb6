//! Verdicts with warm directories, driven by the real program: reused while red, confirmed clean when green, gone at the end.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use support::{Desk, LIMIT, Ran, finish};
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::wait_for;

/// Counts in the warm directory how often it was used, and prints the count.
const COUNT: &str = "mkdir -p target; echo run >> target/runs; wc -l < target/runs";

/// An agent that adds a line to `work.txt` in each attempt and stores its prompt outside of the workspace.
fn desk(then: &str, workspace: &str) -> Desk {
    let desk = Desk::new();
    let script = desk.home.path().join("agent");
    let body = format!("#!/bin/sh\ncat >> \"$HOME/prompts\"\necho line >> work.txt\n{then}\necho Done.\n");
    fs::write(&script, body).expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).expect("executable");
    desk.configure(&format!(
        "[defaults]\nagents = [\"sh\"]\n[agents.sh]\nkind = \"command\"\ncommand = [{:?}]\n[workspace]\n{workspace}\n",
        script.display().to_string()
    ));
    desk
}

/// Passes in the attempt with this number.
fn counted_until(attempt: usize) -> String {
    format!("{COUNT}; test $(wc -l < work.txt) -ge {attempt}")
}

fn checkouts(desk: &Desk) -> Vec<PathBuf> {
    let entries = fs::read_dir(desk.home.towline().join("verify")).into_iter().flatten();
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

#[track_caller]
fn assert_no_checkout(desk: &Desk) {
    let left = checkouts(desk);
    assert!(left.is_empty(), "{left:?}");
}

fn events_of(desk: &Desk, goal: &str, kind: &str) -> Vec<Value> {
    let events = desk.events(goal).into_iter().map(|event| event["event"].clone());
    events.filter(|event| event["kind"] == kind).collect()
}

/// What each check printed first, in the order in which they ran.
fn counts(desk: &Desk, goal: &str) -> Vec<String> {
    let first = |event: &Value| {
        let evidence = event["result"]["evidence"].as_str().expect("evidence");
        evidence.lines().next().unwrap_or_default().to_owned()
    };
    events_of(desk, goal, "check_finished").iter().map(first).collect()
}

fn of_verdicts(report: &Value, field: &str) -> Vec<Value> {
    let attempts = report["attempts"].as_array().expect("attempts");
    attempts.iter().map(|attempt| attempt["verdict"][field].clone()).collect()
}

fn id(report: &Value) -> &str {
    report["id"].as_str().expect("an id")
}

#[test]
fn with_claude_the_second_verdict_is_warm_and_then_confirmed_in_a_clean_checkout() {
    let bash = |command: &str| Reply::tool("Bash", json!({"command": command, "description": "do it"}));
    let corrects = Matcher::any_text_contains("# Checks that failed");
    let model = ModelServer::start([
        Rule::when(Matcher::after_tool_result()).reply(Reply::text("Done.")),
        Rule::when(corrects).reply(bash("echo towline > motto.txt")),
        Rule::always().reply(bash("echo tugboat > motto.txt")),
    ]);
    let desk = Desk::with_claude(&model);
    desk.agent_settings("[workspace]\nwarm = [\"target\"]");
    let check = format!("{COUNT}; grep -x towline motto.txt");
    let ran = desk.towline(["run", "Write the motto", "--check", &check, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_verdicts(&report, "met"), [false, true], "{report}");
    assert_eq!(of_verdicts(&report, "checkout"), ["clean", "warm_then_clean"]);
    assert_eq!(report["trust"]["confirmed"], "clean");
    assert_eq!(counts(&desk, id(&report)), ["1", "2", "1"], "the confirmation saw no warm directory");
    let confirming = "all checks passed in a warm checkout; running them again in a clean one";
    let notices = events_of(&desk, id(&report), "notice");
    assert!(notices.iter().any(|notice| notice["text"] == confirming), "{notices:?}");
    assert_no_checkout(&desk);
    let shown = desk.towline(["show", id(&report)]).stdout;
    assert!(shown.contains("passed warm, confirmed in a clean checkout"), "{shown}");
}

#[test]
fn without_confirmation_the_last_line_and_the_report_have_warm() {
    let desk = desk("", "warm = [\"target\"]\nconfirm = \"never\"");
    let ran = desk.towline(["run", "work", "--check", &counted_until(2)]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("confirmed warm, not in a clean checkout"), "{}", ran.stdout);
    let report = desk.show(&desk.only_goal());
    assert_eq!(report["trust"]["confirmed"], "warm");
    assert_eq!(of_verdicts(&report, "checkout"), ["clean", "warm"]);
    assert_eq!(counts(&desk, id(&report)), ["1", "2"]);
    let shown = desk.towline(["show", id(&report)]).stdout;
    assert!(shown.contains("confirmed in a warm checkout only"), "{shown}");
}

#[test]
fn a_verdict_that_passed_only_warm_is_reported_as_that_everywhere() {
    let desk = desk("", "warm = [\"target\"]");
    let check = "test -e target/old; found=$?; mkdir -p target; touch target/old; exit $found";
    let ran = desk.towline(["run", "work", "--check", check, "--budget", "attempts=3"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let words = "passed warm, failed in a clean checkout";
    assert!(ran.stdout.contains(words), "{}", ran.stdout);
    let goal = desk.only_goal();
    let report = desk.show(&goal);
    assert_eq!(of_verdicts(&report, "met"), [false, false, false]);
    assert_eq!(of_verdicts(&report, "checkout"), ["clean", "warm_then_clean", "clean"]);
    assert_eq!(report["trust"]["confirmed"], Value::Null);
    let shown = desk.towline(["show", &goal]).stdout;
    assert!(shown.contains(words), "{shown}");
    let prompts = fs::read_to_string(desk.home.path().join("prompts")).expect("prompts");
    assert!(prompts.contains("with build output of an earlier run (`target`)"), "{prompts}");
    assert_no_checkout(&desk);
}

#[test]
fn the_second_red_with_the_same_failing_checks_drops_the_warm_directories() {
    let desk = desk("", "warm = [\"target\"]");
    let check = format!("{COUNT}; false");
    let report = desk.towline(["run", "work", "--check", &check, "--budget", "attempts=4", "--json"]).json();
    assert_eq!(of_verdicts(&report, "checkout"), ["clean", "warm", "clean", "warm"], "{report}");
    assert_eq!(counts(&desk, id(&report)), ["1", "2", "1", "2"]);
    assert_no_checkout(&desk);
}

#[test]
fn an_agent_that_writes_to_the_warm_directories_does_not_make_its_goal_done() {
    let plant = "for place in \"$HOME\"/../towline/verify/*/target; do touch \"$place/planted\"; done";
    let desk = desk(plant, "warm = [\"target\"]");
    let check = "mkdir -p target; test -e target/planted";
    let ran = desk.towline(["run", "cheat", "--check", check, "--budget", "attempts=2", "--json"]);
    let report = ran.json();
    assert_eq!(report["phase"], "failed", "{report}");
    assert_eq!(
        of_verdicts(&report, "checkout"),
        ["clean", "warm_then_clean"],
        "the trick was seen by the first run"
    );
}

/// A goal that is paused after its first verdict, which was red.
fn paused() -> (Desk, String) {
    let lingers =
        "if test $(wc -l < work.txt) -eq 2; then touch \"$HOME/lingers\"; exec tail -f /dev/null; fi";
    let desk = desk(lingers, "warm = [\"target\"]");
    let run = desk.start(["run", "work", "--check", &counted_until(3), "--json"]);
    let goal = desk.only_goal();
    wait_for(LIMIT, "the second attempt", || desk.home.path().join("lingers").exists());
    let paused: Ran = desk.towline(["pause", &goal]);
    assert_eq!(paused.code, Some(0), "{paused:?}");
    finish(run);
    (desk, goal)
}

#[test]
fn a_paused_goal_keeps_its_warm_directories_and_uses_them_when_it_is_resumed() {
    let (desk, goal) = paused();
    let place = desk.home.towline().join("verify").join(&goal);
    assert_eq!(checkouts(&desk), std::slice::from_ref(&place));
    assert_eq!(fs::read_to_string(place.join("target/runs")).expect("a count"), "run\n");
    // Other engines come and go.
    assert_eq!(desk.towline(["run", "work", "--check", "true"]).code, Some(0));
    let left = desk.towline(["gc", "--json"]).json()["kept"].clone();
    let left: Vec<&Value> = left.as_array().expect("a list").iter().map(|entry| &entry["path"]).collect();
    assert!(left.contains(&&json!(place.display().to_string())), "{left:?}");
    let doctor = desk.towline(["doctor", "--json"]).json()["store"]["checkouts"].clone();
    assert_eq!(doctor["goals"], 1, "{doctor}");
    assert!(doctor["bytes"].as_u64().is_some_and(|bytes| bytes > 4), "{doctor}");

    let resumed = desk.towline(["resume", &goal, "--json"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(counts(&desk, &goal).first().map(String::as_str), Some("1"));
    let checkout =
        resumed.json()["attempts"].as_array().expect("attempts").last().expect("one")["verdict"]["checkout"]
            .clone();
    assert_eq!(checkout, "warm_then_clean");
    assert_no_checkout(&desk);
}

#[test]
fn removing_a_goal_removes_its_warm_directories_and_counts_them() {
    let (desk, goal) = paused();
    let big = desk.home.towline().join("verify").join(&goal).join("target/big");
    fs::write(&big, vec![0; 1 << 20]).expect("written");
    let removed = desk.towline(["rm", "--force", &goal, "--json"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(removed.stdout.contains("bytes"), "{removed:?}");
    assert_no_checkout(&desk);
}
