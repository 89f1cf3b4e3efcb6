//! What only people decide: permissions, questions and pauses.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use towline_testkit::model::{Matcher, Reply, Rule};
use towline_testkit::scratch::wait_until_process_tree_gone;

use crate::stage::{Line, PROMPT, RIGHT, Stage, done};
use crate::subject::{Refusal, Subject};
use crate::support::{finish, of_attempts};

pub(crate) fn a_rule_permits_and_forbids(subject: &'static dyn Subject) {
    let tries = Rule::always()
        .reply(subject.shell_call("touch allowed.txt"))
        .then(subject.shell_call("touch forbidden.txt"))
        .then(Reply::text("One of them I may not."));
    let stage = Stage::with_model(subject, [tries]);
    let stage = stage.settings(
        "permission = \"deny\"\nallow = [\"Bash(touch *)\"]\ndeny = [\"Bash(touch forbidden.txt)\"]",
    );
    let report = done(&stage.run_checked_by("test -e allowed.txt && ! test -e forbidden.txt"));
    assert_eq!(of_attempts(&report, "end"), ["completed"], "{report}");
    // Some know the rules themselves, and need not ask about what is allowed.
    assert_eq!(decisions(&report).last(), Some(&json!(["Bash", "deny", "rule"])), "{report}");

    let turns = stage.model.turns();
    match subject.facts().refusal {
        Refusal::IsReported => {
            let heard = turns.last().expect("turns").tool_results();
            assert_eq!((turns.len(), heard.len()), (3, 1), "{heard:?}");
            assert_eq!(report["attempts"][0]["text"], "One of them I may not.");
        }
        Refusal::EndsTheTurn => assert_eq!(turns.len(), 2),
    }
}

pub(crate) fn under_edits_files_are_changed_and_no_command_runs(subject: &'static dyn Subject) {
    let stage = works_with_preset(subject, "edits");
    let check = "grep -x towline motto.txt && ! test -e ran.txt";
    done(&stage.desk.towline(["run", PROMPT, "--in-place", "--check", check, "--json"]));
}

pub(crate) fn under_read_only_nothing_changes(subject: &'static dyn Subject) {
    let stage = works_with_preset(subject, "read-only");
    let check = "! test -e motto.txt && ! test -e ran.txt";
    done(&stage.desk.towline(["run", PROMPT, "--in-place", "--check", check, "--json"]));
    // It was tried: the model was asked again with the result of the call.
    assert!(stage.model.turns().len() > 1 || subject.facts().refusal == Refusal::EndsTheTurn);
}

/// A model that creates a file with the agent's tool for edits, and then runs a command, in a directory that is known
/// beforehand.
fn works_with_preset(subject: &'static dyn Subject, permission: &str) -> Stage {
    let stage = Stage::with_project(subject, |project| {
        let writes = subject.write_call(&project.join("motto.txt"), "towline\n");
        let works = Rule::always().reply(writes).then(subject.shell_call("touch ran.txt"));
        vec![works.then(Reply::text("That is all."))]
    });
    stage.settings(&format!("permission = {permission:?}"))
}

/// What was decided in the first attempt: about which tool, how, and by whom.
fn decisions(report: &Value) -> Vec<Value> {
    let decisions = report["attempts"][0]["decisions"].as_array().expect("decisions");
    decisions.iter().map(|decision| json!([decision["tool"], decision["outcome"], decision["by"]])).collect()
}

