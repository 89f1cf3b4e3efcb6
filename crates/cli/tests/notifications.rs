//! The user's own command runs when a goal needs them or has ended, and a repository cannot set it.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::server::{add, up};
use support::{Desk, LIMIT, finish};
use towline_testkit::hostile;
use towline_testkit::scratch::{processes_with, wait_for};

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
fn the_end_of_a_goal_is_passed_to_the_users_command() {
    let (desk, file) = desk("echo fixed > fix.txt");
    for (check, kind, text) in
        [("test -e fix.txt", "done", "is done"), ("false", "failed", "failed: budget of 1 attempt spent")]
    {
        let _ = std::fs::remove_file(&file);
        let ran = desk.towline(["run", "fix it", "--check", check, "--budget", "attempts=1", "--json"]);
        let goal = ran.json();
        let id = goal["id"].as_str().expect("an id");
        let text = format!("fix it ({}) {text}", &id[id.len() - 8..]);
        let all = notified(&file);
        let [(line, json)] = &all[..] else { panic!("{all:?} {ran:?}") };
        assert_eq!(
            (line.as_str(), &json["kind"], &json["text"]),
            (text.as_str(), &json!(kind), &json!(text))
        );
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
fn a_signal_ends_a_command_that_hangs_and_the_goal_keeps_its_exit_code() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    let folder = desk.home.config().join("towline/config.toml");
    let before = std::fs::read_to_string(&folder).unwrap_or_default();
    let command = "trap '' TERM INT; sleep 501";
    desk.configure(&format!("{before}\n[notify]\ncommand = {command:?}\n"));
    let hangs =
        || processes_with(&desk.home.marker()).iter().any(|process| process.command.starts_with("sleep 501"));
    for (signal, check, code, phase) in
        [(Signal::INT, "true", 0, "done"), (Signal::TERM, "false", 3, "failed")]
    {
        let args = ["run", "fix it", "--check", check, "--budget", "attempts=1", "--json"];
        let towline = desk.start(args);
        wait_for(LIMIT, "the command", hangs);
        // The engine closes right after the end of the goal; only the command is waited for then.
        std::thread::sleep(Duration::from_secs(1));
        let asked = Instant::now();
        kill_process(Pid::from_child(&towline), signal).expect("a signal");
        let ran = finish(towline);
        assert!(asked.elapsed() < Duration::from_secs(2), "{:?} {ran:?}", asked.elapsed());
        assert_eq!((ran.code, &ran.json()["phase"]), (Some(code), &json!(phase)), "{ran:?}");
        assert!(ran.stderr.contains("it was still running and was ended"), "{}", ran.stderr);
        assert!(!hangs(), "{:?}", processes_with(&desk.home.marker()));
    }
}

#[test]
fn a_repository_cannot_have_a_command_run() {
    let (desk, file) = desk("echo fixed > fix.txt");
    let other = desk.home.path().join("repository");
    let command = format!("touch '{}'", other.display());
    desk.project.write("towline.toml", format!("[notify]\ncommand = {}\n", Value::from(command)));
    desk.project.commit("a command of the repository's");
    let ran = desk.towline(["run", "fix it", "--check", "true"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("`notify.command` cannot be set"), "{}", ran.stderr);
    assert!(!file.exists() && !other.exists());
}

#[test]
fn a_command_that_runs_while_the_server_is_stopped_does_not_run_again() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    let folder = desk.home.config().join("towline/config.toml");
    let before = std::fs::read_to_string(&folder).unwrap_or_default();
    let path = |name: &str| desk.home.path().join(name).display().to_string();
    let command =
        format!("echo run >> '{}'; until [ -e '{}' ]; do sleep 0.02; done", path("runs"), path("go"));
    desk.configure(&format!("{before}\n[notify]\ncommand = {command:?}\n"));
    let runs = || std::fs::read_to_string(path("runs")).unwrap_or_default();
    let server = up(&desk);
    add(&desk, "fix it", &["--check", "true"]);
    wait_for(LIMIT, "the command", || runs() == "run\n");
    let down = desk.start(["down"]);
    // Longer than the server would take to end if it did not wait.
    std::thread::sleep(Duration::from_secs(3));
    std::fs::write(path("go"), "").expect("written");
    assert_eq!((finish(down).code, finish(server).code), (Some(0), Some(0)));
    let server = up(&desk);
    let second = add(&desk, "fix another", &["--check", "true"]);
    desk.wait_for_phase(&second, "done");
    wait_for(LIMIT, "the notification of the second goal", || runs() == "run\nrun\n");
    support::server::down(&desk, server);
    assert_eq!(runs(), "run\nrun\n");
}
