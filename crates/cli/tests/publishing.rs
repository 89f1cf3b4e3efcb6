//! A goal that has ended gets a branch for its work, even if its engine is killed before it is published.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Child;

use support::{Desk, LIMIT, finish};
use towline_testkit::hostile;
use towline_testkit::scratch::{clean_command, wait_for};

/// A desk with work to do and a git that never gets to the end of a fetch, which is how work is published.
fn desk_with_slow_git() -> (Desk, PathBuf) {
    let mut desk = Desk::new();
    let script = hostile::doing(&desk.home.path(), "echo work > work");
    desk.configure(&format!("[agents.claude]\ncommand = [{:?}]\n", script.display().to_string()));
    let (folder, fetching) = (desk.home.path().join("slow"), desk.home.path().join("fetching"));
    let path = std::env::var("PATH").expect("a path");
    let body = format!(
        "#!/bin/sh\nfor word; do\n  if [ \"$word\" = fetch ]; then echo $$ > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 600; fi\ndone\n\
         PATH='{path}' exec git \"$@\"\n",
        fetching.display(),
    );
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("git"), body).expect("a program");
    std::fs::set_permissions(folder.join("git"), PermissionsExt::from_mode(0o755)).expect("executable");
    desk.set("PATH", &format!("{}:{path}", folder.display()));
    (desk, fetching)
}

fn signal(which: &str, pid: impl ToString) {
    let sent = clean_command("kill").args([which, &pid.to_string()]).status();
    assert!(sent.expect("kill").success(), "{which}");
}

/// A run that has come to its end and publishes its work.
fn start_publishing(desk: &Desk, fetching: &std::path::Path) -> (Child, String) {
    let run = desk.start(["run", "work", "--check", "test -e work", "--json"]);
    wait_for(LIMIT, "a fetch", || fetching.exists());
    let goal = desk.only_goal();
    let report = desk.show(&goal);
    assert_eq!((report["phase"].as_str(), report["branch"].as_str()), (Some("done"), None), "{report}");
    (run, goal)
}

#[test]
fn a_person_who_insists_ends_it() {
    let (desk, fetching) = desk_with_slow_git();
    let (run, goal) = start_publishing(&desk, &fetching);
    let asked = |desk: &Desk| desk.events(&goal).len();
    let before = asked(&desk);
    signal("-INT", run.id());
    signal("-TERM", run.id());
    let ran = finish(run);
    assert_eq!((ran.code, ran.json()["phase"].as_str()), (Some(0), Some("done")), "{ran:?}");
    let events = desk.events(&goal);
    let last = events.last().expect("an event").to_string();
    assert!(
        events.len() == before + 1 && last.contains("the work has no branch in your repository"),
        "{last}"
    );
}

#[test]
fn the_next_command_does_it_after_a_crash() {
    let (mut desk, fetching) = desk_with_slow_git();
    let (run, goal) = start_publishing(&desk, &fetching);
    signal("-KILL", run.id());
    finish(run);
    signal("-KILL", std::fs::read_to_string(&fetching).expect("the process that fetches").trim());
    desk.unset("PATH");
    desk.set("PATH", &std::env::var("PATH").expect("a path"));
    let verified = desk.towline(["verify", &goal]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let report = desk.show(&goal);
    let branch = report["branch"].as_str().expect("a branch");
    assert_eq!(Some(desk.project.git(["rev-parse", branch]).as_str()), report["candidate"].as_str());
}
