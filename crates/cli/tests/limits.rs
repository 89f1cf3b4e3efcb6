//! Quotas and failing providers, with the real Claude Code against a scripted model: the goal waits without an
//! attempt being spent, and goes on in the same session.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use support::{Desk, LIMIT, finish, of_attempts};
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::wait_until_process_tree_gone;

const PROMPT: &str = "Write the word towline into the file motto.txt";
const CHECK: &str = "grep -x towline motto.txt";

fn run(desk: &Desk) -> (std::process::Child, String) {
    let towline = desk.start(["run", PROMPT, "--check", CHECK, "--json"]);
    let goal = desk.only_goal();
    (towline, goal)
}

/// Does the work once the first requests have met their fate.
fn model_that_first_answers(first: Reply, times: usize) -> ModelServer {
    let write = json!({"command": "echo towline > motto.txt", "description": "write the motto"});
    ModelServer::start([
        Rule::when(Matcher::new(move |request| request.turn <= Some(times))).reply(first),
        Rule::always().reply(Reply::tool("Bash", write)).then(Reply::text("Written.")),
    ])
}

#[expect(clippy::disallowed_methods, reason = "the scripted model reports the real time")]
fn in_four_seconds() -> String {
    (Timestamp::now() + Duration::from_secs(4)).as_second().to_string()
}

/// The reset of the quota in the agent's frames.
fn announced_reset(desk: &Desk, goal: &str) -> Timestamp {
    let raw = desk.towline(["logs", goal, "--raw", "--attempt", "1"]).stdout;
    let mut frames = raw.lines().map(|line| serde_json::from_str::<Value>(line).expect("a frame"));
    let limit = frames.find(|frame| frame["type"] == "rate_limit_event").expect("word of the limit");
    let reset = limit["rate_limit_info"]["resetsAt"].as_i64().expect("a reset time");
    Timestamp::from_second(reset).expect("in range")
}

fn time(value: &Value) -> Timestamp {
    value.as_str().expect("a time").parse().expect("a time")
}

#[test]
fn an_announced_limit_parks_the_goal_until_its_reset_and_then_the_session_goes_on() {
    let rejected = Reply::rate_limited()
        .header("anthropic-ratelimit-unified-status", "rejected")
        .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
        .header_at_delivery("anthropic-ratelimit-unified-reset", in_four_seconds);
    let model = model_that_first_answers(rejected, 1);
    let mut desk = Desk::with_claude(&model);
    desk.unset("ANTHROPIC_API_KEY");
    desk.set("CLAUDE_CODE_OAUTH_TOKEN", "dummy");
    let (towline, goal) = run(&desk);

    let limited = desk.wait_for_phase(&goal, "limited");
    let reset = announced_reset(&desk, &goal);
    assert_eq!((&limited["reason"], time(&limited["until"])), (&Value::Null, reset));
    assert_eq!(of_attempts(&limited, "end"), ["rate_limited"]);
    assert_eq!(time(&limited["attempts"][0]["limit_until"]), reset);
    assert_eq!(limited["budget"]["attempts"], json!({"limit": 10, "left": 10}));

    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["rate_limited", "completed"]);
    assert_eq!(of_attempts(&report, "resumed"), [false, true]);
    assert_eq!(report["attempts"][0]["session"], report["attempts"][1]["session"]);
    assert!(time(&report["attempts"][1]["started_at"]) >= reset, "{report}");
    assert_eq!(report["budget"]["attempts"], json!({"limit": 10, "left": 9}));
    let answered = &model.turns()[1];
    assert!(
        answered.all_text().contains(PROMPT),
        "the model never heard of the goal: {}",
        answered.all_text()
    );
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn a_limit_without_a_reset_time_is_waited_for_by_a_guess_that_is_shown_as_one() {
    let model = model_that_first_answers(Reply::rate_limited().header("retry-after", 3_600), usize::MAX);
    let desk = Desk::with_claude(&model);
    let (towline, goal) = run(&desk);

    let limited = desk.wait_for_phase(&goal, "limited");
    assert_eq!(limited["reason"], "the reset time is a guess");
    let wait = time(&limited["until"]).duration_since(time(&limited["attempts"][0]["ended_at"]));
    assert_eq!(wait, SignedDuration::from_secs(60));
    assert_eq!(of_attempts(&limited, "end"), ["rate_limited"]);
    assert_eq!(limited["budget"]["attempts"]["left"], 10);
    assert_eq!(model.turns().len(), 1, "a limited model was asked again");

    // From a second terminal the wait is ended, and the next guess is twice as long.
    let resumed = desk.towline(["resume", &goal]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.stdout.contains("stops waiting"), "{resumed:?}");
    let limited = desk.wait_for(&goal, "the second limit", |report| {
        report["phase"] == "limited" && report["attempts"].as_array().map(Vec::len) == Some(2)
    });
    let wait = time(&limited["until"]).duration_since(time(&limited["attempts"][1]["ended_at"]));
    assert_eq!(wait, SignedDuration::from_secs(120));

    let cancelled = desk.towline(["cancel", &goal]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    let ran = finish(towline);
    assert_eq!((ran.code, &ran.json()["phase"]), (Some(130), &json!("cancelled")));
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn a_failing_provider_is_waited_out_and_the_session_goes_on() {
    let model = model_that_first_answers(Reply::server_error(), 2);
    let mut desk = Desk::with_claude(&model);
    desk.set("CLAUDE_CODE_MAX_RETRIES", "1");
    let (towline, goal) = run(&desk);

    let sleeping = desk.wait_for_phase(&goal, "sleeping");
    assert_eq!(of_attempts(&sleeping, "end"), ["server_error"]);
    let reason = sleeping["reason"].as_str().expect("a reason");
    assert!(reason.contains("server error"), "{reason}");
    assert!(sleeping["until"].is_string(), "{sleeping}");
    // The model was never reached.
    let budget = &sleeping["budget"];
    assert_eq!((&budget["attempts"]["left"], &budget["errors"]["left"]), (&json!(10), &json!(5)));

    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["server_error", "completed"]);
    assert_eq!(of_attempts(&report, "resumed"), [false, true]);
    assert_eq!(report["attempts"][0]["session"], report["attempts"][1]["session"]);
    let answered = &model.turns()[2];
    assert!(
        answered.all_text().contains(PROMPT),
        "the model never heard of the goal: {}",
        answered.all_text()
    );
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}
