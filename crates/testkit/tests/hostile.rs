//! The misbehaving agents misbehave as described.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use towline_testkit::hostile;
use towline_testkit::scratch::{
    Home, clean_command, processes_with, wait_for, wait_for_some, wait_until_process_tree_gone,
};

const SOON: Duration = Duration::from_secs(30);

const INITIALIZE: &str = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"initialize"}}"#;
const PROMPT: &str = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"go"}]}}"#;

fn start(home: &Home, script: &Path, arguments: &[&str]) -> Child {
    clean_command(script)
        .args(arguments)
        .envs(home.env())
        .current_dir(home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the script starts")
}

/// Sends the lines, closes stdin and takes the output until stdout closes.
fn run(home: &Home, script: &Path, lines: &[&str]) -> Output {
    let mut child = start(home, script, &["-p", "--session-id", "s-1"]);
    let mut stdin = child.stdin.take().expect("stdin");
    // A script that is gone already does not read, and that is its right.
    let _ = stdin.write_all(format!("{}\n", lines.join("\n")).as_bytes());
    drop(stdin);
    child.wait_with_output().expect("the script ends")
}

fn frames(stdout: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Type and subtype of each frame.
fn kinds(frames: &[Value]) -> Vec<(&str, &str)> {
    frames
        .iter()
        .map(|frame| (frame["type"].as_str().unwrap_or(""), frame["subtype"].as_str().unwrap_or("")))
        .collect()
}

#[test]
fn the_well_behaved_one_works_answers_and_ends_with_stdin() {
    let home = Home::new();
    let script = hostile::well_behaved(&home.config());

    let output = run(&home, &script, &[INITIALIZE, PROMPT]);

    let frames = frames(&output.stdout);
    let expected = [("control_response", ""), ("system", "init"), ("assistant", ""), ("result", "success")];
    assert_eq!(kinds(&frames), expected);
    assert_eq!(frames[0]["response"], json!({"subtype": "success", "request_id": "r1", "response": {}}));
    assert!(frames[1..].iter().all(|frame| frame["session_id"] == "s-1"), "{frames:?}");
    assert_eq!((&frames[1]["cwd"], &frames[3]["is_error"]), (&json!(home.path()), &json!(false)));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(home.path().join("done.txt")).expect("written"), "done\n");
    assert_eq!(hostile::received(&script), [PROMPT]);
}

#[test]
fn the_doing_one_runs_its_commands_in_every_turn() {
    let home = Home::new();
    let script = hostile::doing(&home.config(), "echo turn $turn >> log; echo noise");

    let output = run(&home, &script, &[PROMPT, PROMPT]);

    let results: Vec<Value> =
        frames(&output.stdout).into_iter().filter(|frame| frame["type"] == "result").collect();
    assert_eq!(
        results.iter().map(|frame| &frame["result"]).collect::<Vec<_>>(),
        ["Turn 1 is done.", "Turn 2 is done."]
    );
    assert_eq!(std::fs::read_to_string(home.path().join("log")).expect("written"), "turn 1\nturn 2\n");
    assert_eq!(hostile::received(&script), [PROMPT, PROMPT]);
}

#[test]
fn every_script_reports_the_version_of_the_pinned_cli() {
    let home = Home::new();
    let script = hostile::exits_at_once(&home.config());
    let output = clean_command(script).arg("--version").output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2.1.197 (Claude Code)\n");
}

#[test]
fn garbage_is_not_utf8_and_ends_well_without_a_result() {
    let home = Home::new();
    let output = run(&home, &hostile::prints_garbage(&home.config()), &[PROMPT]);
    assert_eq!(output.status.code(), Some(0));
    assert!(std::str::from_utf8(&output.stdout).is_err());
    assert!(!String::from_utf8_lossy(&output.stdout).contains("result"));
}

#[test]
fn exiting_at_once_prints_nothing_but_an_error() {
    let home = Home::new();
    let output = run(&home, &hostile::exits_at_once(&home.config()), &[]);
    assert_eq!((output.status.code(), output.stdout), (Some(1), Vec::new()));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "cannot start: no such thing\n");
}

