//! What the second red verdict on a Rust crate with dependencies takes, with a warm `target` and in a clean checkout.
//!
//! `cargo xtask bench` runs it. The dependencies are those of this workspace, at the versions of its lock file, so that cargo
//! needs no network. Each of two goals has an agent that changes one line, and a test that always fails.

#![expect(clippy::expect_used, reason = "a bench that cannot measure ends with the reason")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::env;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::Desk;
use towline_testkit::figures::{Figure, shown};
use towline_testkit::scratch::clean_command;

const SECTION: &str = "A red verdict on a crate with dependencies";
/// What the second verdict may take with a warm `target`, times what it takes in a clean checkout.
const GOAL: f64 = 0.2;

const MANIFEST: &str = r#"[package]
name = "sample"
version = "0.1.0"
edition = "2024"

[dependencies]
clap = { version = "4", features = ["derive"] }
regex = "1"
serde = { version = "1", features = ["derive"] }
serde_json = "1"
tokio = { version = "1", features = ["rt", "macros", "net", "time"] }
toml = "1"
"#;

const LIBRARY: &str = r##"use regex::Regex;
use serde::Deserialize;

/// A line of a log.
#[derive(Debug, Deserialize)]
pub struct Line {
    pub at: u64,
    pub text: String,
}

/// The lines whose text matches.
pub fn matching(log: &str, pattern: &Regex) -> Vec<Line> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.filter(|line| pattern.is_match(&line.text)).collect()
}

#[test]
fn a_line_is_found() {
    let found = matching(r#"{"at": 1, "text": "one"}"#, &Regex::new("two").unwrap());
    assert_eq!(found.len(), 1);
}
"##;

/// What is done in each attempt.
const AGENT: &str = "cat > /dev/null; echo '// Tried.' >> src/lib.rs; echo Done.";

fn main() {
    let project = Sample::new();
    let cold = project.second_verdict("");
    let warm = project.second_verdict("warm = [\"target\"]");
    let beside = format!("warm: {} s; in a clean checkout: {} s", shown(warm), shown(cold));
    let what = "the second verdict, times the same in a clean checkout";
    Figure::new(SECTION, what, warm / cold, "").below(GOAL).gates().beside(beside).print();
}

/// A project with the crate, at a desk with cargo.
struct Sample {
    desk: Desk,
    cargo: String,
}

impl Sample {
    fn new() -> Self {
        let mut desk = Desk::new().without_baseline();
        let cargo = env::var("CARGO").expect("cargo runs this bench");
        // The programs of the toolchain itself come first: a proxy of rustup may install something.
        let tools = Path::new(&cargo).parent().expect("cargo is in a folder").display();
        let search_path = format!("{tools}:{}", env::var("PATH").expect("a search path"));
        desk.unset("PATH");
        desk.set("PATH", &search_path);
        desk.set("RUSTUP_AUTO_INSTALL", "0");
        desk.set("CARGO_HOME", &cargo_home().display().to_string());
        for (path, text) in [("Cargo.toml", MANIFEST), ("src/lib.rs", LIBRARY), (".gitignore", "/target\n")] {
            desk.project.write(path, text);
        }
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
        std::fs::copy(lock, desk.project.path().join("Cargo.lock")).expect("the lock file of the workspace");
        // Leaves what the crate needs in the lock file.
        let mut update = clean_command(&cargo);
        update.args(["update", "--workspace", "--offline"]).current_dir(desk.project.path());
        let ran = update.envs(desk.variables().iter().cloned()).output().expect("cargo");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        desk.project.commit("a crate with dependencies");
        Self { desk, cargo }
    }

    /// How long the second verdict of a goal takes, in seconds.
    fn second_verdict(&self, workspace: &str) -> f64 {
        let agent = "[defaults]\nagents = [\"sh\"]\n[agents.sh]\nkind = \"command\"\n";
        let command = format!("command = [\"sh\", \"-c\", {AGENT:?}]\n[workspace]\n{workspace}\n");
        self.desk.configure(&format!("{agent}{command}"));
        let check = format!("'{}' test --offline --quiet", self.cargo);
        let run = ["run", "make it pass", "--check", &check, "--budget", "attempts=2", "--json"];
        // Two builds from nothing may take longer than any test may wait.
        let ran = self.desk.command(run).output().expect("towline");
        let report: Value = serde_json::from_slice(&ran.stdout).expect("a report");
        let verdicts = report["attempts"].as_array().expect("attempts");
        assert_eq!(verdicts.len(), 2, "{report}");
        let evidence = verdicts[1]["verdict"]["checks"][0]["evidence"].as_str().expect("evidence");
        assert!(evidence.contains("a_line_is_found"), "the test did not run: {evidence}");
        let events = self.desk.events(report["id"].as_str().expect("an id"));
        let begun = last(&events, |event| event["kind"] == "attempt_ended");
        let reached = last(&events, |event| event["kind"] == "verdict_reached");
        reached.duration_since(begun).as_secs_f64()
    }
}

/// Where cargo has the sources of the dependencies.
fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(env::var_os("HOME").expect("a home")).join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

/// When the last event of a kind was recorded.
fn last(events: &[Value], is_wanted: impl Fn(&Value) -> bool) -> jiff::Timestamp {
    let event = events.iter().rev().find(|event| is_wanted(&event["event"]));
    event.and_then(|event| event["at"].as_str()).expect("an event").parse().expect("a time")
}
