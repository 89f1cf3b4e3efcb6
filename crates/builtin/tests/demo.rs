//! The demo's tests fail before the first attempt, half of them fail after it, and all pass after the second.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use towline_builtin::demo;
use towline_builtin::script::{Played, ScriptArgs, main};
use towline_core::{SessionId, SessionPlan};

#[expect(clippy::disallowed_methods, reason = "the test runs the demo's check as a person would")]
fn check(project: &Path) -> (Option<i32>, String) {
    let output = Command::new("sh").args(["-c", demo::CHECK]).current_dir(project).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_sample_project_needs_both_attempts() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    demo::write_project(&project).unwrap();
    let script = folder.path().join("script.toml");
    std::fs::write(&script, demo::SCRIPT).unwrap();
    let tests = std::fs::read_to_string(project.join("tests/run.sh")).unwrap();
    let attempt = |session| {
        let args = ScriptArgs { script: script.clone(), session, state: folder.path().join("state") };
        let stdin = format!("{{\"prompt\": \"{}\"}}\n", demo::PROMPT);
        let mut stdout = Vec::new();
        assert_eq!(main(&args, stdin.as_bytes(), &mut stdout, &project).unwrap(), Played::Done);
        let events = String::from_utf8(stdout).unwrap();
        assert!(!events.contains("\"failed\""), "no step of the demo fails:\n{events}");
    };

    let named = "greets a person by name";
    let unnamed = "greets the world when nobody is named";
    let red = format!(
        "FAILED  {named}: expected 'Hello, Ada!', got 'Hello Ada'\n\
         FAILED  {unnamed}: expected 'Hello, world!', got 'Hello '\n"
    );
    assert_eq!(check(&project), (Some(1), red));

    let started = Instant::now();
    attempt(SessionPlan::Fresh(SessionId::new("demo")));
    let half = format!("ok      {named}\nFAILED  {unnamed}: expected 'Hello, world!', got 'Hello, !'\n");
    assert_eq!(check(&project), (Some(1), half));

    attempt(SessionPlan::Resume(SessionId::new("demo")));
    assert_eq!(check(&project), (Some(0), format!("ok      {named}\nok      {unnamed}\n")));

    assert!(started.elapsed() < Duration::from_secs(5), "a person waits for it: {:?}", started.elapsed());
    assert_eq!(
        std::fs::read_to_string(project.join("tests/run.sh")).unwrap(),
        tests,
        "the tests are left alone"
    );
}