#[test]
fn the_stubborn_one_and_its_grandchildren_survive_int_and_term() {
    let home = Home::new();
    let script = hostile::ignores_signals(&home.config());
    let mut child = start(&home, &script, &[]);
    writeln!(child.stdin.as_ref().expect("stdin"), "{PROMPT}").expect("sent");
    let sleepers =
        || processes_with(&home.marker()).iter().filter(|found| found.command == "sleep 600").count();
    wait_for(SOON, "the innermost grandchild", || sleepers() == 1);
    // The script, its two loops, the innermost one, and the loops' sleeps, which come and go.
    let loops = || {
        let found = processes_with(&home.marker());
        found.into_iter().filter(|found| !found.command.starts_with("sleep 1")).collect::<Vec<_>>()
    };
    // A loop that has forked and not yet become its sleep looks like a loop, but not twice in a row.
    let before = wait_for_some(SOON, "the whole tree", || {
        let found = loops();
        (found.len() == 4 && loops() == found).then_some(found)
    });

    for found in &before {
        for signal in ["-INT", "-TERM", "-HUP"] {
            let status = clean_command("kill").args([signal, &found.pid.to_string()]).status();
            assert!(status.expect("kill runs").success(), "{found:?}");
        }
    }
    // The last signal was delivered before `kill` returned; what it ended would be a zombie or gone by now, and stay so.
    wait_for(SOON, "the same tree", || loops() == before);

    let marker = home.marker();
    child.kill().expect("killed");
    child.wait().expect("reaped");
    drop(home);
    wait_until_process_tree_gone(&marker, SOON);
}

#[test]
fn the_flood_ends_in_a_result() {
    let home = Home::new();
    let output = run(&home, &hostile::floods(&home.config()), &[PROMPT]);
    let frames = frames(&output.stdout);
    assert_eq!(frames.len(), 1 + 100_000 + 1 + 2);
    assert_eq!(frames[100_001]["text"].as_str().map(str::len), Some(8_000_000));
    assert_eq!(kinds(&frames[100_002..]), [("assistant", ""), ("result", "success")]);
    assert_eq!(output.stderr.len(), 4_000_000);
}

#[test]
fn stdout_stays_open_after_the_exit() {
    let home = Home::new();
    let mut child = start(&home, &hostile::keeps_stdout_open(&home.config()), &[]);
    writeln!(child.stdin.take().expect("stdin"), "{PROMPT}").expect("sent");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));

    let mut stdout = child.stdout.take().expect("stdout");
    let marker = home.marker();
    let left = wait_for_some(SOON, "the grandchild", || {
        let left = processes_with(&marker);
        left.iter().any(|found| found.command == "sleep 600").then_some(left)
    });
    assert_eq!(left.len(), 1);
    drop(home);
    // The end of file comes only now, with the end of the grandchild.
    let mut text = Vec::new();
    stdout.read_to_end(&mut text).expect("read");
    assert_eq!(kinds(&frames(&text)), [("system", "init"), ("assistant", ""), ("result", "success")]);
    wait_until_process_tree_gone(&marker, SOON);
}

#[test]
fn half_a_line_is_all_that_a_killed_one_leaves() {
    let home = Home::new();
    let output = run(&home, &hostile::dies_in_half_a_line(&home.config()), &[PROMPT]);
    assert_eq!(output.status.signal(), Some(9));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let (init, half) = text.split_once('\n').expect("a whole line");
    assert_eq!(kinds(&frames(init.as_bytes())), [("system", "init")]);
    assert_eq!(half, r#"{"type":"assistant","message":{"id":"msg_1","type":"mess"#);
}

#[test]
fn a_success_that_is_an_error_reports_both() {
    let home = Home::new();
    let output = run(&home, &hostile::claims_success_with_error(&home.config()), &[PROMPT]);
    let frames = frames(&output.stdout);
    let result = frames.last().expect("a result");
    assert_eq!(
        (&result["subtype"], &result["is_error"], &result["api_error_status"], output.status.code()),
        (&json!("success"), &json!(true), &json!(500), Some(1))
    );
}
