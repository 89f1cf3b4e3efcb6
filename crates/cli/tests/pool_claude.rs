//! A server with the real Claude Code against a scripted model: it is killed while agents ask, work and are paused, and each
//! conversation goes on in its session.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use serde_json::{Value, json};
use support::server::{add, down, kill, post, up, up_with};
use support::{Desk, LIMIT, of_attempts};
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::{wait_for, wait_until_process_tree_gone};

fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command, "description": "do it"}))
}

/// Waits until the model was asked in this conversation, and Claude Code has it in its file.
fn wait_until_under_way(desk: &Desk, model: &ModelServer, prompt: &str, stored: &str) {
    wait_for(LIMIT, prompt, || model.turns().iter().any(|turn| turn.all_text().contains(prompt)));
    desk.wait_until_claude_stored(stored);
}

fn assert_one_session(report: &Value) {
    assert_eq!(of_attempts(report, "resumed"), [false, true], "{report}");
    let sessions = of_attempts(report, "session");
    assert!(sessions[0].is_string() && sessions[0] == sessions[1], "{report}");
}

#[test]
fn claude_asks_another_goal_takes_its_slot_the_server_is_killed_and_the_answer_by_http_resumes_the_session() {
    let ask = json!({"question": "Which colour?", "options": ["red", "blue"]});
    let sweeps = || Matcher::any_text_contains("sweep the floor");
    let model = ModelServer::start([
        Rule::when(sweeps().and(Matcher::after_tool_result())).reply(Reply::text("It is clean.")),
        Rule::when(sweeps()).reply(bash("until test -e go; do sleep 0.1; done; echo clean > floor.txt")),
        Rule::when(
            Matcher::any_text_contains("Which colour?\n  blue").and(Matcher::after_tool_result().negated()),
        )
        .reply(bash("echo blue > colour.txt")),
        Rule::when(Matcher::after_tool_result())
            .then(Reply::text("I have asked."))
            .then(Reply::text("It is blue.")),
        Rule::always().reply(Reply::tool("mcp__towline__ask", ask)),
    ]);
    let desk = Desk::with_claude(&model).without_baseline().in_sandbox();
    let killed = up_with(&desk, &["--slots", "1"]);
    let asking = add(&desk, "paint the door", &["--check", "test -f colour.txt"]);
    let beside = add(&desk, "sweep the floor", &["--check", "test -f floor.txt"]);
    desk.wait_for_phase(&asking, "blocked");
    // Its slot is free for the other one, which works while the server is killed.
    wait_until_under_way(&desk, &model, "sweep the floor", "until test -e go");
    kill(killed);

    let server = up_with(&desk, &["--slots", "1"]);
    let (status, answered) = post(&desk, &format!("/goals/{asking}/answer"), &json!({"text": "blue"}));
    assert_eq!(status, 200, "{answered}");
    let beside_now = desk.show(&beside);
    assert_eq!(beside_now["phase"], "running", "{beside_now}");
    assert_eq!(desk.show(&asking)["phase"], "queued", "the only slot is taken");
    let floor = beside_now["workspace"].as_str().expect("a workspace");
    std::fs::write(std::path::Path::new(floor).join("go"), "").expect("written");
    let swept = desk.wait_for_phase(&beside, "done");
    assert_eq!(of_attempts(&swept, "end"), ["completed"], "it was adopted");
    let painted = desk.wait_for_phase(&asking, "done");
    assert_one_session(&painted);
    let heard =
        model.turns().iter().filter(|turn| turn.prompt_text().contains("Which colour?\n  blue")).count();
    assert_eq!(heard, 1, "the model gets the answer once as a prompt");
    down(&desk, server);
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn a_message_to_a_paused_goal_reaches_the_model_in_its_session_after_the_server_was_killed() {
    let model = ModelServer::start([
        Rule::when(Matcher::any_text_contains("make it blue").and(Matcher::after_tool_result()))
            .reply(Reply::text("It is blue.")),
        Rule::when(Matcher::any_text_contains("make it blue")).reply(bash("echo blue > colour.txt")),
        Rule::always().reply(bash("until test -e go; do sleep 0.1; done")),
    ]);
    let desk = Desk::with_claude(&model).without_baseline().in_sandbox();
    let killed = up(&desk);
    let goal = add(&desk, "paint the door", &["--check", "test -f colour.txt"]);
    wait_until_under_way(&desk, &model, "paint the door", "until test -e go");
    let (status, paused) = post(&desk, &format!("/goals/{goal}/pause"), &Value::Null);
    assert_eq!(status, 200, "{paused}");
    desk.wait_for_phase(&goal, "paused");
    let sent = desk.towline(["tell", &goal, "make it blue"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    kill(killed);

    let between = up(&desk);
    assert_eq!(desk.show(&goal)["phase"], "paused", "a person has paused it");
    kill(between);
    let server = up(&desk);
    let (status, resumed) = post(&desk, &format!("/goals/{goal}/resume"), &Value::Null);
    assert_eq!(status, 200, "{resumed}");
    let done = desk.wait_for_phase(&goal, "done");
    assert_one_session(&done);
    let heard = model.turns().iter().filter(|turn| turn.prompt_text().contains("make it blue")).count();
    assert_eq!(heard, 1, "the model gets the message once");
    let turns = model.turns();
    let last = turns.last().expect("turns").all_text();
    assert!(last.contains("paint the door"), "the conversation goes on: {last}");
    down(&desk, server);
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}
