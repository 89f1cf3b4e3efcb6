//! `towline replay`: attempts once more, from their raw bytes.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Desk, LIMIT};
use towline_testkit::hostile;
use towline_testkit::scratch::wait_for;

/// An agent that writes two messages, with a pause of a second between them.
const PAUSED: &str = "await_prompt\ninit\nassistant 'First words.'\nsleep 1\nassistant 'Last words.'\n\
                      result false null 'Last words.'\nwhile IFS= read -r line; do :; done\n";

/// A goal with one attempt, of that agent.
fn replayable() -> (Desk, String) {
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "paused", PAUSED));
    let ran = desk.towline(["run", "write two messages", "--check", "true", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let goal = desk.only_goal();
    (desk, goal)
}

#[test]
fn an_attempt_is_printed_again_as_it_was() {
    let (desk, goal) = replayable();
    let log = desk.towline(["logs", &goal, "--attempt", "1"]).stdout;
    let replayed = desk.towline(["replay", &goal]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let mut lines = replayed.stdout.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("attempt 1 · ")), "{replayed:?}");
    let rest: Vec<&str> = lines.collect();
    assert_eq!(rest, log.lines().take(rest.len()).collect::<Vec<_>>());
    assert!(rest.iter().any(|line| line.contains("Last words.")), "{rest:?}");
    let checked = desk.towline(["replay", &goal, "--check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.ends_with(" events, all as stored\n"), "{checked:?}");
}

#[test]
fn the_original_settings_hold_whatever_the_configuration_is_now() {
    let (desk, goal) = replayable();
    desk.configure("defaults.agents = [\"codex\"]\n");
    assert_eq!(desk.towline(["replay", &goal, "--check"]).code, Some(0));
}

#[test]
fn events_are_printed_for_programs_as_they_are_stored() {
    let (desk, goal) = replayable();
    let of_bytes = |event: &Value| !event["raw"].is_null();
    let fields = |event: &Value| json!([event["raw"], event["parent"], event["source"], event["event"]]);
    let stored: Vec<Value> = desk.events(&goal).iter().filter(|event| of_bytes(event)).map(fields).collect();
    let lines = desk.towline(["replay", &goal, "--json"]).stdout;
    let replayed = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let replayed: Vec<Value> = replayed.filter(of_bytes).map(|event| fields(&event)).collect();
    assert_eq!(replayed, stored);
    assert!(stored.len() > 3, "{stored:?}");
}

#[test]
fn the_pace_is_that_of_then_or_as_many_times_faster_as_is_wanted() {
    let (desk, goal) = replayable();
    for (speed, least) in [("1", 900), ("4", 225)] {
        let begun = Instant::now();
        assert_eq!(desk.towline(["replay", &goal, "--speed", speed]).code, Some(0));
        assert!(begun.elapsed() >= Duration::from_millis(least), "{speed}");
    }
    for wrong in ["0", "-1", "fast", "inf"] {
        assert_eq!(desk.towline(["replay", &goal, "--speed", wrong]).code, Some(2), "{wrong}");
    }
}

#[test]
fn bytes_that_mean_something_else_than_what_is_stored_are_named() {
    let (mut desk, goal) = replayable();
    desk.leaves_nothing_to_replay("the log is changed on purpose");
    let dir = desk.show(&goal)["attempts"][0]["dir"].as_str().expect("a directory").to_owned();
    let log = Path::new(&dir).join("stdout.log");
    let text = std::fs::read_to_string(&log).expect("the log");
    std::fs::write(&log, text.replacen("First words.", "Other words.", 1)).expect("changed");
    for args in [vec!["replay", &goal, "--check"], vec!["replay", &goal]] {
        let ran = desk.towline(args);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.stderr.contains("First words.") && ran.stderr.contains("Other words."), "{ran:?}");
    }
    let outcome = desk.towline(["replay", &goal, "--check", "--json"]).json();
    assert_eq!(outcome["difference"]["replayed"]["event"]["text"], "Other words.", "{outcome}");
}

#[test]
fn what_cannot_be_replayed_is_refused_with_a_hint() {
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "lingers", "await_prompt\ninit\nlinger\n"));
    let mut towline = desk.start(["run", "take long"]);
    let goal = desk.only_goal();
    let has_begun = || !desk.show(&goal)["attempts"][0]["session"].is_null();
    wait_for(LIMIT, "the attempt to begin", has_begun);
    let running = desk.towline(["replay", &goal]);
    assert_eq!(running.code, Some(2), "{running:?}");
    assert!(running.stderr.contains("towline logs -f"), "{running:?}");
    assert_eq!(desk.towline(["replay", &goal, "--attempt", "7"]).code, Some(5));
    assert_eq!(desk.towline(["replay", "ffffffff"]).code, Some(5));
    assert_eq!(desk.towline(["cancel", &goal]).code, Some(0));
    towline.wait().expect("gone");
}
