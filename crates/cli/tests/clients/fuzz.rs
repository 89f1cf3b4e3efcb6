//! The whole interface, fuzzed by schemathesis from the committed OpenAPI document, on a real server with real goals.
//!
//! With the operator's token every reply is one that the document describes. Without it, or with a wrong one, every request is refused and
//! changes nothing. Streams are left out: they have no end.

use serde_json::Value;
use towline_testkit::scratch::wait_for;

use crate::support::{LIMIT, Ran};
use crate::workshop::Workshop;

/// The agent does its work at once; the second one asks something instead.
const WORK: &str = r#"
if [ $n = 2 ]; then echo '{"question": "Which colour?"}' > "$TOWLINE_QUESTION_FILE"; else echo x > done.txt; fi
exit 0
"#;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../api/openapi.json");
const SETTINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/schemathesis.toml");
const HOOKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/fuzz_hooks.py");
/// The same requests each time.
const SEED: &str = "1";

/// A server with a goal that is done, one that waits for an answer, and one that was cancelled.
fn with_goals() -> (Workshop, [String; 3]) {
    let workshop = Workshop::open(WORK);
    let done = workshop.add(&[]);
    workshop.desk.wait_for_phase(&done, "done");
    let asking = workshop.add(&[]);
    workshop.desk.wait_for_phase(&asking, "blocked");
    let cancelled = workshop.add(&["--after", &asking]);
    assert_eq!(workshop.desk.towline(["cancel", &cancelled]).code, Some(0));
    (workshop, [done, asking, cancelled])
}

/// Runs schemathesis on everything that ends.
fn fuzz(workshop: &Workshop, goals: &[String], variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let mut schemathesis = workshop.client("schemathesis");
    let attempts = std::fs::read_to_string(workshop.desk.home.towline().join("token")).expect("a secret");
    schemathesis.env("SCHEMATHESIS_HOOKS", HOOKS).env("GOALS", goals.join(" "));
    schemathesis.env("REPOSITORY", workshop.desk.project.path());
    schemathesis.env("SECRETS", format!("{} {}", workshop.token, attempts.trim()));
    schemathesis.envs(variables.iter().copied()).args(["--config-file", SETTINGS, "run", DOCUMENT]);
    schemathesis.args(["--url", &format!("http://{}", workshop.address), "--exclude-path", "/api/v1/events"]);
    schemathesis.args(["--seed", SEED, "--generation-database", "none", "--no-color", "--no-shrink"]);
    schemathesis.args(["--request-timeout", "30", "--continue-on-failure", "--warnings", "off"]);
    Ran::from(schemathesis.args(arguments).output().expect("schemathesis starts"))
}

/// Everything about all goals, as the operator sees it.
fn everything(workshop: &Workshop) -> Vec<Value> {
    let goals = workshop.get("/goals?limit=500")["goals"].as_array().expect("goals").clone();
    let logs =
        goals.iter().map(|goal| Value::from(workshop.desk.events(goal["id"].as_str().expect("an id"))));
    let accounts = workshop.get("/accounts");
    logs.chain(goals.iter().cloned()).chain([accounts]).collect()
}

/// Ends all goals, so that nothing is left running.
fn cancel_all(workshop: &Workshop) {
    wait_for(LIMIT, "all goals to end", || {
        let page = workshop.get("/goals?limit=500&phase=queued,running,blocked,paused,limited,sleeping");
        let goals = page["goals"].as_array().expect("goals").clone();
        for goal in &goals {
            let id = goal["id"].as_str().expect("an id");
            workshop.curl(&["--request", "POST"], &format!("/goals/{id}/cancel"));
        }
        goals.is_empty()
    });
}

#[test]
fn every_reply_to_the_operator_is_one_that_the_document_describes() {
    let (workshop, goals) = with_goals();
    let token = format!("Authorization: Bearer {}", workshop.token);
    let bounds = ["--header", &token, "--phases", "coverage,fuzzing", "--max-examples", "20"];
    // That check expects 401 however many wrong tokens come in a while. The test below sends those, and takes 429 as well.
    let without = ["--exclude-checks", "ignored_auth"];
    let ran = fuzz(&workshop, &goals, &[], &[&bounds[..], &without].concat());
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let counts = workshop.curl(&["--fail"], "/metrics").stdout;
    let of_class = |class: &str| {
        let row = format!("towline_http_requests_total{{class=\"{class}\"}} ");
        counts.lines().find_map(|line| line.strip_prefix(&row)?.parse::<u64>().ok()).expect("a count")
    };
    assert!(of_class("2xx") > 50 && of_class("4xx") > 200, "too little was asked: {counts}");
    assert_eq!(of_class("5xx"), 0, "{counts}");
    cancel_all(&workshop);
    workshop.close();
}

#[test]
fn whatever_is_sent_to_the_tools_of_an_agent_is_answered_and_changes_nothing() {
    let workshop = Workshop::open("");
    let goal = workshop.add(&[]);
    let token = format!("Authorization: Bearer {}", workshop.given(1)["TOWLINE_TOKEN"]);
    let before = workshop.desk.events(&goal);
    let arguments = ["--header", &token, "--include-path", "/api/v1/mcp", "--phases", "coverage,fuzzing"];
    let ran = fuzz(&workshop, std::slice::from_ref(&goal), &[], &arguments);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(workshop.desk.events(&goal), before);
    cancel_all(&workshop);
    workshop.close();
}

#[test]
fn nobody_else_learns_or_changes_anything() {
    let (workshop, goals) = with_goals();
    let before = everything(&workshop);
    let wrong = format!("Authorization: Bearer {}", workshop.token.to_uppercase());
    let checks = ["--checks", "is_refused,nothing_leaks,not_a_server_error"];
    let bounds = ["--phases", "coverage,fuzzing", "--max-examples", "5"];
    for header in [&[][..], &["--header", &wrong]] {
        let arguments = [header, &checks, &bounds].concat();
        let ran = fuzz(&workshop, &goals, &[("REFUSED", "1")], &arguments);
        assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    }
    assert_eq!(everything(&workshop), before);
    cancel_all(&workshop);
    workshop.close();
}
