//! What the built-in agent takes for itself: how soon it answers after its start, and what it adds to a turn over the
//! time of the model.
//!
//! `cargo xtask bench` runs it. The model is scripted and on this machine, so its own time is that of a bare request.

#![expect(clippy::expect_used, reason = "a bench that cannot measure ends with the reason")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use towline_testkit::figures::{Figure, shown};
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule};
use towline_testkit::scratch::clean_command;

const SECTION: &str = "The built-in agent";

/// How often each thing is done; the median counts.
const TIMES: usize = 40;

struct Agent {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Agent {
    fn start(server: &str, home: &Path) -> Self {
        let mut command = clean_command(env!("CARGO_BIN_EXE_towline"));
        command.env_clear().env("TOWLINE_HOME", home).current_dir(home);
        command.args(["acp", "--provider", "openai", "--api", "chat", "--model", "m", "--base-url"]);
        command.arg(format!("{server}/v1")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("towline starts");
        let stdin = process.stdin.take().expect("its input");
        let stdout = BufReader::new(process.stdout.take().expect("its output"));
        Self { process, stdin, stdout }
    }

    /// Asks for something and waits for the answer.
    fn ask(&mut self, id: usize, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.stdin, "{request}").expect("it reads");
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).expect("its output"), 0, "it ended");
            let line: Value = serde_json::from_str(&line).expect("JSON");
            if line["id"] == id {
                assert!(line["error"].is_null(), "{line}");
                return line["result"].clone();
            }
        }
    }

    fn open(&mut self, home: &Path) -> String {
        self.ask(1, "initialize", &json!({"protocolVersion": 1}));
        let session = self.ask(2, "session/new", &json!({"cwd": home, "mcpServers": []}));
        let id = session["sessionId"].as_str().expect("a session").to_owned();
        self.ask(3, "session/set_mode", &json!({"sessionId": id, "modeId": "bypass"}));
        id
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn median(measure: impl FnMut(usize) -> Duration) -> Duration {
    let mut all: Vec<Duration> = (0..TIMES).map(measure).collect();
    all.sort_unstable();
    all[TIMES / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// From the start of a process to its first answer.
fn start(server: &str, home: &Path) -> Duration {
    median(|_| {
        let begun = Instant::now();
        let mut agent = Agent::start(server, home);
        agent.ask(1, "initialize", &json!({"protocolVersion": 1}));
        begun.elapsed()
    })
}

/// A process that does nothing, for comparison.
fn nothing() -> Duration {
    median(|_| {
        let begun = Instant::now();
        clean_command("true").status().expect("true");
        begun.elapsed()
    })
}

/// A turn from the prompt to its answer.
fn turn(server: &str, home: &Path, prompt: &str) -> Duration {
    let mut agent = Agent::start(server, home);
    let session = agent.open(home);
    let text = [json!({"type": "text", "text": prompt})];
    let params = json!({"sessionId": session, "prompt": text});
    // The first one makes the connection.
    agent.ask(4, "session/prompt", &params);
    median(|n| {
        let begun = Instant::now();
        agent.ask(5 + n, "session/prompt", &params);
        begun.elapsed()
    })
}

/// What the model takes: a bare request, with everything that is not needed left out.
fn model(server: &str) -> Duration {
    let address = server.strip_prefix("http://").expect("an address");
    let tools = [json!({"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}})];
    let messages = [json!({"role": "user", "content": "words"})];
    let body = json!({"model": "m", "stream": true, "messages": messages, "tools": tools}).to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    median(|_| {
        let begun = Instant::now();
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains("[DONE]"), "{answer}");
        begun.elapsed()
    })
}

fn main() -> std::io::Result<()> {
    let home = tempfile::tempdir()?;
    std::fs::write(home.path().join("notes.txt"), "a line\n")?;
    let reads = Rule::when(Matcher::prompt_contains("look"))
        .reply(Reply::tool("read", json!({"path": "notes.txt"})))
        .then(Reply::text("Seen."));
    // A rule repeats its last reply, so each turn that reads needs a call of its own.
    let reads = (0..TIMES).fold(reads, |rule, _| {
        rule.then(Reply::tool("read", json!({"path": "notes.txt"}))).then(Reply::text("Seen."))
    });
    let server = ModelServer::start([reads, Rule::always().reply(Reply::text("Words."))]);
    let (url, home) = (server.url(), home.path());

    let (started, nothing) = (start(&url, home), nothing());
    let model = model(&url);
    let (words, tool) = (turn(&url, home, "words"), turn(&url, home, "look"));
    let beside = format!("a process that does nothing: {} ms", shown(millis(nothing)));
    Figure::new(SECTION, "from its start to its first answer", millis(started), "ms")
        .below(30.0)
        .beside(beside)
        .print();
    let beside = format!("the model: {} ms", shown(millis(model)));
    Figure::new(SECTION, "added to a turn of words", millis(words.saturating_sub(model)), "ms")
        .below(15.0)
        .beside(beside)
        .print();
    let twice = model * 2;
    let beside = format!("the model, asked twice: {} ms", shown(millis(twice)));
    Figure::new(SECTION, "added to a turn with one tool call", millis(tool.saturating_sub(twice)), "ms")
        .below(15.0)
        .beside(beside)
        .print();
    Ok(())
}
