//! The real Gemini CLI in its headless mode, the kind `gemini`, against the scripted model.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{Desk, LIMIT, Ran, finish, of_attempts};
use towline_testkit::agents::{AgentCli, shell_call};
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::{processes_with, wait_for, wait_until_process_tree_gone};

const GEMINI: AgentCli = AgentCli::Gemini;
const PROMPT: &str = "Write the word towline into the file motto.txt";
const CHECK: &str = "echo looking for the motto; grep -x towline motto.txt";
const RIGHT: &str = "echo towline > motto.txt";

fn desk(model: &ModelServer) -> Desk {
    let desk = Desk::with_agents(&[GEMINI], model);
    let program = GEMINI.program().display().to_string();
    desk.configure(&format!(
        "defaults.agents = [\"stream\"]\n[agents.stream]\nkind = \"gemini\"\ncommand = [{program:?}]\n"
    ));
    desk
}

fn run(desk: &Desk) -> Ran {
    desk.towline(["run", PROMPT, "--check", CHECK, "--json"])
}

fn assert_done(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(report["phase"], "done", "{report}");
    assert_eq!(report["attempts"][0]["extras"]["unrecognised"], Value::Null, "{report}");
    report
}

/// Corrects itself when it is told of something.
fn model_that_hears(of: &str, before: Reply) -> ModelServer {
    ModelServer::start([
        Rule::when(Matcher::any_text_contains(of))
            .reply(shell_call(GEMINI, RIGHT))
            .then(Reply::text("Corrected.")),
        Rule::always().reply(before).then(Reply::text("Written.")),
    ])
}

/// The prompt that told of the failed check.
fn second_prompt(model: &ModelServer) -> String {
    let prompts = model.turns().iter().map(|turn| turn.prompt_text()).collect::<Vec<_>>();
    let told = prompts.into_iter().find(|prompt| prompt.contains("# Checks that failed"));
    told.expect("the model was told of the failed check")
}

fn assert_same_conversation(report: &Value) {
    assert_eq!(of_attempts(report, "resumed"), [json!(false), json!(true)], "{report}");
    assert_eq!(report["attempts"][0]["session"], report["attempts"][1]["session"]);
}

