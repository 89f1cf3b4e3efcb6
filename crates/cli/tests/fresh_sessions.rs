//! New sessions of the real Claude Code: on request, and when the model changes.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use serde_json::{Value, json};
use support::{Desk, LIMIT, of_attempts};
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::wait_until_process_tree_gone;

const PROMPT: &str = "Write the word towline into the file motto.txt";
const CHECK: &str = "echo looking for the motto; grep -x towline motto.txt";

fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command, "description": "do it"}))
}

/// Writes the right word in the third attempt, and wrong ones before.
fn model_that_needs_three_attempts() -> ModelServer {
    ModelServer::start([
        Rule::when(Matcher::any_text_contains("tugboat2"))
            .reply(bash("echo towline > motto.txt"))
            .then(done()),
        Rule::when(Matcher::any_text_contains("# Checks that failed"))
            .reply(bash("echo tugboat2 > motto.txt; cat motto.txt"))
            .then(done()),
        Rule::always().reply(bash("echo tugboat1 > motto.txt")).then(done()),
    ])
}

fn done() -> Reply {
    Reply::text("Written.")
}

/// A goal whose first attempt left the check red and its budget spent.
fn failed_goal(desk: &Desk) -> String {
    let ran = desk.towline(["run", PROMPT, "--check", CHECK, "--budget", "attempts=1", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    ran.json()["id"].as_str().expect("an id").to_owned()
}

fn retry(desk: &Desk, goal: &str, flags: &[&str]) -> Value {
    let args = ["retry", goal, "--budget", "attempts=+1", "--json"];
    desk.towline(args.iter().chain(flags)).json()
}

/// The notices about sessions, in the order in which they were recorded.
fn notices(desk: &Desk, goal: &str) -> Vec<String> {
    let events = desk.events(goal);
    let texts = events.iter().filter_map(|event| event["event"]["text"].as_str());
    texts.filter(|text| text.starts_with("the session is not continued")).map(str::to_owned).collect()
}

fn assert_has_everything(model: &ModelServer) {
    let turns = model.turns();
    let mut prompts = turns.iter().rev().map(|turn| turn.prompt_text());
    let prompt = prompts.find(|prompt| prompt.contains("# Checks that failed")).expect("a prompt");
    for wanted in [PROMPT, "# How it will be checked", "looking for the motto\n", "exit code 1"] {
        assert!(prompt.contains(wanted), "no {wanted:?} in {prompt}");
    }
}

#[test]
fn a_retry_can_ask_for_a_new_session_that_gets_everything() {
    let model = model_that_needs_three_attempts();
    let desk = Desk::with_claude(&model);
    let goal = failed_goal(&desk);
    let report = retry(&desk, &goal, &["--fresh"]);
    assert_eq!(of_attempts(&report, "resumed"), [false, false]);
    assert_ne!(report["attempts"][0]["session"], report["attempts"][1]["session"]);
    assert_has_everything(&model);
    let notice = "the session is not continued: the operator asked for it; the next attempt starts a new one";
    assert_eq!(notices(&desk, &goal), [notice]);
    // Without the flag, the new session goes on.
    let report = retry(&desk, &goal, &[]);
    assert_eq!(
        (&report["phase"], of_attempts(&report, "resumed")),
        (&json!("done"), vec![json!(false), json!(false), json!(true)])
    );
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn another_model_starts_a_new_session_that_gets_everything() {
    let model = model_that_needs_three_attempts();
    let mut desk = Desk::with_claude(&model);
    desk.set("TOWLINE_SET_agents__claude__model", "claude-one");
    let goal = failed_goal(&desk);
    // The configuration changes.
    desk.unset("TOWLINE_SET_agents__claude__model");
    desk.set("TOWLINE_SET_agents__claude__model", "claude-two");
    let report = retry(&desk, &goal, &[]);
    assert_eq!(of_attempts(&report, "resumed"), [false, false], "{report}");
    assert_has_everything(&model);
    // The operator names another one.
    let report = retry(&desk, &goal, &["--model", "claude-three"]);
    assert_eq!(of_attempts(&report, "resumed"), [false, false, false], "{report}");
    assert_eq!(of_attempts(&report, "model"), ["claude-one", "claude-two", "claude-three"]);
    assert_has_everything(&model);
    let notice = |from: &str, to: &str| {
        format!(
            "the session is not continued: the model changed from {from} to {to}; the next attempt starts a new one"
        )
    };
    let wanted = [notice("claude-one", "claude-two"), notice("claude-two", "claude-three")];
    assert_eq!(notices(&desk, &goal), wanted);
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}
