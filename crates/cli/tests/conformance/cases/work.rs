//! Work that goes as it should: tools, checks, and what was used.

use serde_json::{Value, json};
use towline_testkit::model::{Reply, Rule};
use towline_testkit::scratch::wait_until_process_tree_gone;

use crate::stage::{CHECK, Line, PROMPT, RIGHT, Stage, WRONG, done};
use crate::subject::{Conversations, Subject, Unit, When};
use crate::support::{LIMIT, of_attempts};

pub(crate) fn words_alone_are_checked(subject: &'static dyn Subject) {
    let stage = Stage::of(subject, &[Line::answers("There is nothing to do.")]);
    let ran = stage.desk.towline(["run", "Look around", "--check", "true", "--json"]);
    let report = done(&ran);
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    assert_eq!(of_attempts(&report, "turns"), [1]);
    assert_eq!(report["attempts"][0]["text"], "There is nothing to do.");
    assert!(report["attempts"][0]["session"].is_string(), "{report}");
    // The model gets the prompt as it is, and not what an agent makes of its arguments.
    let prompt = "# Goal\n\nLook around\n\n# How it will be checked\n\n- true: `true`";
    assert_eq!(stage.prompts_with(prompt).len(), 1, "{:?}", stage.prompts_with(""));
    wait_until_process_tree_gone(&stage.desk.home.marker(), LIMIT);
}

pub(crate) fn a_tool_call_does_the_work(subject: &'static dyn Subject) {
    let stage = Stage::of(subject, &[Line::runs(RIGHT)]);
    let report = done(&stage.run());
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    let events = stage.desk.events(report["id"].as_str().expect("an id"));
    let tools: Vec<&Value> =
        events.iter().map(|event| &event["event"]["event"]).filter(|event| event["kind"] == "tool").collect();
    assert!(tools.iter().any(|tool| tool["tool"] == "execute" && tool["status"] == "ok"), "{tools:?}");
    wait_until_process_tree_gone(&stage.desk.home.marker(), LIMIT);
}

pub(crate) fn a_red_check_reaches_the_model_and_then_the_goal_is_done(subject: &'static dyn Subject) {
    let corrects = Line::runs(RIGHT).after_prompt("# Checks that failed");
    let stage = Stage::of(subject, &[corrects, Line::runs(WRONG)]);
    let resumes = subject.facts().resumes();
    let report = done(&stage.run());
    assert_eq!(of_attempts(&report, "end"), ["completed", "completed"]);
    assert_eq!(of_attempts(&report, "resumed"), [json!(false), json!(resumes)]);
    if subject.facts().conversations != Conversations::AreNone {
        let same = report["attempts"][0]["session"] == report["attempts"][1]["session"];
        assert_eq!(same, resumes, "{report}");
    }
    let prompt = stage.prompts_with("# Checks that failed").remove(0);
    for wanted in [CHECK, "looking for the motto\n", "exit code 1"] {
        assert!(prompt.contains(wanted), "no {wanted:?} in {prompt}");
    }
    assert_eq!(prompt.contains("# Goal"), !resumes, "{prompt}");
}

pub(crate) fn three_megabytes_of_tool_output_are_no_trouble(subject: &'static dyn Subject) {
    let noise = format!("head -c 3000000 /dev/zero | tr '\\0' 'x'; {RIGHT}");
    let stage = Stage::of(subject, &[Line::runs(noise)]);
    let report = done(&stage.run());
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
}

pub(crate) fn what_was_used_is_what_the_model_reported(subject: &'static dyn Subject) {
    let stage = Stage::of(subject, &[Line::runs(RIGHT)]);
    let report = done(&stage.run());
    assert_used(&stage, &report["usage"]);
}

pub(crate) fn what_a_resumed_session_used_is_counted_once(subject: &'static dyn Subject) {
    let runs = |command| [subject.shell_call(command), Reply::text("Written.")];
    let replies = [runs(WRONG), runs("echo tugboats > motto.txt"), runs(RIGHT)].into_iter().flatten();
    let stage = Stage::with_model(subject, [replies.fold(Rule::always(), Rule::then)]);
    let report = done(&stage.run());
    assert_eq!(of_attempts(&report, "end"), ["completed", "completed", "completed"], "{report}");
    assert_used(&stage, &report["usage"]);
}

/// The goal used what the model reported in all its answers.
fn assert_used(stage: &Stage, used: &Value) {
    let reported = stage.model.reported_usage();
    match stage.subject.facts().reports_usage_in {
        Unit::Dollars => {
            let step = f64::from(100 + 5 + 200) / 1e6;
            let cost = step * stage.model.turns().len() as f64;
            assert!((used["cost_usd"].as_f64().expect("a cost") - cost).abs() < 1e-9, "{used} {cost}");
        }
        Unit::Tokens => {
            let count = |name: &str| used[name].as_u64().expect("a count");
            assert_eq!(count("output"), reported.output, "{used} {reported:?}");
            // Agents draw the line between fresh and cached input in different places, and some do not report what was cached.
            let cached = if used["cache_read"].is_null() { 0 } else { count("cache_read") };
            let input = count("input") + cached;
            assert_eq!(input, reported.input + reported.cache_read, "{used} {reported:?}");
        }
    }
}

pub(crate) fn a_spent_budget_stops_the_agent(subject: &'static dyn Subject) {
    let facts = subject.facts();
    let reply = match facts.reports_usage {
        // A turn without end.
        When::WithinTheTurn => subject.shell_call("true"),
        When::AtItsEnd => Reply::text("Enough for today."),
    };
    let (axis, limit) = match facts.reports_usage_in {
        Unit::Tokens => ("tokens", "tokens=1"),
        Unit::Dollars => ("usd", "usd=0.0001"),
    };
    let stage = Stage::with_model(subject, [Rule::always().reply(reply)]);
    let ran = stage.desk.towline(["run", PROMPT, "--check", CHECK, "--budget", limit, "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["reason"], format!("budget: {axis}"));
    assert_eq!(report["attempts"].as_array().map(Vec::len), Some(1), "{report}");
    wait_until_process_tree_gone(&stage.desk.home.marker(), LIMIT);
}
