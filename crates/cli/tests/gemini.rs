//! The real Gemini CLI in its headless mode, the kind `gemini`, against the scripted model: what the conformance suite does
//! not show.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use support::{Desk, LIMIT, Ran, of_attempts};
use towline_testkit::agents::{AgentCli, shell_call};
use towline_testkit::model::{ModelServer, Reply, Rule};

const GEMINI: AgentCli = AgentCli::Gemini;
const PROMPT: &str = "Write the word towline into the file motto.txt";
const CHECK: &str = "echo looking for the motto; grep -x towline motto.txt";

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
fn through_a_pipe_that_is_read_slowly_the_result_is_lost_and_the_exit_code_proves_nothing() {
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
