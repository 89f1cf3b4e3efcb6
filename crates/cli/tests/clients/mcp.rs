//! Towline's tools, called by the official client of MCP for Python: over HTTP, and on standard input and output.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::Ran;
use crate::workshop::Workshop;

const TOOLS: [&str; 4] = ["ask", "sleep", "progress", "submit"];

/// What the client got, with these calls.
fn calls(mut python: Command, calls: &Value) -> Value {
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/mcp_calls.py"));
    let ran = Ran::from(python.env("CALLS", calls.to_string()).output().expect("Python starts"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()
}

fn over_http(workshop: &Workshop, token: &str, wanted: &Value) -> Value {
    let mut python = workshop.client("python3");
    python.env("URL", workshop.url("/mcp")).env("TOKEN", token);
    calls(python, wanted)
}

/// Whether the client gave up because the server refused its first request.
fn is_refused(got: &Value, status: u16) -> bool {
    got["error"].is_string() && got["statuses"] == json!([format!("POST {status}")])
}

#[test]
fn the_official_client_calls_tools_over_http_as_long_as_the_attempt_lives() {
    let workshop = Workshop::open("");
    let goal = workshop.add(&[]);
    let token = workshop.given(1)["TOWLINE_TOKEN"].clone();
    let asked = json!([
        ["progress", {"text": "half way", "percent": 50}],
        ["ask", {"question": "Which colour?", "options": ["red", "blue"]}],
        ["progress", {"text": ""}],
    ]);
    let got = over_http(&workshop, &token, &asked);
    assert_eq!((&got["server"], &got["protocol"]), (&json!("towline"), &json!("2025-11-25")), "{got}");
    assert_eq!((&got["tools"], &got["listed_again"]), (&json!(TOOLS), &json!(TOOLS)));
    let noted = "The question is noted. End your turn now; you will be called again with the answer.";
    let wrong = "`text` must be a text that is not empty";
    assert_eq!(got["results"], json!([["Noted.", false], [noted, false], [wrong, true]]));
    assert_eq!(got["statuses"], json!(["POST 200", "POST 202"]));
    let before = workshop.desk.events(&goal);
    for wrong in ["x".to_owned(), token.to_uppercase(), format!("{token}0")] {
        let got = over_http(&workshop, &wrong, &asked);
        assert!(is_refused(&got, 401), "{got}");
    }
    let operator = over_http(&workshop, &workshop.token, &asked);
    assert!(is_refused(&operator, 403), "{operator}");
    assert_eq!(workshop.desk.events(&goal), before, "refused calls change nothing");

    workshop.let_go(1);
    workshop.desk.wait_for_phase(&goal, "blocked");
    let blocked = over_http(&workshop, &token, &asked);
    assert!(is_refused(&blocked, 401), "the attempt is over: {blocked}");
    let answer = r#"{"text": "blue"}"#;
    let answered = workshop.curl(&["--json", answer], &format!("/goals/{goal}/answer"));
    assert_eq!(answered.json()["id"], json!(goal), "{answered:?}");
    let second = workshop.given(2)["TOWLINE_TOKEN"].clone();
    let old = over_http(&workshop, &token, &asked);
    assert!(is_refused(&old, 401), "{old}");
    let submitted = over_http(&workshop, &second, &json!([["submit", {"summary": "it is blue"}]]));
    assert_eq!(submitted["results"][0][1], false, "{submitted}");
    workshop.work(&goal);
    workshop.let_go(2);
    workshop.desk.wait_for_phase(&goal, "done");
    let log = Value::from(workshop.desk.events(&goal)).to_string();
    for recorded in ["half way", "Which colour?", "it is blue"] {
        assert!(log.contains(recorded), "{recorded}: {log}");
    }
    workshop.close();
}

#[test]
fn the_official_client_calls_tools_on_standard_input_and_output() {
    let workshop = Workshop::open("");
    let goal = workshop.add(&[]);
    let given = workshop.given(1);
    let mut python = workshop.client("python3");
    python.envs(&given).env("TOWLINE", env!("CARGO_BIN_EXE_towline"));
    let got = calls(python, &json!([["progress", {"text": "on its way"}]]));
    assert_eq!((&got["server"], &got["tools"]), (&json!("towline"), &json!(TOOLS)), "{got}");
    assert_eq!(got["results"], json!([["Noted.", false]]));
    workshop.work(&goal);
    workshop.let_go(1);
    workshop.desk.wait_for_phase(&goal, "done");
    workshop.close();
}
