//! Talking back, with the real Claude Code against a scripted model: questions, permissions, and the operator's words,
//! from a second terminal.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{Desk, LIMIT, finish, of_attempts};
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::{processes_with, wait_for, wait_until_process_tree_gone};

const PROMPT: &str = "Paint the door";

fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command, "description": "do it"}))
}

fn which_colour() -> Reply {
    Reply::tool(
        "AskUserQuestion",
        json!({"questions": [{
            "question": "Which colour?",
            "header": "Colour",
            "multiSelect": false,
            "options": [
                {"label": "Red", "description": "like a barn"},
                {"label": "Blue", "description": "like the sea"},
            ],
        }]}),
    )
}

/// Asks, and paints in the colour of the answer, however it arrives.
fn model_that_asks_for_a_colour() -> ModelServer {
    let knows = Matcher::any_text_contains("Blue\"").or(Matcher::any_text_contains("Which colour?\n  Blue"));
    ModelServer::start([
        Rule::when(Matcher::after_tool_result().and(Matcher::any_text_contains("painted")))
            .reply(Reply::text("The door is blue.")),
        Rule::when(knows).reply(bash("echo blue > door && echo painted")),
        Rule::always().reply(which_colour()),
    ])
}

fn paint(desk: &Desk) -> std::process::Child {
    desk.start(["run", PROMPT, "--check", "grep -x blue door", "--json"])
}

