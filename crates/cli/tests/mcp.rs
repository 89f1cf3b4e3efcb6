//! `towline mcp`, as an agent uses it: by the environment of its attempt.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};
use support::{Desk, LIMIT, finish};
use towline_testkit::scratch::{wait_for_some, wait_until_process_tree_gone};

/// The agent prints its environment, and ends its turn when it is let go.
const AGENT: &str = r#"#!/bin/sh
cat > /dev/null
n=$(($(cat "$HOME/runs" 2>/dev/null || echo 0) + 1)); echo $n > "$HOME/runs"
env | grep '^TOWLINE_' > "$HOME/given.new"
mv "$HOME/given.new" "$HOME/given.$n"
mkfifo "$HOME/go.$n" && read line < "$HOME/go.$n"
"#;

struct Office {
    desk: Desk,
    goal: String,
    run: std::process::Child,
}

impl Office {
    /// A goal whose agent waits in its first attempt.
    fn open() -> Self {
        let desk = Desk::new();
        let script = desk.home.path().join("agent.sh");
        std::fs::write(&script, AGENT).expect("a script");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("an executable");
        desk.configure(&format!(
            "defaults.agents = [\"mine\"]\n[agents.mine]\nkind = \"command\"\ncommand = [{:?}]\n",
            script.display().to_string()
        ));
        let run = desk.start(["run", "Work", "--check", "test -e done.txt", "--json"]);
        let goal = desk.only_goal();
        Self { desk, goal, run }
    }

    /// The environment of the attempt, once it runs.
    fn given(&self, attempt: usize) -> BTreeMap<String, String> {
        let file = self.desk.home.path().join(format!("given.{attempt}"));
        let text = wait_for_some(LIMIT, "the attempt's environment", || std::fs::read_to_string(&file).ok());
        let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        text.lines().filter_map(pair).collect()
    }

    /// Has the agent end its turn, with the work done.
    fn let_go(&self, attempt: usize) {
        let workspace = self.desk.show(&self.goal)["workspace"].as_str().expect("a workspace").to_owned();
        std::fs::write(std::path::Path::new(&workspace).join("done.txt"), "x").expect("the work");
        self.go(attempt);
    }

    /// Has the agent end its turn.
    fn go(&self, attempt: usize) {
        let fifo = self.desk.home.path().join(format!("go.{attempt}"));
        std::fs::write(fifo, "go\n").expect("the agent listens");
    }

    fn close(self) -> Value {
        let ran = finish(self.run);
        wait_until_process_tree_gone(&self.desk.home.marker(), LIMIT);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.json()
    }
}

/// What the server answers to these requests, in their order.
fn serve(desk: &Desk, environment: &BTreeMap<String, String>, requests: &[Value]) -> Vec<Value> {
    let mut command = desk.command(["mcp"]);
    let mut server = command.envs(environment).stdin(Stdio::piped()).spawn().expect("towline starts");
    let mut stdin = server.stdin.take().expect("its standard input");
    for request in requests {
        writeln!(stdin, "{request}").expect("it reads");
    }
    drop(stdin);
    let ran = finish(server);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout.lines().map(|line| serde_json::from_str(line).expect("an answer")).collect()
}

/// The result of a tool, and whether it is an error.
fn call(desk: &Desk, environment: &BTreeMap<String, String>, tool: &str, arguments: Value) -> (String, bool) {
    let params = json!({"name": tool, "arguments": arguments});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let answers = serve(desk, environment, &[request]);
    let result = &answers[0]["result"];
    let text = result["content"][0]["text"].as_str().expect("words");
    (text.to_owned(), result["isError"].as_bool().expect("a verdict"))
}

const REFUSED: &str = "refused: ";

#[test]
fn progress_and_a_claim_are_recorded_and_the_checks_decide() {
    let office = Office::open();
    let given = office.given(1);
    let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"});
    let tools = &serve(&office.desk, &given, &[list])[0]["result"]["tools"];
    let names: Vec<&str> =
        tools.as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["ask", "sleep", "progress", "submit"]);
    let progress = call(&office.desk, &given, "progress", json!({"text": "half way", "percent": 50}));
    assert_eq!(progress, ("Noted.".to_owned(), false));
    let (words, is_error) = call(&office.desk, &given, "submit", json!({"summary": "it is all there"}));
    assert!(!is_error && words.contains("checks"), "{words}");
    let (words, is_error) = call(&office.desk, &given, "submit", json!({}));
    assert!(is_error && words.contains("`summary`"), "{words}");
    // The claim decides nothing: without the work, the check is red.
    office.go(1);
    office.given(2);
    let (desk, goal) = (&office.desk, &office.goal);
    let events = desk.events(goal);
    let log = serde_json::to_string(&events).expect("events");
    assert!(log.contains("half way") && log.contains("it is all there"), "{log}");
    assert_eq!(desk.show(goal)["attempts"][0]["verdict"]["met"], false);
    office.let_go(2);
    assert_eq!(office.close()["phase"], "done");
}

#[test]
fn an_agent_that_wants_to_sleep_is_called_again_later() {
    let office = Office::open();
    let (words, is_error) =
        call(&office.desk, &office.given(1), "sleep", json!({"seconds": 1, "reason": "the build"}));
    assert!(!is_error, "{words}");
    office.go(1);
    office.given(2);
    office.let_go(2);
    let report = office.close();
    assert_eq!(report["attempts"][0]["end"], "slept", "{report}");
    assert_eq!(report["phase"], "done");
}

#[test]
fn a_token_reaches_its_own_goal_only_and_dies_with_its_attempt() {
    let (one, other) = (Office::open(), Office::open());
    let (given, foreign) = (one.given(1), other.given(1));
    let text = || json!({"text": "hello"});
    // The token of one goal, sent to the engine of the other.
    let mut mixed = foreign.clone();
    mixed.insert("TOWLINE_TOKEN".to_owned(), given["TOWLINE_TOKEN"].clone());
    let (words, is_error) = call(&other.desk, &mixed, "progress", text());
    assert!(is_error && words.starts_with(REFUSED), "{words}");
    for wrong in ["", "0", &given["TOWLINE_TOKEN"].to_uppercase()] {
        let mut forged = given.clone();
        forged.insert("TOWLINE_TOKEN".to_owned(), format!("{wrong}x"));
        let (words, is_error) = call(&one.desk, &forged, "progress", text());
        assert!(is_error && words.starts_with(REFUSED), "{words}");
    }
    // The first attempt is over: its token is of no use to whatever it left running.
    one.go(1);
    let second = one.given(2);
    assert_ne!(second["TOWLINE_TOKEN"], given["TOWLINE_TOKEN"]);
    let (words, is_error) = call(&one.desk, &given, "ask", json!({"question": "Still there?"}));
    assert!(is_error && words.starts_with(REFUSED), "{words}");
    assert_eq!(call(&one.desk, &second, "progress", text()), ("Noted.".to_owned(), false));
    one.let_go(2);
    other.let_go(1);
    let report = one.close();
    assert_eq!((&report["phase"], &report["question"]), (&json!("done"), &Value::Null));
    other.close();
}
