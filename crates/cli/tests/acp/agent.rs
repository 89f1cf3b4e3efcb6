//! A tiny ACP client, and the program at its other end.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use towline_testkit::model::ModelServer;
use towline_testkit::scratch::clean_command;

/// Nothing takes so long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The name of the variable with the key, and the key.
pub(crate) const KEY: (&str, &str) = ("SCRIPTED_KEY", "sk-scripted-secret");

/// The four wire formats, as the command line names them, and where their paths begin.
pub(crate) const FORMATS: [(&str, &[&str], &str); 4] = [
    ("responses", &["--provider", "openai", "--api", "responses"], "/v1"),
    ("chat", &["--provider", "openai"], "/v1"),
    ("gemini", &["--provider", "gemini"], "/v1beta"),
    ("anthropic", &["--provider", "anthropic"], "/v1"),
];

/// One format, for tests that do not depend on it.
pub(crate) const ANY: (&str, &[&str], &str) = FORMATS[1];

/// A directory to work in and one for state.
pub(crate) struct Place {
    root: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().expect("a scratch directory");
        std::fs::create_dir(root.path().join("work")).expect("a directory");
        Self { root }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().canonicalize().expect("a real path").join("work")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.work().join(name), text).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.work().join(name)).ok()
    }

    /// The command, without arguments.
    pub(crate) fn command(&self) -> Command {
        let mut command = clean_command(env!("CARGO_BIN_EXE_towline"));
        command.env("HOME", self.root.path()).env("TOWLINE_HOME", self.root.path().join("state"));
        command.env(KEY.0, KEY.1).current_dir(self.root.path());
        command
    }

    /// Starts an agent whose model is at `server`.
    pub(crate) fn agent(&self, format: (&str, &[&str], &str), server: &ModelServer, more: &[&str]) -> Agent {
        let (_, provider, prefix) = format;
        let mut command = self.command();
        command.arg("acp").args(provider).args(["--model", "scripted-model", "--key-env", KEY.0]);
        command.args(["--base-url", &format!("{}{prefix}", server.url())]).args(more);
        Agent::start_with(command, self.work())
    }

    /// The same with a session.
    pub(crate) fn session(
        &self,
        format: (&str, &[&str], &str),
        server: &ModelServer,
        more: &[&str],
    ) -> (Agent, String) {
        let mut agent = self.agent(format, server, more);
        let session = agent.new_session(&json!([]));
        (agent, session)
    }

    /// The number that a command has written into a file, as soon as it is there.
    pub(crate) fn pid(&self, name: &str) -> Pid {
        let begun = Instant::now();
        loop {
            let number = self.read(name).and_then(|text| text.trim().parse().ok());
            if let Some(pid) = number.and_then(Pid::from_raw) {
                return pid;
            }
            assert!(begun.elapsed() < DEADLINE, "{name} was not written");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Waits until a process is gone.
pub(crate) fn wait_gone(pid: Pid) {
    let begun = Instant::now();
    while test_kill_process(pid).is_ok() && !is_zombie(pid) {
        assert!(begun.elapsed() < DEADLINE, "{pid:?} still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whoever adopted it may take its time to notice.
fn is_zombie(pid: Pid) -> bool {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    std::fs::read_to_string(Path::new(&path)).is_ok_and(|stat| stat.contains(") Z "))
}

/// The program, from the client's side.
pub(crate) struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    reader: Option<JoinHandle<()>>,
    work: PathBuf,
    last_id: u64,
    /// What it is answered when it asks for a permission.
    pub(crate) permit: &'static str,
}

impl Agent {
    pub(crate) fn start_with(mut command: Command, work: PathBuf) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (sender, messages) = channel();
        let reader = std::thread::spawn(move || {
            for line in output.lines() {
                let line = line.expect("text");
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Self { child, input, messages, reader: Some(reader), work, last_id: 0, permit: "allow_once" }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("its input is open");
        writeln!(input, "{message}").expect("it reads");
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// All news until the answer to a request, and the answer. Permissions are answered on the way.
    pub(crate) fn until(&mut self, id: u64) -> (Vec<Value>, Value) {
        let mut news = Vec::new();
        loop {
            let message = match self.messages.recv_timeout(DEADLINE) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => panic!("no answer; the news: {news:?}"),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended; the news: {news:?}"),
            };
            if message["method"] == "session/request_permission" {
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": self.permit}});
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome}));
            } else if message["id"] == json!(id) {
                return (news, message);
            }
            news.push(message);
        }
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.until(id).1
    }

    pub(crate) fn new_session(&mut self, servers: &Value) -> String {
        let answer = self.call("session/new", &json!({"cwd": self.work, "mcpServers": servers}));
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Opens an earlier session.
    pub(crate) fn open(&mut self, method: &str, session: &str) -> (Vec<Value>, Value) {
        let params = json!({"sessionId": session, "cwd": self.work, "mcpServers": []});
        let id = self.request(method, &params);
        self.until(id)
    }

    pub(crate) fn bypass(&mut self, session: &str) {
        let answer = self.call("session/set_mode", &json!({"sessionId": session, "modeId": "bypass"}));
        assert_eq!(answer["result"], json!({}));
    }

    pub(crate) fn ask(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }

    /// A whole turn: the news, and the answer.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> (Vec<Value>, Value) {
        let id = self.ask(session, text);
        self.until(id)
    }

    pub(crate) fn cancel(&mut self, session: &str) {
        self.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
    }

    pub(crate) fn kill(&mut self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::KILL).expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Closes its input, and waits for its end.
    pub(crate) fn end(mut self) -> ExitStatus {
        drop(self.input.take());
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status;
            }
            assert!(begun.elapsed() < DEADLINE, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take()
            && reader.join().is_err()
            && !std::thread::panicking()
        {
            panic!("its output was no protocol; the message is above");
        }
    }
}

/// The updates of a kind among the news.
pub(crate) fn updates(news: &[Value], kind: &str) -> Vec<Value> {
    let updates = news.iter().filter(|message| message["method"] == "session/update");
    let updates = updates.map(|message| message["params"]["update"].clone());
    updates.filter(|update| update["sessionUpdate"] == kind).collect()
}

/// The text of its messages.
pub(crate) fn message_text(news: &[Value]) -> String {
    let chunks = updates(news, "agent_message_chunk").into_iter();
    chunks.map(|update| update["content"]["text"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The status and output of each call that came to its end.
pub(crate) fn ends(news: &[Value]) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let over = |update: &Value| update["status"] == "completed" || update["status"] == "failed";
    let ends = updates(news, "tool_call_update").into_iter().filter(over);
    ends.map(|update| (word(&update["status"]), word(&update["rawOutput"]["output"]))).collect()
}

pub(crate) fn stop_reason(answer: &Value) -> &str {
    answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// The notifications of a method.
pub(crate) fn notified(news: &[Value], method: &str) -> Vec<Value> {
    let notified = news.iter().filter(|message| message["method"] == method);
    notified.map(|message| message["params"].clone()).collect()
}
