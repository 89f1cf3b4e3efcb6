//! A machine with a running server, and an agent that shows its environment and waits.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};

use serde_json::Value;
use towline_testkit::agents::clients_folder;
use towline_testkit::scratch::{clean_command, wait_for, wait_for_some, wait_until_process_tree_gone};

use crate::support::{Desk, LIMIT, Ran, finish};

/// The agent writes down its environment, does what the test wants, and ends its turn when it is let go.
const AGENT: &str = r#"#!/bin/sh
cat > /dev/null
n=$(($(cat "$HOME/runs" 2>/dev/null || echo 0) + 1)); echo $n > "$HOME/runs"
mkfifo "$HOME/go.$n"
WORK
env | grep '^TOWLINE_' > "$HOME/given.new"
mv "$HOME/given.new" "$HOME/given.$n"
read line < "$HOME/go.$n"
"#;

/// How many seconds a client may take, on a machine under load.
const LONGEST: &str = "240";

pub(crate) struct Workshop {
    pub(crate) desk: Desk,
    /// Where the server listens.
    pub(crate) address: String,
    /// What proves that a request comes from the operator.
    pub(crate) token: String,
    server: Child,
}

impl Workshop {
    /// With an agent that does this before it waits.
    pub(crate) fn open(work: &str) -> Self {
        let desk = Desk::new();
        let script = desk.home.path().join("agent.sh");
        std::fs::write(&script, AGENT.replace("WORK", work)).expect("a script");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("an executable");
        desk.configure(&format!(
            "defaults.agents = [\"mine\"]\n[agents.mine]\nkind = \"command\"\ncommand = [{:?}]\n",
            script.display().to_string()
        ));
        let desk = desk.without_baseline();
        let server = desk.start(["up", "--listen", "127.0.0.1:0", "--wait", "1s"]);
        wait_for(LIMIT, "the server", || desk.towline(["open"]).code == Some(0));
        let address = desk.towline(["open", "--json"]).json()["address"].as_str().expect("text").to_owned();
        let token = std::fs::read_to_string(desk.home.towline().join("operator-token")).expect("a token");
        Self { desk, address, token: token.trim().to_owned(), server }
    }

    /// Adds a goal that is reached when its workspace has a `done.txt`, and returns its id.
    pub(crate) fn add(&self, more: &[&str]) -> String {
        let args = ["add", "Work", "--check", "test -e done.txt", "--json"].into_iter();
        self.desk.towline(args.chain(more.iter().copied())).json()["id"].as_str().expect("an id").to_owned()
    }

    /// The environment of an attempt, once the agent waits in it.
    pub(crate) fn given(&self, attempt: usize) -> BTreeMap<String, String> {
        let file = self.desk.home.path().join(format!("given.{attempt}"));
        let text = wait_for_some(LIMIT, "the attempt's environment", || std::fs::read_to_string(&file).ok());
        let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        text.lines().filter_map(pair).collect()
    }

    /// Has the agent end its turn.
    pub(crate) fn let_go(&self, attempt: usize) {
        let fifo = self.desk.home.path().join(format!("go.{attempt}"));
        std::fs::write(fifo, "go\n").expect("the agent listens");
    }

    /// Puts the work of a goal into its workspace.
    pub(crate) fn work(&self, goal: &str) {
        let workspace = self.desk.show(goal)["workspace"].as_str().expect("a workspace").to_owned();
        std::fs::write(Path::new(&workspace).join("done.txt"), "x").expect("the work");
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/api/v1{path}", self.address)
    }

    /// A program of the clients, with nothing of this process' environment. It is ended when it takes far too long.
    pub(crate) fn client(&self, program: &str) -> Command {
        let mut command = clean_command("timeout");
        command.arg(LONGEST).arg(clients_folder().join(program));
        command.env_clear().env("HOME", self.desk.home.path()).env("PATH", "/usr/bin:/bin");
        // Its own files are beside the tests, and so would be what Python makes of them.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.current_dir(self.desk.home.path());
        command
    }

    /// Sends a request with curl, as the operator would.
    pub(crate) fn curl(&self, arguments: &[&str], path: &str) -> Ran {
        let mut curl = clean_command("curl");
        curl.args(["--silent", "--show-error", "--max-time", "60", "--header"]);
        curl.arg(format!("Authorization: Bearer {}", self.token)).args(arguments).arg(self.url(path));
        Ran::from(curl.output().expect("curl starts: run `cargo xtask setup`"))
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.curl(&["--fail"], path).json()
    }

    /// Stops the server, and waits until nothing of it is left.
    pub(crate) fn close(self) {
        let down = self.desk.towline(["down"]);
        assert_eq!(down.code, Some(0), "{down:?}");
        assert_eq!(finish(self.server).code, Some(0));
        wait_until_process_tree_gone(&self.desk.home.marker(), LIMIT);
    }
}
