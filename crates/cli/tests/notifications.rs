//! The user's own command runs when a goal needs them or has ended, and a repository cannot set it.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use serde_json::{Value, json};
use support::Desk;
use towline_testkit::hostile;

/// Writes each notification to a file: its text, then its JSON, each a line.
fn desk(script: &str) -> (Desk, std::path::PathBuf) {
    let desk = Desk::with_script(|dir| hostile::doing(dir, script));
    let file = desk.home.path().join("notified");
    let folder = desk.home.config().join("towline/config.toml");
    let before = std::fs::read_to_string(&folder).unwrap_or_default();
    let command = format!("{{ echo \"$TOWLINE_TEXT\"; cat; echo; }} >> '{}'", file.display());
    desk.configure(&format!("{before}\n[notify]\ncommand = {}\n", Value::from(command)));
    (desk, file)
}

fn notified(file: &std::path::Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines.chunks(2).map(|pair| (pair[0].to_owned(), serde_json::from_str(pair[1]).expect("JSON"))).collect()
}

#[test]
fn the_end_of_a_goal_is_told_to_the_users_command() {
    let (desk, file) = desk("echo fixed > fix.txt");
    for (check, kind, text) in [
        ("test -e fix.txt", "done", "fix it is done"),
        ("false", "failed", "fix it failed: budget: attempts"),
    ] {
        let _ = std::fs::remove_file(&file);
        let ran = desk.towline(["run", "fix it", "--check", check, "--budget", "attempts=1", "--json"]);
        let goal = ran.json();
        let all = notified(&file);
        let [(line, json)] = &all[..] else { panic!("{all:?} {ran:?}") };
        assert_eq!((line.as_str(), &json["kind"], &json["text"]), (text, &json!(kind), &json!(text)));
        assert_eq!((&json["goal"], &json["phase"]), (&goal["id"], &json!(kind)));
        assert_eq!((&json["origin"], &json["metadata"]), (&goal["origin"], &json!({})));
    }
}

#[test]
fn a_command_that_fails_or_prints_does_not_matter_to_the_goal() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    let folder = desk.home.config().join("towline/config.toml");
    let before = std::fs::read_to_string(&folder).unwrap_or_default();
    desk.configure(&format!("{before}\n[notify]\ncommand = \"echo noise; echo noise >&2; exit 3\"\n"));
    let ran = desk.towline(["run", "fix it", "--check", "true", "--json"]);
    assert_eq!((ran.code, &ran.json()["phase"]), (Some(0), &json!("done")), "{ran:?}");
    assert!(
        ran.stderr.contains("`notify.command` failed") && !ran.stderr.contains("noise"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_repository_cannot_have_a_command_run() {
    let (desk, file) = desk("echo fixed > fix.txt");
    let other = desk.home.path().join("repository");
    let command = format!("touch '{}'", other.display());
    desk.project.write("towline.toml", format!("[notify]\ncommand = {}\n", Value::from(command)));
    desk.project.commit("a command of the repository's");
    let ran = desk.towline(["run", "fix it", "--check", "true"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("notify.command"), "{}", ran.stderr);
    assert_eq!(notified(&file).len(), 1);
    assert!(!other.exists());
}