#[test]
fn a_question_blocks_the_goal_and_an_answer_from_a_second_terminal_reaches_the_model_in_its_turn() {
    let model = model_that_asks_for_a_colour();
    let desk = Desk::with_claude(&model);
    let towline = paint(&desk);
    let goal = desk.only_goal();
    let blocked = desk.wait_for_phase(&goal, "blocked");
    assert_eq!(blocked["question"]["question"], "Which colour?", "{blocked}");
    assert_eq!(blocked["question"]["options"], json!(["Red", "Blue"]));
    let listed = desk.towline(["questions", "--json"]).json();
    assert_eq!((&listed[0]["goal"], &listed[0]["id"]), (&json!(goal), &json!(1)), "{listed}");

    let answered = desk.towline(["answer", &goal, "2"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    let results = model.turns()[1].tool_results();
    assert!(results[0].text.contains("\"Which colour?\"=\"Blue\""), "{results:?}");
    assert_eq!(desk.towline(["questions", "--json"]).json(), json!([]));
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn a_question_outlives_towline_and_its_agent_and_the_answer_resumes_the_session() {
    let model = model_that_asks_for_a_colour();
    let desk = Desk::with_claude(&model);
    let mut towline = paint(&desk);
    let goal = desk.only_goal();
    desk.wait_for_phase(&goal, "blocked");
    desk.wait_until_claude_stored("AskUserQuestion");
    towline.kill().expect("killed");
    towline.wait().expect("gone");
    for process in processes_with(&desk.home.marker()) {
        if let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) {
            // Those that ended meanwhile are what is wanted.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    // No engine runs it: the answer is stored for the next one.
    let answered = desk.towline(["answer", &goal, "blue"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert!(answered.stdout.contains("towline run --goal"), "{answered:?}");
    let ran = desk.towline(["run", "--goal", &goal, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["attempts"][0]["session"], report["attempts"][1]["session"], "{report}");
    assert_eq!(of_attempts(&report, "resumed"), [false, true]);
    let prompts: Vec<String> = model.turns().iter().map(|turn| turn.prompt_text()).collect();
    let with_answer = prompts.iter().filter(|prompt| prompt.contains("- Which colour?\n  Blue")).count();
    assert!(with_answer > 0, "{prompts:?}");
}

#[test]
fn an_adopted_agent_that_waits_hears_the_answer_once() {
    let model = model_that_asks_for_a_colour();
    let desk = Desk::with_claude(&model);
    let mut towline = paint(&desk);
    let goal = desk.only_goal();
    desk.wait_for_phase(&goal, "blocked");
    towline.kill().expect("killed");
    towline.wait().expect("gone");
    let towline = desk.start(["run", "--goal", &goal, "--json"]);
    // Whoever drives it now, or nobody yet: either way it is heard.
    let answered = desk.towline(["answer", &goal, "Blue"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    let dir = report["attempts"][0]["dir"].as_str().expect("a directory");
    let sent = std::fs::read_to_string(std::path::Path::new(dir).join("stdin.log")).expect("the input");
    assert_eq!(sent.matches("\"control_response\"").count(), 1, "{sent}");
    assert_eq!(sent.matches(PROMPT).count(), 1, "{sent}");
}

#[test]
fn a_permission_that_a_person_gives_lets_the_agent_continue_and_a_refusal_has_a_reason() {
    let model = ModelServer::start([
        Rule::when(Matcher::any_text_contains("use paint.sh")).reply(Reply::text("Then not.")),
        Rule::when(Matcher::any_text_contains("first-done"))
            .reply(bash("rm -f door && echo blue > door && echo second-done")),
        Rule::always().reply(bash("echo blue > door && echo first-done")),
    ]);
    let desk = Desk::with_claude(&model);
    desk.agent_settings("permission = \"ask\"");
    let towline = paint(&desk);
    let goal = desk.only_goal();
    let blocked = desk.wait_for_phase(&goal, "blocked");
    assert_eq!(blocked["question"]["kind"], "permission", "{blocked}");
    assert!(
        blocked["question"]["question"].as_str().expect("a text").contains("echo blue > door"),
        "{blocked}"
    );

    let unclear = desk.towline(["answer", &goal, "perhaps"]);
    assert_eq!(unclear.code, Some(2), "{unclear:?}");
    assert_eq!(desk.towline(["answer", &goal, "yes"]).code, Some(0));
    let second = desk.wait_for(&goal, "the second question", |report| report["question"]["id"] == 2);
    assert_eq!(second["phase"], "blocked");
    let refused = desk.towline(["answer", &goal, "no,", "use", "paint.sh"]);
    assert_eq!(refused.code, Some(0), "{refused:?}");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let decisions = &ran.json()["attempts"][0]["decisions"];
    let outcomes: Vec<(Value, Value)> = decisions
        .as_array()
        .expect("decisions")
        .iter()
        .map(|decision| (decision["outcome"].clone(), decision["by"].clone()))
        .collect();
    assert_eq!(outcomes, [(json!("allow"), json!("person")), (json!("deny"), json!("person"))]);
    assert!(model.turns().last().expect("turns").all_text().contains("use paint.sh"));
}

#[test]
fn a_tool_that_is_denied_needs_a_person_who_sees_the_tool_and_the_rule() {
    let model = ModelServer::start([
        Rule::when(Matcher::after_tool_result()).reply(Reply::text("I may not.")),
        Rule::always().reply(bash("echo blue > door")),
    ]);
    for (settings, rule) in [
        ("permission = \"deny\"", "Bash(echo blue > door)"),
        ("permission = \"bypass\"\ndeny = [\"Bash(echo *)\"]", "Bash(echo *)"),
    ] {
        let desk = Desk::with_claude(&model);
        desk.agent_settings(settings);
        let ran = finish(paint(&desk));
        assert_eq!(ran.code, Some(4), "{ran:?}");
        let report = ran.json();
        assert_eq!(
            (&report["phase"], &report["attempts"][0]["end"]),
            (&json!("escalated"), &json!("permission_denied"))
        );
        let reason = report["reason"].as_str().expect("a reason");
        assert!(
            reason.contains("tool not permitted: Bash") && reason.contains(&format!("(rule: {rule})")),
            "{reason}"
        );
        assert_eq!(report["attempts"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn words_of_the_operator_reach_the_model_inside_the_running_turn_once() {
    let model = ModelServer::start([
        Rule::when(Matcher::after_tool_result().and(Matcher::any_text_contains("make it blue")))
            .reply(bash("echo blue > door"))
            .then(Reply::text("As you want.")),
        Rule::when(Matcher::after_tool_result()).reply(Reply::text("Nobody named a colour.")),
        Rule::always().reply(bash("while [ ! -e sent ]; do sleep 0.1; done")),
    ]);
    let desk = Desk::with_claude(&model);
    let towline = paint(&desk);
    let goal = desk.only_goal();
    wait_for(LIMIT, "the tool to run", || {
        processes_with(&desk.home.marker()).iter().any(|process| process.command.contains("sleep 0.1"))
    });
    let sent = desk.towline(["tell", &goal, "make it blue"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let workspace = desk.show(&goal)["workspace"].as_str().expect("a workspace").to_owned();
    std::fs::write(std::path::Path::new(&workspace).join("sent"), "").expect("a file");

    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    assert_eq!(of_attempts(&report, "turns"), [1]);
    let heard = model.turns().last().expect("turns").all_text();
    assert_eq!(heard.matches("make it blue").count(), 1, "{heard}");
}

#[test]
fn an_agent_that_asks_by_its_last_message_or_by_its_file_is_called_again_with_the_answer() {
    let file = json!({"question": "Which colour?", "options": ["Red", "Blue"]}).to_string();
    let by_file = ModelServer::start([
        Rule::when(Matcher::any_text_contains("Which colour?\n  Blue"))
            .reply(bash("echo blue > door"))
            .then(Reply::text("Painted.")),
        Rule::always()
            .reply(bash(&format!("printf '%s' '{file}' > \"$TOWLINE_QUESTION_FILE\"")))
            .then(Reply::text("I have asked.")),
    ]);
    let message = json!({"towline": "ask", "question": "Which colour?", "options": ["Red", "Blue"]});
    let by_message = ModelServer::start([
        Rule::when(Matcher::any_text_contains("Which colour?\n  Blue"))
            .reply(bash("echo blue > door"))
            .then(Reply::text("Painted.")),
        Rule::always().reply(Reply::text(format!("```json\n{message}\n```"))),
    ]);
    for model in [by_file, by_message] {
        let desk = Desk::with_claude(&model);
        let towline = paint(&desk);
        let goal = desk.only_goal();
        let blocked = desk.wait_for_phase(&goal, "blocked");
        assert_eq!(of_attempts(&blocked, "end"), ["asked"]);
        wait_until_process_tree_gone(&claude_marker(&desk), LIMIT);
        assert_eq!(desk.towline(["answer", &goal, "2"]).code, Some(0));
        let ran = finish(towline);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let report = ran.json();
        assert_eq!(of_attempts(&report, "end"), ["asked", "completed"]);
        assert_eq!(report["attempts"][0]["session"], report["attempts"][1]["session"]);
        assert_eq!(report["budget"]["attempts"]["left"], 9);
    }
}

/// Found in the environment of agents, and not of towline itself.
fn claude_marker(desk: &Desk) -> String {
    format!("{}/attempts", desk.home.towline().display())
}

#[test]
fn an_agent_that_wants_to_wait_sleeps_and_goes_on_in_its_session() {
    let sleep = json!({"towline": "sleep", "seconds": 1, "reason": "the paint dries"});
    let model = ModelServer::start([
        Rule::when(Matcher::any_text_contains("# Awake"))
            .reply(bash("echo blue > door"))
            .then(Reply::text("Painted.")),
        Rule::always().reply(Reply::text(sleep.to_string())),
    ]);
    let desk = Desk::with_claude(&model);
    let ran = finish(paint(&desk));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["slept", "completed"]);
    assert_eq!(of_attempts(&report, "resumed"), [false, true]);
    let phases = desk.events(report["id"].as_str().expect("an id"));
    let slept = phases.iter().any(|event| event["event"]["phase"]["reason"] == "the paint dries");
    assert!(slept, "{phases:?}");
}
