//! A context that fills up, with the real Claude Code against a scripted model.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use serde_json::{Value, json};
use support::{Desk, of_attempts};
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule, Usage};

const PROMPT: &str = "Write the word towline into the file motto.txt";
const CHECK: &str = "grep -x towline motto.txt";
/// In the request with which Claude Code has a conversation summarised.
const SUMMARY_REQUEST: &str = "Your task is to create a detailed summary of the conversation so far";

fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command, "description": "do it"}))
}

/// Nearly fills whatever context the model has.
fn nearly_full() -> Usage {
    Usage { input: 900_000, output: 10, ..Usage::default() }
}

fn model_whose_summary_is(summary: Reply) -> ModelServer {
    ModelServer::start([
        Rule::when(Matcher::prompt_contains(SUMMARY_REQUEST)).reply(summary).also_side_requests(),
        Rule::when(Matcher::prompt_contains("# Checks that failed"))
            .reply(bash("echo towline > motto.txt"))
            .then(Reply::text("Corrected.")),
        Rule::always()
            .reply(bash("echo tugboat > motto.txt").usage(nearly_full()))
            .then(Reply::text("Written.").usage(nearly_full())),
    ])
}

fn events_of(desk: &Desk, report: &Value, kind: &str) -> Vec<Value> {
    let events = desk.events(report["id"].as_str().expect("an id"));
    let agent = events.into_iter().map(|event| event["event"]["event"].clone());
    agent.filter(|event| event["kind"] == kind).collect()
}

#[test]
fn a_context_at_its_threshold_is_summarised_for_no_turn_and_the_goal_goes_on() {
    let model = model_whose_summary_is(Reply::text("<summary>It wrote the wrong word.</summary>"));
    let desk = Desk::with_claude(&model);
    let ran = desk.towline(["run", PROMPT, "--check", CHECK, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["completed", "completed"]);
    assert_eq!(of_attempts(&report, "turns"), [1, 1]);
    assert_eq!(of_attempts(&report, "resumed"), [false, true]);
    assert_eq!(events_of(&desk, &report, "compacted").len(), 1);

    let summaries = model.turns().iter().filter(|turn| turn.prompt_text().contains(SUMMARY_REQUEST)).count();
    assert_eq!(summaries, 1);
    let focus = model
        .turns()
        .iter()
        .any(|turn| turn.prompt_text().contains("you continue with the goal right after"));
    assert!(focus, "the request for the summary has no focus");
    // What the summary cost is counted.
    let reported = model.reported_usage();
    assert_eq!(report["usage"]["input"], reported.input);
    assert_eq!(report["usage"]["output"], reported.output);
}

#[test]
fn a_summary_that_does_not_come_about_is_noticed_and_the_goal_goes_on() {
    let model = model_whose_summary_is(Reply::error(400, "no summary today"));
    let desk = Desk::with_claude(&model);
    let ran = desk.towline(["run", PROMPT, "--check", CHECK, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "turns"), [1, 1]);
    assert_eq!(events_of(&desk, &report, "compacted"), Vec::<Value>::new());
    let failed = events_of(&desk, &report, "not_compacted");
    assert_eq!(failed.len(), 1, "{failed:?}");
}

#[test]
fn a_conversation_that_no_longer_fits_is_summarised_and_gets_the_same_prompt_again() {
    let too_long = || Reply::error(400, "prompt is too long: 210000 tokens > 200000 maximum");
    let model = ModelServer::start([
        Rule::when(
            Matcher::prompt_contains(SUMMARY_REQUEST)
                .and(Matcher::any_text_contains("you continue with the goal")),
        )
        .reply(Reply::text("<summary>It wrote the wrong word.</summary>"))
        .also_side_requests(),
        // The agent's own attempt at a summary fails as well.
        Rule::when(Matcher::prompt_contains(SUMMARY_REQUEST)).reply(too_long()).also_side_requests(),
        Rule::when(Matcher::any_text_contains("It wrote the wrong word"))
            .reply(bash("echo towline > motto.txt"))
            .then(Reply::text("Corrected.")),
        Rule::when(Matcher::prompt_contains("# Checks that failed")).reply(too_long()),
        Rule::always().reply(bash("echo tugboat > motto.txt")).then(Reply::text("Written.")),
    ]);
    let desk = Desk::with_claude(&model);
    let ran = desk.towline(["run", PROMPT, "--check", CHECK, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["completed", "context_overflow", "completed"]);
    let sessions = of_attempts(&report, "session");
    assert!(sessions.iter().all(|session| *session == sessions[0]), "{sessions:?}");
    assert_eq!(events_of(&desk, &report, "compacted").len(), 1);
    let last =
        model.turns().iter().filter(|turn| turn.prompt_text().contains("# Checks that failed")).count();
    assert!(last >= 2, "the same prompt was not sent again");
}

#[test]
fn a_requested_summary_comes_before_the_next_prompt_and_is_in_the_log() {
    let model = ModelServer::start([
        Rule::when(Matcher::prompt_contains(SUMMARY_REQUEST))
            .reply(Reply::text("<summary>It wrote the wrong word.</summary>"))
            .also_side_requests(),
        Rule::when(Matcher::prompt_contains("# Checks that failed"))
            .reply(bash("echo towline > motto.txt"))
            .then(Reply::text("Corrected.")),
        Rule::always().reply(bash("echo tugboat > motto.txt")).then(Reply::text("Written.")),
    ]);
    let desk = Desk::with_claude(&model);
    let ran = desk.towline(["run", PROMPT, "--check", CHECK, "--budget", "attempts=1", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let asked = desk.towline(["compact", "@", "--", "the", "spelling"]);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    let retried = desk.towline(["retry", "@", "--budget", "attempts=+1", "--json"]);
    assert_eq!(retried.code, Some(0), "{retried:?}");
    let report = retried.json();
    assert_eq!(of_attempts(&report, "resumed"), [false, true]);
    assert_eq!(events_of(&desk, &report, "compacted").len(), 1);
    assert!(model.turns().iter().any(|turn| turn.prompt_text().contains("the spelling")));
    let logs = desk.towline(["logs", "@"]).stdout;
    assert!(logs.contains("a summary of the conversation, keeping: the spelling"), "{logs}");
}
