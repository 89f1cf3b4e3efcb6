//! Trouble: of the model, of the agent, of Towline itself.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use towline_testkit::model::{Matcher, Reply, Rule};
use towline_testkit::scratch::{processes_with, wait_until_process_tree_gone};

use crate::stage::{CHECK, Line, PROMPT, RIGHT, Stage, WRONG, done};
use crate::subject::{Conversations, Subject};
use crate::support::{LIMIT, finish, of_attempts};

pub(crate) fn refused_credentials_need_a_person(subject: &'static dyn Subject) {
    let refuses = Rule::always().reply(Reply::unauthorized()).also_side_requests();
    let stage = Stage::with_model(subject, [refuses]);
    let ran = stage.run();
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let report = ran.json();
    assert_eq!(
        (&report["phase"], &report["attempts"][0]["end"]),
        (&json!("escalated"), &json!("auth")),
        "{report}"
    );
    assert!(report["reason"].as_str().expect("a reason").contains(subject.name()), "{report}");
    wait_until_process_tree_gone(&stage.desk.home.marker(), LIMIT);
}

pub(crate) fn a_used_up_quota_parks_the_goal(subject: &'static dyn Subject) {
    let limited = Rule::always().reply(subject.used_up_quota()).also_side_requests();
    let stage = Stage::with_model(subject, [limited]);
    let (towline, goal) = stage.start();
    let limited = stage.desk.wait_for_phase(&goal, "limited");
    assert_eq!(of_attempts(&limited, "end"), ["rate_limited"]);
    assert_eq!(limited["budget"]["attempts"]["left"], 10);
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C");
    assert_eq!(finish(towline).code, Some(130));
}

/// Works once its prompt reports an interrupted turn, and until then does this.
fn until_interrupted(subject: &'static dyn Subject, fate: Rule) -> Stage {
    let works = Line::runs(RIGHT).after_prompt("# Interrupted").rule(subject);
    Stage::with_model(subject, [works, fate])
}

/// The goal is done by its last attempt, in the conversation of the first one if that can be continued. Returns how the
/// first one ended.
fn assert_goes_on(stage: &Stage, resumes: bool) -> Value {
    let report = done(&stage.run());
    let ends = of_attempts(&report, "end");
    assert!(ends.len() > 1, "{report}");
    let (last, before) = ends.split_last().expect("attempts");
    assert_eq!(last, "completed", "{report}");
    assert!(before.iter().all(|end| end != "completed"), "{report}");
    let resumed = of_attempts(&report, "resumed");
    assert_eq!(resumed.last(), Some(&json!(resumes)), "{report}");
    wait_until_process_tree_gone(&stage.desk.home.marker(), LIMIT);
    report["attempts"][0].clone()
}

pub(crate) fn a_failing_server_is_waited_out(subject: &'static dyn Subject) {
    // Those who listen to it repeat their requests soon.
    let fails = Reply::server_error().header("retry-after-ms", 10);
    let stage = until_interrupted(subject, Rule::always().reply(fails).also_side_requests());
    let first = assert_goes_on(&stage, subject.facts().resumes_failed_turns());
    assert_eq!(first["end"], "server_error", "{first}");
}

pub(crate) fn a_cut_stream_is_no_success(subject: &'static dyn Subject) {
    let cut = Reply::text("The motto is written, and all the checks will be green.").cut_after(4);
    // Whoever does not give up gets no answer at last.
    let cuts = Rule::always().reply(cut.clone()).then(cut.clone()).then(cut.clone()).then(cut);
    let stage = until_interrupted(subject, cuts.then(Reply::silence()));
    let stage = stage.settings(&format!("idle_timeout = \"{}s\"", subject.facts().patience));
    let first = assert_goes_on(&stage, subject.facts().resumes_failed_turns());
    let seen = ["server_error", "crashed", "timed_out"].iter().any(|end| first["end"] == *end);
    assert!(seen, "{first}");
}

