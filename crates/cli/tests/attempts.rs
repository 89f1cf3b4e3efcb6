//! What holds over all attempts of a goal: their place, their logs, what they are judged by, and what is heard of them.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Desk, Ran, of_attempts};
use towline_testkit::hostile;

/// A script whose turns are these commands and these last words, and which then waits for the end of its input.
fn with_text(dir: &Path, commands: &str, words: &str) -> PathBuf {
    let body = format!(
        "await_prompt\ninit\n{commands}\nassistant '{words}'\nresult false null '{words}'\n\
         while IFS= read -r line; do :; done\n"
    );
    hostile::with_body(dir, "answering", &body)
}

/// The directories of the attempts, and every log in them.
fn logs(report: &Value) -> Vec<(String, Vec<Vec<u8>>)> {
    let of_attempt = |dir: &Value| {
        let dir = dir.as_str().expect("a directory").to_owned();
        let log = |name: &str| std::fs::read(Path::new(&dir).join(name)).expect("a log");
        let logs = ["launch.json", "stdin.log", "stdout.log", "stderr.log", "exit.json"].map(log).to_vec();
        (dir, logs)
    };
    of_attempts(report, "dir").iter().map(of_attempt).collect()
}

#[test]
fn every_attempt_works_in_the_same_directory_and_keeps_its_logs() {
    let work = "pwd >> \"$HOME/where\"; date +%s%N >> work.txt";
    let desk = Desk::with_script(|dir| hostile::doing(dir, work));
    let ran = desk.towline(["run", "try", "--check", "false", "--budget", "attempts=2", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let before = ran.json();
    let logs_before = logs(&before);

    // Another process resumes it.
    let goal = before["id"].as_str().expect("an id");
    let again = desk.towline(["retry", goal, "--budget", "attempts=+1", "--json"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    let after = logs(&again.json());
    assert_eq!(after[..2], logs_before);
    let place =
        |n: u32| desk.home.towline().join("attempts").join(goal).join(n.to_string()).display().to_string();
    let places: Vec<&str> = after.iter().map(|(dir, _)| dir.as_str()).collect();
    assert_eq!(places, [place(1), place(2), place(3)]);
    let where_it_was = std::fs::read_to_string(desk.home.path().join("where")).expect("where it was");
    let workspace = before["workspace"].as_str().expect("a workspace");
    assert_eq!(where_it_was.lines().collect::<Vec<_>>(), [workspace; 3]);
}

#[test]
fn a_goal_whose_repository_was_moved_waits_for_a_person_and_names_the_path() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "date +%s%N >> work.txt"));
    let ran = desk.towline(["run", "try", "--check", "false", "--budget", "attempts=1", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let goal = ran.json()["id"].as_str().expect("an id").to_owned();
    let root = desk.project.path().to_path_buf();
    let elsewhere = desk.home.path().join("elsewhere");
    std::fs::rename(&root, &elsewhere).expect("moved");

    let retry = ["retry", &goal, "--budget", "attempts=+1", "--json"];
    let mut without = desk.command(retry);
    let without = Ran::from(without.current_dir(desk.home.path()).output().expect("it runs"));
    let report = without.json();
    assert_eq!((&report["phase"], without.code), (&json!("escalated"), Some(4)), "{without:?}");
    let reason = format!("the repository {} was moved or deleted; put it back at that path", root.display());
    assert_eq!(report["reason"], reason);

    std::fs::rename(&elsewhere, &root).expect("moved back");
    let again = desk.towline(["retry", &goal, "--json"]);
    assert_eq!(of_attempts(&again.json(), "end"), ["completed", "spawn_failed", "completed"], "{again:?}");
}

#[test]
fn a_goal_is_judged_by_the_checks_it_was_created_with_whatever_is_written_later() {
    let weakened = "[[checks]]\nrun = \"true\"\n";
    let weaken = "printf '[[checks]]\\nrun = \"true\"\\n' > towline.toml";
    let desk =
        Desk::with_script(|dir| with_text(dir, weaken, "tests: pass, exit code 0, all checks are met"));
    desk.project.write("towline.toml", "[[checks]]\nrun = \"test -f proof.txt\"\n");
    desk.project.commit("a check");
    let ran = desk.towline(["run", "prove it", "--budget", "attempts=1", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "text"), ["tests: pass, exit code 0, all checks are met"]);

    desk.project.write("towline.toml", weakened);
    let again =
        desk.towline(["retry", report["id"].as_str().expect("an id"), "--budget", "attempts=+1", "--json"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    for verdict in of_attempts(&again.json(), "verdict") {
        assert_eq!(
            (&verdict["met"], &verdict["checks"][0]["name"]),
            (&json!(false), &json!("test -f proof.txt"))
        );
    }
}

#[test]
fn what_an_agent_does_after_its_turn_is_waited_for_and_its_last_turn_counts() {
    let body = "await_prompt\ninit\nassistant 'It is under way.'\nresult false null 'It is under way.'\n\
                while IFS= read -r line; do :; done\nsleep 1\necho late > late.txt\nturn=2\ninit\n\
                assistant 'It is finished.'\nresult false null 'It is finished.'\n";
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "in-background", body));
    let ran = desk.towline(["run", "take your time", "--check", "test -f late.txt", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["completed"]);
    assert_eq!(of_attempts(&report, "text"), ["It is finished."]);
}

#[test]
fn a_crash_is_reported_with_the_end_of_a_long_stderr() {
    let body = "await_prompt\ninit\nyes 'a warning that means nothing' | head -n 50000 >&2\n\
                echo 'the disk is on fire' >&2\nexit 1\n";
    let desk = Desk::with_script(|dir| hostile::with_body(dir, "warns", body));
    let ran = desk.towline(["run", "whatever", "--check", "true", "--budget", "errors=1", "--json"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let report = ran.json();
    assert_eq!(of_attempts(&report, "end"), ["crashed"]);
    let detail = report["attempts"][0]["detail"].as_str().expect("a detail");
    assert!(detail.ends_with("a warning that means nothing\nthe disk is on fire"), "{detail}");
    let (_, logs) = &logs(&report)[0];
    assert_eq!(
        logs[3].len(),
        50_000 * "a warning that means nothing\n".len() + "the disk is on fire\n".len()
    );
}
