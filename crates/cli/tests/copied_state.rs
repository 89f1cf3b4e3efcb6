//! A state directory that was copied or moved: each one has workspaces of its own.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::{Path, PathBuf};

use support::{Desk, Ran, finish};
use towline_testkit::hostile;
use towline_testkit::scratch::clean_command;

/// An agent that needs two attempts, and writes down where it works.
const AGENT: &str = "pwd >> $HOME/where; if [ -e first ]; then touch second; else touch first; fi";

/// A desk with a goal that has failed after its first attempt, and the goal's id.
fn desk() -> (Desk, String) {
    let desk = Desk::with_script(|dir| hostile::doing(dir, AGENT)).without_baseline();
    let args = ["run", "fix it", "--check", "test -e second", "--budget", "attempts=1", "--json"];
    let ran = desk.towline(args);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    (desk, ran.json()["id"].as_str().expect("an id").to_owned())
}

/// Runs towline with another state directory.
fn towline_in(desk: &Desk, state: &Path, args: &[&str]) -> Ran {
    finish(desk.command(args).env("TOWLINE_HOME", state).spawn().expect("towline starts"))
}

fn where_agents_worked(desk: &Desk) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(desk.home.path().join("where")).expect("agents have worked");
    text.lines().map(PathBuf::from).collect()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name != ".git");
    names.sort();
    names
}

#[test]
fn a_goal_of_a_copy_works_in_the_copy_and_leaves_the_original_alone() {
    let (desk, goal) = desk();
    let (original, copy) = (desk.home.towline(), desk.home.path().join("copy"));
    let copied = clean_command("cp").arg("-a").arg(&original).arg(&copy).status().expect("cp");
    assert!(copied.success());
    let workspace = |state: &Path| state.join("workspaces").join(&goal);
    let before = files(&workspace(&original));
    let retried = towline_in(&desk, &copy, &["retry", &goal, "--budget", "attempts=+1", "--json"]);
    assert_eq!(retried.code, Some(0), "{retried:?}");
    assert_eq!(where_agents_worked(&desk), [workspace(&original), workspace(&copy)]);
    assert_eq!(files(&workspace(&original)), before);
    let report = towline_in(&desk, &copy, &["show", &goal, "--json"]).json();
    assert_eq!(report["workspace"], workspace(&copy).display().to_string());
    assert_eq!(report["attempts"][1]["resumed"], false, "its conversation belongs to the original: {report}");
    // The original goes on where it was.
    let retried = desk.towline(["retry", &goal, "--budget", "attempts=+1", "--json"]);
    assert_eq!(retried.code, Some(0), "{retried:?}");
    assert_eq!(where_agents_worked(&desk).last(), Some(&workspace(&original)));
    assert_eq!(desk.show(&goal)["attempts"][1]["resumed"], true);
}

#[test]
fn a_goal_of_a_moved_state_directory_continues_there() {
    let (mut desk, goal) = desk();
    desk.leaves_nothing_to_replay("its state directory is at another place");
    let moved = desk.home.path().join("moved");
    std::fs::rename(desk.home.towline(), &moved).expect("moved");
    let diff = towline_in(&desk, &moved, &["diff", &goal]);
    assert!(diff.code == Some(0) && diff.stdout.contains("first"), "{diff:?}");
    let retried = towline_in(&desk, &moved, &["retry", &goal, "--budget", "attempts=+1", "--json"]);
    assert_eq!(retried.code, Some(0), "{retried:?}");
    assert_eq!(where_agents_worked(&desk)[1], moved.join("workspaces").join(&goal));
}