pub(crate) fn silence_reaches_the_idle_timeout_and_the_goal_goes_on(subject: &'static dyn Subject) {
    let works = Line::runs(RIGHT).after_prompt("# Interrupted");
    let rules = [works.rule(subject), Rule::always().reply(Reply::silence())];
    let stage = Stage::with_model_or(subject, rules, &[works, Line::hangs("tail -f /dev/null")]);
    let stage = stage.settings(&format!("idle_timeout = \"{}s\"", subject.facts().patience));
    let first = assert_goes_on(&stage, subject.facts().resumes());
    assert_eq!((&first["end"], &first["detail"]), (&json!("timed_out"), &json!("idle timeout")), "{first}");
}

pub(crate) fn a_refused_session_is_followed_by_a_new_one_that_gets_everything(subject: &'static dyn Subject) {
    let corrects = Line::runs(RIGHT).after_prompt("# Checks that failed");
    let stage = Stage::of(subject, &[corrects, Line::runs(WRONG)]);
    // The check takes the agent's memory away, between two attempts.
    let check = format!("{}; {CHECK}", subject.forget_conversations());
    let report = done(&stage.run_checked_by(&check));
    let ends = of_attempts(&report, "end");
    if subject.facts().resumes() {
        assert_eq!(ends, ["completed", "resume_refused", "completed"], "{report}");
        assert_eq!(refusals(&stage, &report), [json!({"end": "resume_refused", "why": "not_found"})]);
    } else {
        assert_eq!(ends, ["completed", "completed"], "{report}");
    }
    assert!(of_attempts(&report, "resumed").iter().all(|resumed| *resumed == false), "{report}");
    if subject.facts().conversations != Conversations::AreNone {
        let sessions = of_attempts(&report, "session");
        assert_ne!(sessions.first(), sessions.last(), "{report}");
    }
    assert_eq!(report["budget"]["attempts"]["left"], 8, "{report}");

    let prompt = stage.prompts_with("# Checks that failed").remove(0);
    for wanted in [PROMPT, "# How it will be checked", &check, "looking for the motto\n", "exit code 1"] {
        assert!(prompt.contains(wanted), "no {wanted:?} in {prompt}");
    }
}

pub(crate) fn a_refused_conversation_is_followed_by_a_new_session_that_gets_everything(
    subject: &'static dyn Subject,
) {
    // The words of the first attempt are in the history of every request that continues it.
    let refuses = Rule::when(Matcher::any_text_contains("Done, captain."))
        .reply(Reply::error(400, "scripted: the history is not valid"));
    let corrects = Line::runs(RIGHT).after_prompt("# Checks that failed").rule(subject);
    let first = Line { answers: Some("Done, captain."), ..Line::runs(WRONG) };
    let stage = Stage::with_model(subject, [refuses, corrects, first.rule(subject)]);
    let report = done(&stage.run());
    let (ends, resumed) = (of_attempts(&report, "end"), of_attempts(&report, "resumed"));
    if subject.facts().resumes() {
        assert_eq!(ends, ["completed", "refused", "refused", "completed"], "{report}");
        assert_eq!(resumed, [false, true, true, false], "{report}");
        let events = stage.desk.events(report["id"].as_str().expect("an id"));
        let notice = "the provider refused the conversation twice in a row";
        assert!(events.iter().any(|event| event["event"]["text"].to_string().contains(notice)), "{events:?}");
    } else {
        assert_eq!(ends, ["completed", "completed"], "{report}");
    }
    let prompt = stage.prompts_with("# Checks that failed").pop().expect("a prompt");
    for wanted in [PROMPT, "# How it will be checked", "looking for the motto\n", "exit code 1"] {
        assert!(prompt.contains(wanted), "no {wanted:?} in {prompt}");
    }
}

