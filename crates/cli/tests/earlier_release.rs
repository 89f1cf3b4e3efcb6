//! The state directory of an earlier release: every command works on its goals, and it is upgraded by nobody while an engine
//! of that release runs.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use support::earlier::{desk_of_release, goal, project};
use support::terminal::Terminal;
use support::{Desk, Ran, finish, of_attempts};

/// Titles and phases, the newest first.
const GOALS: [(&str, &str); 8] = [
    ("paused", "paused"),
    ("limited", "limited"),
    ("blocked", "blocked"),
    ("worktree", "failed"),
    ("failed", "failed"),
    ("in place", "done"),
    ("merged", "done"),
    ("done", "done"),
];

/// Runs `towline` in the project of the release.
fn towline(desk: &Desk, args: &[&str]) -> Ran {
    finish(command(desk, args).spawn().expect("towline starts"))
}

fn command(desk: &Desk, args: &[&str]) -> Command {
    let mut command = desk.command(args);
    command.current_dir(project(desk));
    command
}

fn succeeds(desk: &Desk, args: &[&str]) -> Ran {
    let ran = towline(desk, args);
    assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
    ran
}

fn copy(desk: &Desk) -> PathBuf {
    desk.home.towline().join("towline.db.v2")
}

#[test]
fn goals_of_the_release_are_listed_and_shown() {
    let desk = desk_of_release();
    let listed = succeeds(&desk, &["ls", "--all", "--json"]).json();
    let field = |row: &Value, name: &str| row[name].as_str().expect("a text").to_owned();
    let rows: Vec<_> = listed
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (field(row, "title"), field(row, "phase")))
        .collect();
    assert_eq!(rows, GOALS.map(|(title, phase)| (title.to_owned(), phase.to_owned())));
    assert!(copy(&desk).exists());
    succeeds(&desk, &["ls"]);
    for (title, phase) in GOALS {
        let id = goal(&desk, title);
        assert_eq!(succeeds(&desk, &["show", &id, "--json"]).json()["phase"], phase, "{title}");
        for args in [vec!["show", &id], vec!["logs", &id], vec!["logs", &id, "--json"], vec!["diff", &id]] {
            succeeds(&desk, &args);
        }
        for attempt in 1..=desk.show(&id)["attempts"].as_array().expect("attempts").len() {
            succeeds(&desk, &["replay", &id, "--attempt", &attempt.to_string(), "--check"]);
        }
    }
    let questions = succeeds(&desk, &["questions"]);
    assert!(questions.stdout.contains("Which colour?"), "{questions:?}");
    let doctor = towline(&desk, &["doctor", "--json"]).json();
    let problems = doctor["findings"].as_array().expect("findings").iter();
    assert_eq!(
        problems.filter(|it| it["section"] == "store" && it["level"] == "problem").collect::<Vec<_>>(),
        Vec::<&Value>::new()
    );
    succeeds(&desk, &["gc", "--dry-run"]);
}

#[test]
fn ended_goals_of_the_release_can_be_used_and_removed() {
    let desk = desk_of_release();
    let [done, merged, in_place] = ["done", "merged", "in place"].map(|title| goal(&desk, title));
    let remote = desk.home.path().join("remote.git");
    let git = |args: &[&str]| {
        let mut git = towline_testkit::scratch::clean_command("git");
        assert!(
            git.args(args).current_dir(project(&desk)).status().expect("git starts").success(),
            "{args:?}"
        );
    };
    git(&["init", "-q", "--bare", &remote.display().to_string()]);
    git(&["remote", "add", "origin", &remote.display().to_string()]);
    succeeds(&desk, &["verify", &done]);
    succeeds(&desk, &["push", &done]);
    succeeds(&desk, &["merge", &done]);
    assert!(project(&desk).join("fix.txt").exists());
    succeeds(&desk, &["restore", &in_place]);
    succeeds(&desk, &["gc"]);
    succeeds(&desk, &["rm", &merged]);
    succeeds(&desk, &["rm", "--force", &done, &in_place]);
    let left = succeeds(&desk, &["ls", "--all", "--json"]).json();
    assert_eq!(left.as_array().map(Vec::len), Some(GOALS.len() - 3));
}

#[test]
fn failed_goals_of_the_release_are_retried_with_every_kind_of_its_workspaces() {
    let desk = desk_of_release();
    for title in ["failed", "worktree"] {
        let id = goal(&desk, title);
        let ran = succeeds(&desk, &["retry", &id, "--budget", "attempts=+1", "--json"]).json();
        assert_eq!(ran["phase"], "done", "{title}");
        let workspace = desk.home.towline().join("workspaces").join(&id);
        assert!(workspace.join(".git").is_dir() && workspace.join("half.txt").exists(), "{title}");
        succeeds(&desk, &["diff", &id]);
        succeeds(&desk, &["rm", "--force", &id]);
    }
}

