//! A new goal continues the conversation of an earlier one, at the same path.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::Path;

use serde_json::{Value, json};
use support::{Desk, of_attempts};
use towline_testkit::hostile;

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// An agent that adds a line with each turn.
fn desk() -> Desk {
    Desk::with_script(|dir| hostile::doing(dir, "echo line >> work.txt"))
}

fn run(desk: &Desk, lines: u32, more: &[&str]) -> Value {
    let check = format!("test \"$(wc -l < work.txt)\" -eq {lines}");
    let args = ["run", "add a line", "--check", &check, "--json"];
    let ran = desk.towline(args.into_iter().chain(more.iter().copied()));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()
}

#[test]
fn a_goal_continues_an_ended_one_from_its_result_and_leaves_its_work() {
    let desk = desk();
    let first = run(&desk, 1, &[]);
    let second = run(&desk, 2, &["--continue", text(&first["id"])]);
    assert_eq!(second["base"], first["candidate"]);
    assert_eq!(second["workspace"], first["workspace"]);
    assert_eq!(of_attempts(&second, "session"), of_attempts(&first, "session"));
    assert_eq!(of_attempts(&second, "resumed"), [json!(true)]);
    let third = run(&desk, 3, &["--continue", text(&second["id"])]);
    assert_eq!(third["workspace"], first["workspace"]);

    // The earlier goals are as they were, at another place.
    for (goal, lines) in [(&first, 1), (&second, 2)] {
        let id = text(&goal["id"]);
        let shown = desk.show(id);
        assert_eq!((&shown["phase"], &shown["candidate"]), (&json!("done"), &goal["candidate"]));
        let work = std::fs::read_to_string(Path::new(text(&shown["workspace"])).join("work.txt"));
        assert_eq!(work.expect("its work").lines().count(), lines);
        let refused = desk.towline(["run", "more", "--continue", id]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("continues it already"), "{refused:?}");
    }
    // Removing one does not touch the place of the newest.
    let removed = desk.towline(["rm", "--force", text(&first["id"]), text(&second["id"])]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(Path::new(text(&third["workspace"])).join("work.txt").exists());
    let swept = desk.towline(["gc", "--dry-run", "--json"]);
    assert!(!swept.stdout.contains("no longer exists"), "{swept:?}");
}

#[test]
fn a_goal_whose_successor_is_gone_can_be_continued_again() {
    let desk = desk();
    let first = run(&desk, 1, &[]);
    let id = text(&first["id"]);
    let second = run(&desk, 2, &["--continue", id]);
    let removed = desk.towline(["rm", "--force", text(&second["id"])]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let third = run(&desk, 2, &["--continue", id]);
    assert_eq!((&third["base"], &third["workspace"]), (&first["candidate"], &first["workspace"]));
    assert_eq!(desk.show(id)["continued_by"], third["id"]);
}

#[test]
fn what_cannot_be_continued_is_refused_before_anything_starts() {
    let desk = desk();
    let first = run(&desk, 1, &[]);
    let id = text(&first["id"]);
    let more = ["run", "more", "--check", "true", "--continue", id];
    for (flags, reason) in [
        (["--agent", "codex"], "cannot continue the conversation of"),
        (["--model", "another"], "was held with another model"),
    ] {
        let refused = desk.towline(more.into_iter().chain(flags));
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(reason), "{refused:?}");
    }
    let goals = desk.towline(["ls", "--all", "--json"]).json();
    assert_eq!(goals.as_array().map(Vec::len), Some(1), "{goals}");
    assert_eq!(desk.show(id)["workspace"], first["workspace"]);
}