pub(crate) fn a_person_permits_a_call(subject: &'static dyn Subject) {
    let stage = Stage::of(subject, &[Line::runs(RIGHT)]).settings("permission = \"ask\"");
    let (towline, goal) = stage.start();
    let blocked = stage.desk.wait_for_phase(&goal, "blocked");
    assert_eq!(blocked["question"]["kind"], "permission", "{blocked}");
    let listed = stage.desk.towline(["questions", "--json"]).json();
    assert_eq!((&listed[0]["goal"], &listed[0]["id"]), (&json!(goal), &json!(1)), "{listed}");
    let shown = listed[0]["question"].as_str().expect("a text");
    assert!(shown.contains(RIGHT), "{shown}");

    let answered = stage.desk.towline(["answer", &goal, "yes"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let report = done(&finish(towline));
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    assert_eq!(decisions(&report), [json!(["Bash", "allow", "person"])]);
    assert_eq!(stage.desk.towline(["questions", "--json"]).json(), json!([]));
}

pub(crate) fn the_words_of_a_refusal_reach_the_model(subject: &'static dyn Subject) {
    let works = Line::runs(RIGHT).after_prompt("use the file motto.txt").rule(subject);
    let tries =
        Rule::always().reply(subject.shell_call("touch forbidden.txt")).then(Reply::text("I may not."));
    let stage = Stage::with_model(subject, [works, tries]).settings("permission = \"ask\"");
    let (towline, goal) = stage.start();
    stage.desk.wait_for_phase(&goal, "blocked");
    let answered = stage.desk.towline(["answer", &goal, "no, use the file motto.txt instead"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    // With the words it works on, and asks for what it does then.
    let asked = stage.desk.wait_for(&goal, "the next question", |report| {
        report["question"]["question"].as_str().is_some_and(|asked| asked.contains(RIGHT))
    });
    assert_eq!(asked["phase"], "blocked", "{asked}");
    assert_eq!(stage.desk.towline(["answer", &goal, "yes"]).code, Some(0));
    done(&finish(towline));
}

pub(crate) fn a_question_of_its_own_tool_reaches_a_person(subject: &'static dyn Subject) {
    let asks = subject.question_call("Which word?", &["tugboat", "towline"]).expect("a tool for questions");
    let writes = Rule::when(Matcher::after_tool_result().and(Matcher::any_text_contains("towline\"")))
        .reply(subject.shell_call(RIGHT))
        .then(Reply::text("Written."));
    let stage = Stage::with_model(subject, [writes, Rule::always().reply(asks)]);
    let (towline, goal) = stage.start();
    let blocked = stage.desk.wait_for_phase(&goal, "blocked");
    let asked = &blocked["question"];
    assert_eq!(
        (&asked["question"], &asked["options"]),
        (&json!("Which word?"), &json!(["tugboat", "towline"])),
        "{blocked}"
    );
    let answered = stage.desk.towline(["answer", &goal, "2"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let report = done(&finish(towline));
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    let heard = stage.model.turns()[1].tool_results();
    assert!(heard.len() == 1 && heard[0].text.contains("towline"), "{heard:?}");
}

pub(crate) fn towlines_tools_are_in_the_first_request(subject: &'static dyn Subject) {
    let stage = Stage::of(subject, &[Line::answers("There is nothing to do.")]);
    done(&stage.run_checked_by("true"));
    let offered = stage.model.turns()[0].tool_names();
    assert!(offered.iter().any(|name| name == subject.ask_tool()), "{offered:?}");
}

pub(crate) fn a_question_by_a_tool_of_towlines_blocks_the_goal_until_it_is_answered(
    subject: &'static dyn Subject,
) {
    let input = json!({"question": "Which word?", "options": ["towline", "tugboat"]});
    let asks =
        Rule::always().reply(Reply::tool(subject.ask_tool(), input)).then(Reply::text("I have asked."));
    let writes = Line::runs(RIGHT).after_prompt("Which word?\n  towline").rule(subject);
    let stage = Stage::with_model(subject, [writes, asks]);
    let (towline, goal) = stage.start();
    let asked = stage.desk.wait_for(&goal, "the question", |report| !report["question"].is_null());
    assert_eq!(asked["question"]["question"], "Which word?", "{asked}");
    stage.desk.wait_for(&goal, "the attempt to end", |report| !report["attempts"][0]["end"].is_null());
    let answered = stage.desk.towline(["answer", &goal, "towline"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let report = done(&finish(towline));
    assert_eq!(of_attempts(&report, "end"), ["asked", "completed"]);
}

pub(crate) fn a_paused_goal_is_resumed_at_no_cost(subject: &'static dyn Subject) {
    let goes_on = Line::runs(RIGHT).after_prompt("# Interrupted");
    let stage = Stage::of(subject, &[goes_on, Line::hangs("tail -f /dev/null")]);
    let (towline, goal) = stage.start_until("tail -f /dev/null");
    subject.wait_until_stored(&stage.desk, "tail -f /dev/null");
    kill_process(Pid::from_child(&towline), Signal::TERM).expect("SIGTERM");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(143), "{ran:?}");
    wait_until_process_tree_gone(&stage.desk.home.marker(), Duration::from_secs(2));
    let paused = stage.desk.show(&goal);
    assert_eq!((&paused["phase"], &paused["reason"]), (&json!("paused"), &json!("shutdown")), "{paused}");
    assert_eq!(paused["budget"]["attempts"]["left"], 10, "{paused}");

    let report = done(&stage.desk.towline(["resume", &goal, "--json"]));
    assert_eq!(of_attempts(&report, "end"), ["interrupted", "completed"], "{report}");
    assert_eq!(of_attempts(&report, "resumed"), [json!(false), json!(subject.facts().resumes())], "{report}");
    assert_eq!(report["budget"]["attempts"]["left"], 9, "{report}");
}
