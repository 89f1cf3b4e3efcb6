//! The real Claude Code against a scripted model, driven by the real program.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{Desk, LIMIT, finish, of_attempts};
use towline_testkit::hostile;
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule, Usage};
use towline_testkit::scratch::{processes_with, wait_for, wait_for_some, wait_until_process_tree_gone};

const PROMPT: &str = "Write the word towline into the file motto.txt";
const CHECK: &str = "echo looking for the motto; grep -x towline motto.txt";

fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command, "description": "do it"}))
}

/// A model that writes the wrong word first, and the right one when it hears of the failed check.
fn model_that_needs_two_attempts() -> ModelServer {
    let corrects = Matcher::any_text_contains("# Checks that failed");
    ModelServer::start([
        Rule::when(Matcher::after_tool_result().and(corrects.clone())).reply(Reply::text("Corrected.")),
        Rule::when(Matcher::after_tool_result()).reply(Reply::text("The motto is written.")),
        Rule::when(corrects).reply(bash("echo towline > motto.txt")),
        Rule::always().reply(bash("echo tugboat > motto.txt")),
    ])
}

#[test]
fn a_red_check_reaches_the_model_in_the_same_session_and_then_the_goal_is_done() {
    let model = model_that_needs_two_attempts();
    let desk = Desk::with_claude(&model).in_sandbox();
    let ran = desk.towline(["run", PROMPT, "--check", CHECK, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();

    let prompts: Vec<String> = model.turns().iter().map(|turn| turn.prompt_text()).collect();
    let first = prompts.iter().find(|prompt| prompt.contains(PROMPT)).expect("the first prompt");
    assert!(first.contains(CHECK), "{first}");
    let second =
        prompts.iter().find(|prompt| prompt.contains("Checks that failed")).expect("the second prompt");
    for wanted in ["## grep -x towline motto.txt\n", CHECK, "looking for the motto\n", "exit code 1"] {
        assert!(second.contains(wanted), "no {wanted:?} in {second}");
    }
    assert!(!second.contains(PROMPT), "{second}");

    assert_eq!(report["phase"], "done");
    let attempts = report["attempts"].as_array().expect("attempts");
    let of_attempts = |field: &str| attempts.iter().map(|attempt| attempt[field].clone()).collect::<Vec<_>>();
    assert_eq!(of_attempts("end"), ["completed", "completed"]);
    assert_eq!(of_attempts("resumed"), [false, true]);
    assert_eq!(of_attempts("turns"), [1, 1]);
    assert_eq!(of_attempts("exit_code"), [0, 0]);
    assert_eq!(attempts[0]["session"], attempts[1]["session"]);
    assert_eq!(attempts[0]["verdict"]["met"], false);
    let evidence = attempts[0]["verdict"]["checks"][0]["evidence"].as_str().expect("evidence");
    // The check does not get the agent's variables, and the evidence has a note about it.
    assert!(evidence.starts_with("looking for the motto\n\nnote: "), "{evidence}");
    assert!(evidence.contains("ANTHROPIC_API_KEY"), "{evidence}");
    assert_eq!(attempts[1]["verdict"]["met"], true);
    assert_eq!(attempts[1]["verdict"]["candidate"], report["candidate"]);
    assert_eq!(attempts[1]["text"], "Corrected.");
    assert_eq!(attempts[0]["extras"]["unrecognised"], Value::Null, "frames that were not understood");

    // What was proven is that commit, and the user's checkout was not touched.
    let candidate = report["candidate"].as_str().expect("a candidate");
    assert_eq!(desk.project.git(["show", &format!("{candidate}:motto.txt")]).trim(), "towline");
    assert_eq!(desk.project.git(["status", "--porcelain"]).trim(), "");
    let goal = report["id"].as_str().expect("an id");
    assert_eq!(desk.show(goal), report);
    // Pieces of messages are for whoever watches; the log holds whole ones.
    let deltas =
        desk.events(goal).into_iter().filter(|event| event["event"]["event"]["kind"] == "message_delta");
    assert_eq!(deltas.count(), 0);
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn usage_and_cost_equal_what_the_model_reported() {
    let used = Usage { input: 1_234, output: 567, cache_read: 8_901, cache_creation: 2_345 };
    let model = ModelServer::start([
        Rule::when(Matcher::after_tool_result()).reply(Reply::text("Done.").usage(used)),
        Rule::always().reply(bash("echo hello > hello.txt").usage(used)),
    ]);
    let desk = Desk::with_claude(&model).in_sandbox();
    let ran = desk.towline(["run", "write hello", "--check", "test -f hello.txt", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    let reported = model.reported_usage();
    let expected = json!({
        "input": reported.input,
        "output": reported.output,
        "cache_read": reported.cache_read,
        "cache_write": reported.cache_creation,
        "cost_usd": cost_reported_by_claude(&desk, &report),
        "estimated": false,
        "partial": false,
    });
    assert_eq!(report["usage"], expected);
    assert!(report["usage"]["cost_usd"].as_f64() > Some(0.0), "{}", report["usage"]);
}

/// The cost in Claude Code's own last words.
fn cost_reported_by_claude(desk: &Desk, report: &Value) -> f64 {
    let raw = desk.towline(["logs", report["id"].as_str().expect("an id"), "--raw"]).stdout;
    let mut frames = raw.lines().rev().map(|line| serde_json::from_str::<Value>(line).expect("a frame"));
    let result = frames.find(|frame| frame["type"] == "result").expect("a result");
    let cost = result["total_cost_usd"].as_f64().expect("a cost");
    (cost * 1e6).round() / 1e6
}

/// A goal in the middle of a Bash tool that sleeps.
fn sleeping(desk: &Desk) -> (std::process::Child, String) {
    let towline = desk.start(["run", "take a nap", "--check", "true", "--json"]);
    let marker = desk.home.marker();
    wait_for(LIMIT, "the tool to sleep", || {
        processes_with(&marker).iter().any(|process| process.command.starts_with("tail -f /dev/null"))
    });
    (towline, desk.only_goal())
}

fn model_that_naps() -> ModelServer {
    ModelServer::start([Rule::always().reply(bash("tail -f /dev/null"))])
}

fn assert_cancelled(desk: &Desk, goal: &str) {
    let report = desk.show(goal);
    assert_eq!((&report["phase"], &report["attempts"][0]["end"]), (&json!("cancelled"), &json!("cancelled")));
}

#[test]
fn ctrl_c_while_a_tool_sleeps_leaves_nothing_and_exits_130() {
    let model = model_that_naps();
    let desk = Desk::with_claude(&model).in_sandbox();
    let (towline, goal) = sleeping(&desk);
    let pressed = Instant::now();
    kill_process(Pid::from_child(&towline), Signal::INT).expect("Ctrl-C");
    let ran = finish(towline);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.stderr.contains("stopping; press Ctrl-C again"), "{}", ran.stderr);
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
    assert!(pressed.elapsed() < Duration::from_secs(10), "{:?}", pressed.elapsed());
    assert_cancelled(&desk, &goal);
    // It was asked in its own words before it got a signal.
    let report = desk.show(&goal);
    let dir = std::path::Path::new(report["attempts"][0]["dir"].as_str().expect("a directory"));
    let sent = std::fs::read_to_string(dir.join("stdin.log")).expect("the input");
    let last: Value = serde_json::from_str(sent.lines().last().expect("a line")).expect("a request");
    assert_eq!(last["request"], json!({"subtype": "interrupt"}));
}

#[test]
fn cancel_from_a_second_terminal_leaves_nothing() {
    let model = model_that_naps();
    let desk = Desk::with_claude(&model).in_sandbox();
    let (towline, goal) = sleeping(&desk);
    let asked = Instant::now();
    let cancelled = desk.towline(["cancel", &goal]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    assert_eq!(finish(towline).code, Some(130));
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_cancelled(&desk, &goal);
}

#[test]
fn refused_credentials_escalate_soon_after_the_second_retry_with_the_way_to_sign_in() {
    let model = ModelServer::start([Rule::always().reply(Reply::unauthorized())]);
    let desk = Desk::with_claude(&model).in_sandbox();
    let ran = desk.towline(["run", "anything", "--check", "true"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stdout.contains("/login") && ran.stdout.contains("ANTHROPIC_API_KEY"), "{}", ran.stdout);

    let goal = desk.only_goal();
    let report = desk.show(&goal);
    assert_eq!((&report["phase"], &report["attempts"][0]["end"]), (&json!("escalated"), &json!("auth")));
    let events = desk.events(&goal);
    let at = |wanted: &dyn Fn(&Value) -> bool, nth: usize| -> jiff::Timestamp {
        let event = events.iter().filter(|event| wanted(event)).nth(nth).expect("the event");
        event["at"].as_str().expect("a time").parse().expect("a time")
    };
    let second_retry = at(&|event| event["event"]["event"]["kind"] == "retrying", 1);
    let escalated = at(&|event| event["event"]["phase"]["phase"] == "escalated", 0);
    let took = escalated.duration_since(second_retry);
    assert!(took < jiff::SignedDuration::from_secs(5), "{took}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn the_goal_of_a_killed_towline_is_resumed_without_disturbing_the_agent() {
    let model = ModelServer::start([
        Rule::when(Matcher::after_tool_result()).reply(Reply::text("Awake.")),
        Rule::always().reply(bash("while ! test -e go; do sleep 0.05; done; echo up > up.txt")),
    ]);
    let desk = Desk::with_claude(&model).in_sandbox();
    let mut towline = desk.start(["run", "get up when you may", "--check", "test -f up.txt", "--json"]);
    let goal = desk.only_goal();
    let workspace = wait_for_some(LIMIT, "the tool to run", || {
        let running = desk.events(&goal).iter().any(|event| event["event"]["event"]["status"] == "running");
        running.then(|| desk.show(&goal)["workspace"].as_str().map(str::to_owned)).flatten()
    });
    towline.kill().expect("killed");
    towline.wait().expect("reaped");

    let again = desk.start(["run", "--goal", &goal, "--json"]);
    std::fs::write(std::path::Path::new(&workspace).join("go"), "").expect("the signal to get up");
    let ran = finish(again);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["attempts"].as_array().map(Vec::len), Some(1));
    assert_eq!(model.turns().len(), 2, "the model was asked again");
    // Nothing is missing and nothing is recorded twice: no two events of a kind are of the same bytes.
    let events = desk.events(&goal);
    let mut recorded: Vec<String> = events
        .iter()
        .filter(|event| event["source"] == "agent")
        .map(|event| format!("{} {}", event["raw"], event["event"]))
        .collect();
    let count = recorded.len();
    recorded.sort();
    recorded.dedup();
    assert_eq!(recorded.len(), count, "an event was recorded twice");
    let undisturbed = ["session_started", "turn_started", "tool", "turn_ended"];
    for kind in undisturbed {
        assert!(events.iter().any(|event| event["event"]["event"]["kind"] == kind), "no {kind}");
    }
    assert_eq!(report["attempts"][0]["turns"], 1);
}

/// As Claude Code does when root starts it with every permission.
const REFUSES_ROOT: &str = "echo '--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons' >&2\nexit 1\n";

#[test]
fn a_refusal_of_root_fails_the_run_once_with_what_to_do() {
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "refuses-root", REFUSES_ROOT)).in_sandbox();
    let ran = desk.towline(["run", "anything", "--check", "true", "--json"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["spawn_failed"], "{report}");
    assert_eq!(report["phase"], "escalated");
    assert!(report["reason"].as_str().expect("a reason").contains("as root: run Towline as another user"));
}

#[test]
fn root_that_is_in_no_sandbox_is_refused_by_the_real_one() {
    let model = ModelServer::start([Rule::always().reply(Reply::text("There is nothing to do."))]);
    let mut desk = Desk::with_claude(&model).in_sandbox();
    desk.set("IS_SANDBOX", "0");
    let ran = desk.towline(["run", "anything", "--check", "true", "--json"]);
    let is_root = rustix::process::getuid().is_root();
    let end = if is_root { "spawn_failed" } else { "completed" };
    assert_eq!(of_attempts(&ran.json(), "end"), [end], "{ran:?}");
}

#[test]
fn colours_on_stderr_are_in_the_log_and_in_no_json() {
    let body = "printf '\\033[31mno room\\033[0m left\\033]0;title\\007\\n' >&2\nexit 3\n";
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "coloured", body)).in_sandbox();
    let ran = desk.towline(["run", "anything", "--check", "true", "--budget", "errors=1", "--json"]);
    let report = ran.json();
    let detail = report["attempts"][0]["detail"].as_str().expect("a detail");
    assert_eq!(detail, "exit code 3 without a result: no room left");
    let goal = report["id"].as_str().expect("an id");
    for json in [ran.stdout.clone(), desk.towline(["logs", goal, "--json"]).stdout] {
        assert!(!json.contains("\\u001b") && !json.contains('\u{1b}'), "{json}");
    }
    let dir = std::path::Path::new(report["attempts"][0]["dir"].as_str().expect("a directory"));
    let raw = std::fs::read_to_string(dir.join("stderr.log")).expect("a log");
    assert!(raw.contains("\u{1b}[31mno room"), "{raw:?}");
}
