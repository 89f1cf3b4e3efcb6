//! Attempts that end badly, with the real Claude Code against a scripted model: nothing of the tree is left, the
//! session is continued if there is one, and the work is completed.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{Desk, LIMIT, finish, of_attempts};
use towline_testkit::agents::AgentCli;
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::{Found, processes_with, wait_for, wait_until_process_tree_gone};

const PROMPT: &str = "Write the word towline into the file motto.txt";
const CHECK: &str = "grep -x towline motto.txt";

fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command, "description": "do it"}))
}

/// Begins with this tool call and falls silent, after as many events of a stream as `fate` lets through, until it is
/// prompted after the interruption: then it does the work.
fn model_that_falls_silent_after(command: &str, fate: Reply) -> ModelServer {
    let knows = Matcher::any_text_contains("# Interrupted");
    // Where a stream broke off, the agent asks again; an older one for the whole message at once.
    let asks_for_stream = Matcher::new(|request| request.body["stream"] == true);
    ModelServer::start([
        Rule::when(knows).reply(bash("echo towline > motto.txt")).then(Reply::text("Written.")),
        Rule::when(Matcher::nth_turn(1)).reply(bash(command)),
        Rule::when(asks_for_stream).reply(fate).then(Reply::silence()),
        Rule::always().reply(Reply::silence()),
    ])
}

fn run(desk: &Desk) -> std::process::Child {
    desk.start(["run", PROMPT, "--check", CHECK, "--json"])
}

fn claude_processes(desk: &Desk) -> Vec<Found> {
    let program = AgentCli::Claude.program().display().to_string();
    let found = processes_with(&desk.home.marker()).into_iter();
    found.filter(|process| process.command.starts_with(&program)).collect()
}

/// The goal is done after the attempt that ended so, in the same session, which got the goal once.
fn assert_done_in_the_same_session(desk: &Desk, model: &ModelServer, report: &Value, first_end: &str) {
    assert_eq!(report["phase"], "done", "{report}");
    // On a machine under load the idle timeout may be reached more than once.
    let ends = of_attempts(report, "end");
    assert_eq!((&ends[0], ends.last()), (&json!(first_end), Some(&json!("completed"))), "{report}");
    let sessions = of_attempts(report, "session");
    assert!(sessions.iter().all(|session| *session == sessions[0]), "{sessions:?}");
    assert_eq!(of_attempts(report, "resumed")[..2], [json!(false), json!(true)]);
    let heard = model.turns().last().expect("turns").all_text();
    assert_eq!(heard.matches("# Goal").count(), 1, "{heard}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

/// Runs against a model that goes quiet in mid-turn, one way or the other.
fn assert_idle_timeout_ends(fate: Reply) {
    let model = model_that_falls_silent_after("echo draft > motto.txt", fate);
    let desk = Desk::with_claude(&model);
    desk.agent_settings("idle_timeout = \"2s\"");
    let towline = run(&desk);
    model.wait_for_turns(2, LIMIT);
    let quiet = claude_processes(&desk);
    assert!(!quiet.is_empty(), "no agent is waiting for the model");

    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_done_in_the_same_session(&desk, &model, &report, "timed_out");
    assert_eq!(report["attempts"][0]["detail"], "idle timeout");
    // The first tree was gone before the second was started.
    let record = |n: usize| -> Value {
        let dir = std::path::Path::new(report["attempts"][n]["dir"].as_str().expect("a directory"));
        let text = std::fs::read_to_string(dir.join("exit.json")).expect("an exit record");
        serde_json::from_str(&text).expect("a record")
    };
    assert_eq!(record(0)["stopped"], "requested");
    assert!(record(0)["ended_at_ms"].as_u64() <= record(1)["started_at_ms"].as_u64());
}

#[test]
fn a_model_that_falls_silent_reaches_the_idle_timeout_and_the_session_goes_on() {
    assert_idle_timeout_ends(Reply::silence());
}

#[test]
fn a_stream_that_is_cut_for_good_is_noticed_and_the_session_goes_on() {
    assert_idle_timeout_ends(Reply::text("This sentence will never be finished.").cut_after(3));
}

#[test]
fn an_agent_killed_in_mid_turn_leaves_nothing_and_its_session_goes_on() {
    let model = model_that_falls_silent_after("tail -f /dev/null", Reply::silence());
    let desk = Desk::with_claude(&model);
    let towline = run(&desk);
    let marker = desk.home.marker();
    wait_for(LIMIT, "the tool to sleep", || {
        processes_with(&marker).iter().any(|process| process.command.starts_with("tail -f /dev/null"))
    });
    desk.wait_until_claude_stored("tail -f /dev/null");
    let agent = claude_processes(&desk).first().expect("the agent").pid;
    let agent = Pid::from_raw(i32::try_from(agent).expect("a pid")).expect("a pid");
    kill_process(agent, Signal::KILL).expect("killed");

    let ran = finish(towline);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["crashed", "completed"]);
    assert_eq!(report["attempts"][0]["signal"], 9);
    assert_done_in_the_same_session(&desk, &model, &report, "crashed");
}

#[test]
fn a_session_that_is_gone_is_forgotten_and_the_new_one_gets_everything() {
    let corrects = Matcher::any_text_contains("# Checks that failed");
    let model = ModelServer::start([
        Rule::when(corrects).reply(bash("echo towline > motto.txt")).then(Reply::text("Corrected.")),
        Rule::always().reply(bash("echo tugboat > motto.txt")).then(Reply::text("Written.")),
    ]);
    let desk = Desk::with_claude(&model);
    // The check takes the agent's memory away, between two attempts.
    let check = format!("rm -r \"$HOME/.claude/projects\"; {CHECK}");
    let ran = desk.towline(["run", PROMPT, "--check", &check, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["completed", "resume_refused", "completed"]);
    assert_eq!(of_attempts(&report, "resumed"), [false, false, false]);
    assert_ne!(report["attempts"][0]["session"], report["attempts"][2]["session"]);
    assert_eq!(report["budget"]["attempts"], json!({"limit": 10, "left": 8}));

    let cold = model.turns()[2].prompt_text();
    for wanted in [PROMPT, "# How it will be checked", "# Checks that failed", &check, "exit code 1"] {
        assert!(cold.contains(wanted), "no {wanted:?} in {cold}");
    }
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn an_agent_that_never_gets_as_far_as_a_session_escalates_after_three_tries() {
    let model = ModelServer::start([Rule::always().reply(Reply::text("Never asked."))]);
    let desk = Desk::with_claude(&model);
    desk.agent_settings("args = [\"--no-such-flag\"]");
    let ran = finish(run(&desk));
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["crashed", "crashed", "crashed"]);
    assert_eq!(report["budget"]["attempts"], json!({"limit": 10, "left": 10}));
    let reason = report["reason"].as_str().expect("a reason");
    assert!(reason.contains("unknown option '--no-such-flag'"), "{reason}");
    assert!(model.requests().is_empty(), "the model was asked");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}