#[test]
fn goals_of_the_release_that_had_not_ended_continue() {
    let desk = desk_of_release();
    let blocked = goal(&desk, "blocked");
    succeeds(&desk, &["answer", &blocked, "blue"]);
    assert_eq!(succeeds(&desk, &["run", "--goal", &blocked, "--json"]).json()["phase"], "done");
    let limited = goal(&desk, "limited");
    succeeds(&desk, &["tell", &limited, "hurry"]);
    succeeds(&desk, &["pause", &limited]);
    assert_eq!(succeeds(&desk, &["resume", &limited, "--json"]).json()["phase"], "done");
    let paused = succeeds(&desk, &["resume", &goal(&desk, "paused"), "--json"]).json();
    assert_eq!(
        (&paused["phase"], of_attempts(&paused, "resumed")),
        (&json!("done"), vec![json!(false), json!(true)])
    );
}

#[test]
fn goals_of_the_release_that_had_not_ended_can_be_cancelled_and_retried() {
    let desk = desk_of_release();
    for title in ["blocked", "limited", "paused"] {
        let id = goal(&desk, title);
        succeeds(&desk, &["cancel", &id]);
        assert_eq!(desk.show(&id)["phase"], "cancelled", "{title}");
        if title == "blocked" {
            succeeds(&desk, &["answer", &id, "blue"]);
        }
        assert_eq!(succeeds(&desk, &["retry", &id, "--json"]).json()["phase"], "done", "{title}");
    }
}

/// The lock of an engine that runs in the state directory: that of this test.
fn engine_of_this_process(desk: &Desk) -> File {
    let stat = fs::read_to_string("/proc/self/stat").expect("its process");
    let (_, after_name) = stat.rsplit_once(')').expect("a name");
    let start_time = after_name.split_whitespace().nth(19).expect("a start time");
    let namespace = fs::metadata("/proc/self/ns/pid").expect("its namespace").ino();
    let engines = desk.home.towline().join("engines");
    fs::create_dir_all(&engines).expect("made");
    let name = format!("{}-{start_time}-{namespace}-00000000.lock", std::process::id());
    let lock = File::create(engines.join(name)).expect("a file");
    lock.lock().expect("locked");
    lock
}

#[test]
fn no_command_upgrades_the_state_while_an_engine_of_the_release_runs() {
    let desk = desk_of_release();
    let engine = engine_of_this_process(&desk);
    let before = fs::read(desk.home.towline().join("towline.db")).expect("the database");
    let pid = std::process::id();
    for args in
        [vec!["ls"], vec!["show", "0"], vec!["run", "more", "--check", "true"], vec!["gc"], vec!["rm", "0"]]
    {
        let refused = towline(&desk, &args);
        assert_eq!((refused.code, &*refused.stdout), (Some(4), ""), "{args:?}: {refused:?}");
        for words in [format!("running (pid {pid})"), format!("kill {pid}"), "towline resume".to_owned()] {
            assert!(refused.stderr.contains(&words), "{args:?}: {}", refused.stderr);
        }
    }
    assert!(!copy(&desk).exists());
    assert!(fs::read(desk.home.towline().join("towline.db")).expect("the database").len() == before.len());
    drop(engine);
    succeeds(&desk, &["ls"]);
    assert!(copy(&desk).exists());
}

/// The test is in the place of another process that upgrades.
#[test]
fn an_upgrade_that_lasts_is_shown_on_a_terminal_and_nowhere_else() {
    let desk = desk_of_release();
    let lock = File::open(desk.home.towline()).expect("the state directory");
    lock.lock().expect("locked");
    let mut terminal = Terminal::new();
    let mut watched = terminal.start(&command(&desk, &["ls", "--all"]));
    let piped = command(&desk, &["ls", "--all", "--json"]).spawn().expect("towline starts");
    terminal.wait_to_see("Upgrading: waiting for another towline");
    drop(lock);
    assert!(watched.wait().expect("it ends").success());
    terminal.wait_for_the_end();
    let picture = terminal.picture().join("\n");
    assert!(picture.contains("worktree") && !picture.contains("Upgrading"), "{picture}");
    let piped = finish(piped);
    assert_eq!((piped.code, &*piped.stderr), (Some(0), ""), "{piped:?}");
    assert_eq!(piped.json().as_array().map(Vec::len), Some(GOALS.len()));
}
