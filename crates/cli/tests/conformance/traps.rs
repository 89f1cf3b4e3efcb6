//! Traps of single agents that take the real program and that no case is about.

use std::net::TcpListener;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use towline_testkit::model::{Reply, Rule};
use towline_testkit::scratch::wait_until_process_tree_gone;

use crate::stage::{Line, PROMPT, RIGHT, Stage, done};
use crate::subject::Subject;
use crate::subjects::{claude, claude_older, gemini, opencode};
use crate::support::{LIMIT, finish, of_attempts};

/// Runs until the turn timeout ends the only attempt, against a model whose every answer is this one.
fn assert_turn_timeout_ends(answer: Reply) -> Stage {
    // Slowly, so that whoever asks again at once does not use up the machine.
    let answer = answer.slow(Duration::from_millis(50));
    let stage = Stage::with_model(opencode(), [Rule::always().reply(answer)]);
    let stage = stage.settings("turn_timeout = \"30s\"");
    let ran = stage.desk.towline(["run", PROMPT, "--check", "true", "--budget", "errors=1", "--json"]);
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["timed_out"], "{report}");
    assert_eq!(of_attempts(&report, "detail"), ["turn timeout"], "{report}");
    assert!(stage.model.turns().len() > 1, "it did not ask again");
    wait_until_process_tree_gone(&stage.desk.home.marker(), LIMIT);
    stage
}

#[test]
fn opencode_that_goes_round_and_round_after_answers_that_end_early_is_ended_by_the_turn_timeout() {
    let stage =
        assert_turn_timeout_ends(Reply::text("This sentence will never come to its end.").ends_after(4));
    let answers = stage.model.turns().len();
    assert!(answers > 5, "it gave up after {answers} answers");
}

#[test]
fn opencode_that_is_interrupted_between_two_cut_answers_has_not_completed_its_turn() {
    assert_turn_timeout_ends(Reply::text("This sentence will never come to its end.").cut_after(4));
}

/// Runs a goal where nobody listens at the provider's address, until its first attempt has ended, which returns how.
fn ends_without_provider(subject: &'static dyn Subject, retries: &str) -> Value {
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let mut stage = Stage::of(subject, &[Line::answers("Nobody reads this.")]);
    stage.desk.set("ANTHROPIC_BASE_URL", &format!("http://{nobody}"));
    stage.desk.set("CLAUDE_CODE_MAX_RETRIES", retries);
    let (towline, goal) = stage.start();
    let ended = |report: &Value| !report["attempts"][0]["end"].is_null();
    let report = stage.desk.wait_for(&goal, "the attempt to end", ended);
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C");
    finish(towline);
    let detail = report["attempts"][0]["detail"].as_str().expect("a detail");
    let named = format!("the provider at http://{nobody} was not reached: ");
    assert!(detail.starts_with(&named), "{detail}");
    json!([report["attempts"][0]["end"], detail[named.len()..]])
}

#[test]
fn claude_that_gets_no_answer_is_ended_within_seconds_and_its_provider_is_named() {
    // It would try again ten times, for three minutes.
    for subject in [claude(), claude_older()] {
        let end = ends_without_provider(subject, "10");
        assert_eq!(end, json!(["server_error", "5 requests in a row got no answer"]));
    }
}

#[test]
fn claude_that_gives_up_by_itself_reports_why_its_provider_was_not_reached() {
    for (subject, why) in [(claude(), "(ECONNREFUSED)"), (claude_older(), "(ConnectionRefused)")] {
        let end = ends_without_provider(subject, "1");
        assert_eq!(end[0], "server_error");
        assert!(end[1].as_str().expect("words").ends_with(why), "{end}");
    }
}

#[test]
fn gemini_with_an_mcp_server_is_ended_soon_after_its_turn() {
    let stage = Stage::of(gemini(), &[Line::runs(RIGHT)]);
    let report = done(&stage.run());
    let events = stage.desk.events(report["id"].as_str().expect("an id"));
    let at = |is_it: &dyn Fn(&Value) -> bool| -> Timestamp {
        let event = events.iter().find(|event| is_it(event)).expect("the event");
        event["at"].as_str().expect("a time").parse().expect("a time")
    };
    let turn = at(&|event| event["event"]["event"]["kind"] == "turn_ended");
    let attempt = at(&|event| event["event"]["kind"] == "attempt_ended");
    let took = attempt.duration_since(turn);
    assert!(took < SignedDuration::from_secs(4), "{took}");
}