#[test]
fn words_alone_are_checked_and_what_was_used_is_what_the_model_reported() {
    let model = ModelServer::start([Rule::always().reply(Reply::text("There is nothing to do."))]);
    let desk = desk(&model);
    let report = assert_done(&desk.towline(["run", "Look around", "--check", "true", "--json"]));
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    assert_eq!(of_attempts(&report, "text"), ["There is nothing to do."]);
    let (used, reported) = (&report["usage"], model.reported_usage());
    assert_eq!(used["output"], reported.output, "{used} {reported:?}");
    let input = used["input"].as_u64().expect("a count") + used["cache_read"].as_u64().expect("a count");
    assert_eq!(input, reported.input + reported.cache_read, "{used} {reported:?}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

#[test]
fn a_red_check_is_mended_in_the_same_conversation() {
    let model = model_that_hears("# Checks that failed", shell_call(GEMINI, "echo tugboat > motto.txt"));
    let desk = desk(&model);
    let report = assert_done(&run(&desk));
    assert_eq!(of_attempts(&report, "end"), ["completed", "completed"]);
    assert_same_conversation(&report);
    let events = desk.events(report["id"].as_str().expect("an id"));
    let tools = events.iter().map(|event| &event["event"]["event"]).filter(|event| event["kind"] == "tool");
    let ran = tools.filter(|tool| tool["tool"] == "execute" && tool["status"] == "ok").count();
    assert_eq!(ran, 2);
    // The goal stands in the conversation already.
    let told = second_prompt(&model);
    assert!(told.contains("looking for the motto") && !told.contains("# Goal"), "{told}");
}

#[test]
fn a_killed_agent_goes_on_in_the_same_conversation() {
    let model = model_that_hears("# Interrupted", shell_call(GEMINI, "sleep 321"));
    let desk = desk(&model);
    let towline = desk.start(["run", PROMPT, "--check", CHECK, "--json"]);
    let marker = desk.home.marker();
    wait_for(LIMIT, "the tool to sleep", || {
        processes_with(&marker).iter().any(|process| process.command.starts_with("sleep 321"))
    });
    let program = GEMINI.program().display().to_string();
    for process in processes_with(&marker) {
        if process.command.contains(&program) && !process.command.contains(" shim ") {
            let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).expect("a pid");
            // It may have ended with another one.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let report = assert_done(&finish(towline));
    assert_eq!(of_attempts(&report, "end"), ["crashed", "completed"]);
    assert_same_conversation(&report);
    wait_until_process_tree_gone(&marker, LIMIT);
}

const NOISE: &str =
    "head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo the last line; echo towline > motto.txt";

#[test]
fn three_megabytes_of_tool_output_lose_no_line() {
    let model =
        ModelServer::start([Rule::always().reply(shell_call(GEMINI, NOISE)).then(Reply::text("Written."))]);
    let desk = desk(&model);
    let report = assert_done(&run(&desk));
    assert_eq!(
        (of_attempts(&report, "end"), of_attempts(&report, "text")),
        (vec![json!("completed")], vec![json!("Written.")])
    );
    let log = stdout_logs(desk.home.towline()).pop().expect("a log");
    let log = std::fs::read_to_string(log).expect("text");
    assert!(log.len() > 3_000_000, "{}", log.len());
    let frames: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect();
    let output = frames.iter().find_map(|frame| frame["output"].as_str()).expect("the tool's output");
    assert!(output.ends_with("the last line"), "{}", output.len());
    assert_eq!(frames.last().map(|frame| &frame["status"]), Some(&json!("success")));
}

/// Why its standard output is a file. If this does not hold any more, it need not be one.
#[test]
fn through_a_pipe_that_is_read_slowly_the_result_is_lost_and_the_exit_code_says_nothing() {
    let model =
        ModelServer::start([Rule::always().reply(shell_call(GEMINI, NOISE)).then(Reply::text("Written."))]);
    let desk = desk(&model);
    let mut command = towline_testkit::scratch::clean_command(GEMINI.program());
    command.args(["--output-format", "stream-json", "--approval-mode", "yolo"]).env_clear();
    command.envs(GEMINI.prepare(&desk.home.path(), &model.url())).current_dir(desk.project.path());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, PROMPT.as_bytes()).expect("it listens");
    drop(input);
    // Nobody reads before it has ended, as when the reader has other things to do.
    let status =
        towline_testkit::scratch::wait_for_some(LIMIT, "it to end", || child.try_wait().expect("a child"));
    let mut output = Vec::new();
    std::io::Read::read_to_end(&mut child.stdout.take().expect("a pipe"), &mut output).expect("readable");
    assert_eq!(status.code(), Some(0));
    assert!(!String::from_utf8_lossy(&output).contains("\"type\":\"result\""), "{}", output.len());
}

#[test]
fn refused_credentials_need_a_person() {
    let model = ModelServer::start([Rule::always().reply(Reply::unauthorized()).also_side_requests()]);
    let desk = desk(&model);
    let ran = run(&desk);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let report = ran.json();
    assert_eq!((&report["phase"], &report["attempts"][0]["end"]), (&json!("escalated"), &json!("auth")));
    assert!(report["reason"].as_str().expect("a reason").contains("agent `stream`"), "{report}");
}

#[test]
fn a_conversation_that_is_gone_is_followed_by_a_new_one_that_is_told_everything() {
    let check = "grep -x towline motto.txt || exit 1";
    let model = model_that_hears("# Checks that failed", shell_call(GEMINI, "echo tugboat > motto.txt"));
    let mut desk = desk(&model);
    // All that it remembers is gone when the first attempt is checked.
    let memory = desk.home.path().join(".gemini/tmp");
    desk.set("MEMORY", &memory.display().to_string());
    let forgets = format!("rm -rf \"$MEMORY\"; {check}");
    let report = assert_done(&desk.towline(["run", PROMPT, "--check", &forgets, "--json"]));
    assert_eq!(of_attempts(&report, "end"), ["completed", "resume-refused", "completed"], "{report}");
    assert_eq!(report["attempts"][2]["resumed"], false, "{report}");
    let told = second_prompt(&model);
    assert!(told.contains("# Goal"), "{told}");
}

#[test]
fn rules_that_it_could_not_be_held_to_are_refused_before_anything_starts() {
    let model = ModelServer::start([]);
    let desk = desk(&model);
    desk.agent_settings("permission = \"ask\"");
    let ran = run(&desk);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("kind = \"acp\""), "{ran:?}");
    assert!(model.turns().is_empty());
}

/// Everything that agents printed, below the state directory.
fn stdout_logs(folder: PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let found = entries.flat_map(|path| match path.file_name().and_then(|name| name.to_str()) {
        Some("stdout.log") => vec![path],
        _ if path.is_dir() && !path.is_symlink() => stdout_logs(path),
        _ => vec![],
    });
    found.collect()
}
