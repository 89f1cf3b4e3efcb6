//! The note on an agent without limits is shown once per project, and only for such agents.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::Path;

use support::{Desk, Ran};
use towline_testkit::hostile::exits_at_once;
use towline_testkit::scratch::Project;

const NOTE: &str = "note: `claude` runs with permission = \"bypass\"";

fn run_in(desk: &Desk, folder: &Path, args: &[&str]) -> Ran {
    let mut command = desk.command(["run", "greet", "--check", "true", "--budget", "errors=1"]);
    Ran::from(command.args(args).current_dir(folder).output().expect("towline runs"))
}

#[test]
fn only_the_first_run_of_a_project_explains_bypass() {
    // It ends without a word: whether a goal is reached does not matter here.
    let desk = Desk::with_script(exits_at_once);
    let project = desk.project.path();
    let before = desk.project.git(["status", "--porcelain", "--ignored"]);

    let first = run_in(&desk, project, &["--json"]);
    assert!(first.stderr.contains(NOTE), "{first:?}");
    assert!(!first.stdout.contains("no jail"), "{first:?}");
    first.json();
    for line in ["does not confine it", "[agents.claude]\n", "permission = \"ask\"", "allow = [", "deny = ["]
    {
        assert!(first.stderr.contains(line), "no {line} in {}", first.stderr);
    }
    let wide: Vec<&str> = first.stderr.lines().filter(|line| line.chars().count() > 120).collect();
    assert_eq!(wide, [""; 0]);
    // A symlink to the project is the same project.
    let alias = desk.home.path().join("alias");
    std::os::unix::fs::symlink(project, &alias).expect("a symlink");
    for (folder, args) in [(project, &["--events"][..]), (&alias, &[])] {
        let again = run_in(&desk, folder, args);
        assert!(!again.stderr.contains("bypass"), "{again:?}");
    }
    let other = Project::new();
    assert!(run_in(&desk, other.path(), &[]).stderr.contains(NOTE));
    assert_eq!(
        desk.project.git(["status", "--porcelain", "--ignored"]),
        before,
        "nothing is left in the project"
    );
}

#[test]
fn an_agent_that_has_to_ask_is_not_spoken_of() {
    for permission in ["ask", "deny"] {
        let desk = Desk::with_script(exits_at_once);
        desk.agent_settings(&format!("permission = \"{permission}\""));
        let ran = run_in(&desk, desk.project.path(), &[]);
        assert!(!ran.stderr.contains("jail"), "{ran:?}");
    }
}

#[test]
fn a_program_that_cannot_be_restricted_gets_no_hint_how_to() {
    let desk = Desk::new();
    desk.configure("defaults.agents = [\"mine\"]\n[agents.mine]\nkind = \"command\"\ncommand = [\"true\"]\n");
    let ran = run_in(&desk, desk.project.path(), &[]);
    assert!(ran.stderr.contains("Towline cannot restrict"), "{ran:?}");
    assert!(!ran.stderr.contains("allow = "), "{ran:?}");
}

#[test]
fn the_demo_does_not_speak_of_it() {
    let ran = Desk::new().towline(["demo"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
}
