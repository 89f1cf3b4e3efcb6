//! The agent of the crowd: it writes a message every now and then until it is stopped, each with the time that it is written at.

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use towline_engine::{Clock, SystemClock};

/// The first argument of this program as an agent. The second one is the file that ends its work.
pub(crate) const ARGUMENT: &str = "agent";
/// The time between two messages.
pub(crate) const PACE: Duration = Duration::from_millis(250);
const VERSION: &str = "2.1.197";
const WRITTEN: &str = "written at ";

/// Works until this file is there.
pub(crate) fn run(stop: &Path, options: &[String]) {
    if options.iter().any(|option| option == "--version") {
        print_line(&format!("{VERSION} (Claude Code)"));
        return;
    }
    let is_session = |option: &String| option == "--session-id" || option == "--resume";
    let place = options.iter().position(is_session).expect("a session");
    let session = &options[place + 1];
    let mut input = std::io::stdin().lock();
    if !reaches_prompt(&mut input) {
        return;
    }
    print(
        &json!({"type": "system", "subtype": "init", "session_id": session, "model": "scripted", "tools": []}),
    );
    while !stop.exists() {
        let text = format!("{WRITTEN}{}", SystemClock.now());
        let content = json!([{"type": "text", "text": text}]);
        let message = json!({"type": "message", "role": "assistant", "model": "scripted", "content": content, "usage": usage()});
        print(&json!({"type": "assistant", "message": message, "session_id": session}));
        std::thread::sleep(PACE);
    }
    print(&json!({
        "type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "result": "done", "session_id": session,
        "total_cost_usd": 0.001, "usage": usage(),
    }));
    // The engine closes it when it has read the result.
    let _ = std::io::copy(&mut input, &mut std::io::sink());
}

/// When a message of the agent was written; none for any other text.
pub(crate) fn written_at(text: &str) -> Option<Timestamp> {
    text.strip_prefix(WRITTEN)?.parse().ok()
}

/// Replies to requests until there is a prompt; there is none if the engine goes away before.
fn reaches_prompt(input: &mut impl BufRead) -> bool {
    for line in input.lines() {
        let line: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        match line["type"].as_str() {
            Some("control_request") => {
                let response =
                    json!({"subtype": "success", "request_id": line["request_id"], "response": {}});
                print(&json!({"type": "control_response", "response": response}));
            }
            Some("user") => return true,
            _ => {}
        }
    }
    false
}

fn usage() -> Value {
    json!({"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0})
}

fn print(frame: &Value) {
    print_line(&frame.to_string());
}

fn print_line(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("somebody reads it");
}
