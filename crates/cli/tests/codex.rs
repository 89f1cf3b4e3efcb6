//! The real Codex: what the conformance suite does not show.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use support::{Desk, LIMIT, finish, of_attempts};
use towline_testkit::agents::{AgentCli, shell_call};
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::{clean_command, wait_until_process_tree_gone};

const CODEX: AgentCli = AgentCli::Codex;

#[test]
fn the_schema_that_our_types_are_held_against_is_the_one_that_the_program_writes() {
    let desk = Desk::new();
    let written = desk.home.path().join("schema");
    let mut command = clean_command(CODEX.program());
    command.args(["app-server", "generate-json-schema", "--out"]).arg(&written);
    let ran = command.env_clear().envs(desk.home.env()).output().expect("codex starts");
    assert!(ran.status.success(), "{ran:?}");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/testdata/codex/schema");
    let files: Vec<PathBuf> = files_in(&schema);
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let name = file.file_name().expect("a name");
        let places = [written.join(name), written.join("v1").join(name), written.join("v2").join(name)];
        let now = places.iter().find(|place| place.is_file()).expect("it is still written");
        assert!(
            json_in(&file) == json_in(now),
            "{} has changed: renew it, and run the tests",
            name.display()
        );
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

fn json_in(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).expect("a file")).expect("JSON")
}

/// Another process that has a conversation open.
struct Holder(Child);

impl Holder {
    fn of(desk: &Desk, model: &ModelServer, session: &str) -> Self {
        let mut command = clean_command(CODEX.program());
        command.arg("app-server").env_clear().envs(desk.home.env());
        command.envs(CODEX.prepare(&desk.home.path(), &model.url())).current_dir(desk.project.path());
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("codex starts");
        let input = process.stdin.as_mut().expect("its input");
        for line in [
            json!({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "other", "version": "1"}}}),
            json!({"method": "initialized"}),
            json!({"id": 2, "method": "thread/resume", "params": {"threadId": session}}),
        ] {
            writeln!(input, "{line}").expect("it listens");
        }
        let lines = BufReader::new(process.stdout.as_mut().expect("its output")).lines();
        let answers = lines.map(|line| serde_json::from_str::<Value>(&line.expect("a line")).expect("JSON"));
        let answer = answers.into_iter().find(|line| line["id"] == 2).expect("an answer");
        assert!(answer["error"].is_null(), "{answer}");
        Self(process)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_conversation_that_another_process_has_open_goes_on_as_a_copy() {
    let model = ModelServer::start([
        Rule::when(Matcher::any_text_contains("# Checks that failed"))
            .reply(shell_call(CODEX, "echo towline > motto.txt"))
            .then(Reply::text("Corrected.")),
        Rule::always().reply(shell_call(CODEX, "echo tugboat > motto.txt")).then(Reply::text("Written.")),
    ]);
    let desk = Desk::with_agents(&[CODEX], &model);
    desk.configure(&format!(
        "defaults.agents = [\"codex\"]\n[agents.codex]\nkind = \"codex\"\ncommand = [{:?}]\n",
        CODEX.program().display().to_string()
    ));
    let desk = desk.without_baseline();
    // The check waits for the other process to be there.
    let go = desk.home.path().join("go");
    let check = format!("while [ ! -e {} ]; do sleep 0.1; done; grep -x towline motto.txt", go.display());
    let towline = desk.start(["run", "Write the motto", "--check", &check, "--json"]);
    let goal = desk.only_goal();
    let checking = desk.wait_for_phase(&goal, "checking");
    let session = checking["attempts"][0]["session"].as_str().expect("a session").to_owned();
    let holder = Holder::of(&desk, &model, &session);
    std::fs::write(go, "").expect("a file");

    let ran = finish(towline);
    drop(holder);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["completed", "completed"], "{report}");
    assert_eq!(of_attempts(&report, "resumed"), [false, true], "{report}");
    assert_ne!(report["attempts"][1]["session"], session.as_str(), "{report}");
    // The copy has the earlier messages, so the prompt does not repeat them.
    let turns = model.turns();
    let last = turns.last().expect("turns");
    assert!(
        last.all_text().contains("# Goal") && !last.prompt_text().contains("# Goal"),
        "{}",
        last.prompt_text()
    );
    let reported = model.reported_usage();
    assert_eq!(report["usage"]["output"], reported.output, "{report}");
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}