pub(crate) fn a_long_retry_after_costs_no_error(subject: &'static dyn Subject) {
    let limited = Reply::rate_limited().header("retry-after", 3_600);
    let stage = Stage::with_model(subject, [Rule::always().reply(limited).also_side_requests()]);
    let stage = stage.settings(&format!("idle_timeout = \"{}s\"", subject.facts().patience));
    let (towline, goal) = stage.start();
    let waits = stage
        .desk
        .wait_for(&goal, "a wait", |report| report["phase"] == "limited" || report["phase"] == "sleeping");
    let ends = of_attempts(&waits, "end");
    if waits["phase"] == "limited" {
        assert_eq!(ends, ["rate_limited"], "{waits}");
    } else {
        // It prints nothing while it waits: silence without an answer is an outage, which is retried at once only once.
        assert_eq!(waits["reason"], "the model does not answer", "{waits}");
        assert_eq!(ends, ["timed_out", "timed_out"], "{waits}");
    }
    assert!(waits["until"].is_string(), "{waits}");
    let budget = &waits["budget"];
    assert_eq!((&budget["attempts"]["left"], &budget["errors"]["left"]), (&json!(10), &json!(5)), "{waits}");
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C");
    assert_eq!(finish(towline).code, Some(130));
}

/// The refused sessions in the log of the goal.
fn refusals(stage: &Stage, report: &Value) -> Vec<Value> {
    let events = stage.desk.events(report["id"].as_str().expect("an id"));
    let ends = events.iter().map(|event| event["event"]["end"].clone());
    ends.filter(|end| end["end"] == "resume_refused").collect()
}

/// Sleeps in its first tool until its prompt reports the interruption.
fn sleeps_first(subject: &'static dyn Subject) -> Stage {
    let goes_on = Line::runs(RIGHT).after_prompt("# Interrupted");
    Stage::of(subject, &[goes_on, Line::hangs("tail -f /dev/null")])
}

pub(crate) fn a_killed_agent_is_followed_by_one_that_goes_on(subject: &'static dyn Subject) {
    let stage = sleeps_first(subject);
    let (towline, _) = stage.start_until("tail -f /dev/null");
    subject.wait_until_stored(&stage.desk, "tail -f /dev/null");
    for process in processes_with(&stage.desk.home.marker()) {
        if subject.is_it(&process.command) {
            let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).expect("a pid");
            // It may have ended with another one.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let report = done(&finish(towline));
    assert_eq!(of_attempts(&report, "end"), ["crashed", "completed"]);
    assert_eq!(of_attempts(&report, "resumed"), [json!(false), json!(subject.facts().resumes())]);
    wait_until_process_tree_gone(&stage.desk.home.marker(), LIMIT);
}

pub(crate) fn an_adopted_agent_is_not_disturbed(subject: &'static dyn Subject) {
    let waits = format!("while [ ! -e go ]; do sleep 0.1; done; {RIGHT}");
    let stage = Stage::of(subject, &[Line::runs(waits)]);
    let (mut towline, goal) = stage.start_until("sleep 0.1");
    let asked = stage.model.turns().len();
    towline.kill().expect("killed");
    towline.wait().expect("gone");
    let towline = stage.desk.start(["run", "--goal", &goal, "--json"]);
    let workspace = stage.desk.show(&goal)["workspace"].as_str().expect("a workspace").to_owned();
    std::fs::write(Path::new(&workspace).join("go"), "").expect("a file");
    let report = done(&finish(towline));
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    assert_eq!(
        stage.model.turns().len(),
        asked * 2,
        "the model was asked once for the tool and once after it"
    );
}

pub(crate) fn ctrl_c_in_the_middle_of_a_tool_leaves_nothing(subject: &'static dyn Subject) {
    let stage = sleeps_first(subject);
    let (towline, goal) = stage.start_until("tail -f /dev/null");
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    wait_until_process_tree_gone(&stage.desk.home.marker(), Duration::from_secs(2));
    let report = stage.desk.show(&goal);
    assert_eq!((&report["phase"], &report["attempts"][0]["end"]), (&json!("cancelled"), &json!("cancelled")));
}
