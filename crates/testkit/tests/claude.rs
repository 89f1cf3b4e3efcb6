//! The pinned Claude Code, driven both ways against the scripted model.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use towline_testkit::agents::AgentCli;
use towline_testkit::model::{Matcher, ModelServer, Reply, Rule, Usage};
use towline_testkit::scratch::{Home, Project, clean_command, wait_for_some, wait_until_process_tree_gone};

/// Far more than it needs, for a machine under load.
const LIMIT: Duration = Duration::from_secs(90);

/// A running Claude Code whose lines are read as they come.
struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    seen: Vec<Value>,
    deadline: Instant,
}

impl Session {
    fn start(project: &Project, env: Vec<(String, String)>) -> Self {
        let mut child = clean_command(AgentCli::Claude.program())
            .args(["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"])
            .args(["--include-partial-messages", "--permission-prompt-tool", "stdio"])
            .args(["--permission-mode", "bypassPermissions"])
            .env_clear()
            .envs(env)
            .current_dir(project.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Claude Code starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let frame = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(frame).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, lines, seen: Vec::new(), deadline: Instant::now() + LIMIT }
    }

    fn send(&self, frame: &Value) {
        writeln!(self.stdin.as_ref().expect("open"), "{frame}").expect("Claude Code reads");
    }

    /// Reads on to the first frame that is wanted, and returns it.
    fn read_to(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let Ok(frame) = self.lines.recv_timeout(left) else {
                panic!("Claude Code sent no {what} in {LIMIT:?}; it sent {:#?}", self.seen);
            };
            self.seen.push(frame.clone());
            if wanted(&frame) {
                return frame;
            }
        }
    }

    /// Closes stdin and returns the exit code.
    fn finish(mut self) -> Option<i32> {
        self.stdin = None;
        wait_for_some(LIMIT, "Claude Code to end with its stdin", || self.child.try_wait().expect("waited"))
            .code()
    }

    fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("reaped");
    }
}

fn user(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}})
}

#[test]
fn a_tool_call_and_a_text_go_through_and_the_usage_agrees() {
    let (home, project) = (Home::new(), Project::new());
    let first = Usage { input: 120, output: 31, cache_read: 7, cache_creation: 5 };
    let second = Usage { input: 240, output: 17, cache_read: 11, cache_creation: 3 };
    let command = json!({"command": "echo made-by-tool | tee out.txt", "description": "make a file"});
    let server = ModelServer::start(
        Rule::when(Matcher::prompt_contains("make the file"))
            .reply(Reply::tool("Bash", command).with_text("Making it.").usage(first))
            .then(Reply::text("The file is made.").usage(second)),
    );
    let mut claude = Session::start(&project, AgentCli::Claude.prepare(&home.path(), &server.url()));
    claude.send(&json!({"type": "control_request", "request_id": "r1",
        "request": {"subtype": "initialize", "hooks": null}}));
    claude.read_to("control_response", |frame| frame["response"]["request_id"] == "r1");

    claude.send(&user("Please make the file"));
    let result = claude.read_to("result", |frame| frame["type"] == "result");

    assert_eq!(
        (&result["subtype"], &result["is_error"], &result["result"], &result["num_turns"]),
        (&json!("success"), &json!(false), &json!("The file is made."), &json!(2)),
        "{result:#}"
    );
    assert_eq!(project.read("out.txt"), "made-by-tool\n");
    assert_eq!(Usage::from_json(&result["usage"]), first + second);
    assert_eq!(server.reported_usage(), first + second);

    let turns = server.turns();
    assert_eq!(turns.len(), 2, "{turns:#?}");
    assert!(turns[0].prompt_text().contains("Please make the file"), "{}", turns[0].prompt_text());
    assert_eq!((turns[0].query.as_str(), turns[0].header("x-api-key")), ("beta=true", Some("dummy")));
    let outputs: Vec<_> =
        turns[1].tool_results().into_iter().map(|result| (result.text, result.is_error)).collect();
    assert_eq!(outputs, [("made-by-tool".to_owned(), false)]);
    assert!(turns[1].all_text().contains("Please make the file"));

    assert_eq!(claude.finish(), Some(0));
    wait_until_process_tree_gone(&home.marker(), LIMIT);
}

#[test]
fn a_refused_key_shows_as_retries_of_401() {
    let (home, project) = (Home::new(), Project::new());
    let server = ModelServer::start(Rule::always().reply(Reply::unauthorized()));
    let mut claude = Session::start(&project, AgentCli::Claude.prepare(&home.path(), &server.url()));
    claude.send(&user("anything"));

    let retries: Vec<Value> = (1..=2)
        .map(|attempt| {
            let retry = claude.read_to("api_retry", |frame| frame["subtype"] == "api_retry");
            json!([attempt == retry["attempt"], retry["error_status"], retry["error"]])
        })
        .collect();

    assert_eq!(
        retries,
        [json!([true, 401, "authentication_failed"]), json!([true, 401, "authentication_failed"])]
    );
    assert!(server.turns().len() >= 2);
    claude.kill();
    wait_until_process_tree_gone(&home.marker(), LIMIT);
}

#[test]
fn response_headers_have_the_end_of_a_subscriptions_limit() {
    let (home, project) = (Home::new(), Project::new());
    let reply = Reply::rate_limited()
        .header("anthropic-ratelimit-unified-status", "rejected")
        .header("anthropic-ratelimit-unified-reset", 4_102_444_800_u64)
        .header("anthropic-ratelimit-unified-representative-claim", "five_hour");
    let server = ModelServer::start(Rule::always().reply(reply));
    let mut env = AgentCli::Claude.prepare(&home.path(), &server.url());
    env.retain(|(name, _)| name != "ANTHROPIC_API_KEY");
    env.push(("CLAUDE_CODE_OAUTH_TOKEN".into(), "dummy".into()));
    let mut claude = Session::start(&project, env);
    claude.send(&user("anything"));

    let limit = claude.read_to("rate_limit_event", |frame| frame["type"] == "rate_limit_event");

    let info = &limit["rate_limit_info"];
    assert_eq!(
        (&info["status"], &info["resetsAt"], &info["rateLimitType"]),
        (&json!("rejected"), &json!(4_102_444_800_u64), &json!("five_hour")),
        "{limit:#}"
    );
    claude.kill();
    wait_until_process_tree_gone(&home.marker(), LIMIT);
}
