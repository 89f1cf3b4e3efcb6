//! Scratch projects and homes, and the search for processes that are left.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use towline_testkit::scratch::{
    Home, Project, clean_command, processes_with, wait_for, wait_for_some, wait_until_process_tree_gone,
};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_project_is_a_repository_of_its_own_with_one_commit() {
    let project = Project::new();
    assert_eq!(project.git(["rev-list", "--count", "HEAD"]), "1");
    assert_eq!(project.git(["status", "--porcelain"]), "");
    assert_eq!(project.git(["branch", "--show-current"]), "main");
    assert_eq!(project.git(["rev-parse", "--show-toplevel"]), project.path().to_string_lossy());

    project.write("src/deep/file.txt", "one\n");
    let commit = project.commit("second");
    assert_eq!(project.git(["log", "-1", "--format=%H %an %s"]), format!("{commit} Test second"));
    assert_eq!(project.read("src/deep/file.txt"), "one\n");
}

#[test]
#[should_panic(expected = "\"git\" \"rev-parse\" \"--verify\" \"nowhere\" failed")]
fn a_git_command_that_fails_is_reported() {
    Project::new().git(["rev-parse", "--verify", "nowhere"]);
}

#[test]
fn a_home_is_all_that_a_program_sees() {
    let home = Home::new();
    let output = clean_command("env").env_clear().envs(home.env()).output().expect("env runs");
    let mut seen: Vec<String> = String::from_utf8(output.stdout)
        .expect("UTF-8")
        .lines()
        .filter(|line| !line.starts_with("PATH="))
        .map(|line| line.replace(&home.marker(), "*/"))
        .collect();
    seen.sort();
    assert_eq!(
        seen,
        [
            "GIT_CONFIG_GLOBAL=/dev/null",
            "GIT_CONFIG_NOSYSTEM=1",
            "HOME=*/home",
            "TOWLINE_HOME=*/towline",
            "XDG_CACHE_HOME=*/cache",
            "XDG_CONFIG_HOME=*/config",
            "XDG_DATA_HOME=*/data",
            "XDG_RUNTIME_DIR=*/run",
            "XDG_STATE_HOME=*/state",
        ]
    );
    assert!(home.path().is_dir() && home.towline().is_dir() && home.config().is_dir());
}

#[test]
fn a_process_is_found_by_its_home_even_in_another_session_and_ends_with_the_home() {
    let home = Home::new();
    let marker = home.marker();
    assert!(processes_with(&marker).is_empty());
    let mut parent = clean_command("sh")
        .args(["-c", "setsid sh -c 'trap \"\" TERM; sleep 300' & exit 0"])
        .envs(home.env())
        .stdin(Stdio::null())
        .spawn()
        .expect("sh runs");
    parent.wait().expect("it ends");

    wait_for(SOON, "the orphan to sleep", || {
        processes_with(&marker).iter().any(|found| found.command == "sleep 300")
    });
    assert!(!processes_with(&marker).is_empty());
    drop(home);
    wait_until_process_tree_gone(&marker, SOON);
}

#[test]
#[should_panic(expected = "these are left of the process tree: [\n    Found {")]
fn a_tree_that_is_left_is_named() {
    let home = Home::new();
    let mut child =
        clean_command("sleep").arg("300").envs(home.env()).stdin(Stdio::null()).spawn().expect("sleep runs");
    wait_for(SOON, "sleep to be seen", || !processes_with(&home.marker()).is_empty());
    let waited = std::panic::catch_unwind(|| {
        wait_until_process_tree_gone(&home.marker(), Duration::from_millis(30));
    });
    child.kill().expect("killed");
    child.wait().expect("reaped");
    std::panic::resume_unwind(waited.expect_err("sleep is still there"));
}

#[test]
fn waiting_returns_what_was_found_as_soon_as_it_is_there() {
    let mut looks = 0;
    let found = wait_for_some(SOON, "the third look", || {
        looks += 1;
        (looks == 3).then_some("found")
    });
    assert_eq!((found, looks), ("found", 3));
}

#[test]
#[should_panic(expected = "for pigs to fly, in vain")]
fn waiting_in_vain_shows_what_for() {
    wait_for(Duration::from_millis(5), "pigs to fly", || false);
}

#[test]
fn scratch_folders_are_deleted() {
    let (home, project) = (Home::new(), Project::new());
    let paths = [home.path(), project.path().to_path_buf()];
    assert!(paths.iter().all(|path| fs::metadata(path).is_ok()));
    drop((home, project));
    assert!(paths.iter().all(|path| fs::metadata(path).is_err()), "{paths:?}");
}
