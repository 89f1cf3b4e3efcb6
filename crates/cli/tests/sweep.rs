//! What towline finds in its state directory when it starts: agents that no goal needs are ended, leftover checkouts are
//! removed, and whatever may be adopted is left alone.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use support::{Desk, LIMIT};
use towline_testkit::hostile;
use towline_testkit::scratch::{processes_with, wait_for, wait_until_process_tree_gone};

/// The first of these agents works until it is ended, every other one is done at once.
const FIRST_LINGERS: &str = r#"
await_prompt
init
test -e "$HOME/working" || { : > "$HOME/working"; linger; }
assistant 'Done.'
result false null 'Done.'
"#;

/// A goal that no store has heard of.
const UNKNOWN: &str = "01932f6e-7c00-7abc-8def-0123456789ab";

fn desk() -> Desk {
    Desk::with_script(|dir| hostile::with_body(dir, "first-lingers", FIRST_LINGERS))
}

/// A desk at which no agent lingers.
fn quiet_desk() -> Desk {
    let desk = desk();
    fs::write(desk.home.path().join("working"), "").expect("written");
    desk
}

/// Runs a goal to its end and gives its id. Its engine has swept by then.
fn run_a_goal(desk: &Desk) -> String {
    let ran = desk.towline(["run", "be done", "--check", "true", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()["id"].as_str().expect("an id").to_owned()
}

/// A goal whose agent works, and the towline that drives it.
fn working(desk: &Desk) -> (Child, String) {
    let towline = desk.start(["run", "never stop", "--check", "true", "--json"]);
    wait_for(LIMIT, "the agent to work", || desk.home.path().join("working").exists());
    (towline, desk.only_goal())
}

fn kill(mut towline: Child) {
    towline.kill().expect("killed");
    towline.wait().expect("reaped");
}

/// A supervisor with a tree below it, started by hand as an attempt of a goal.
struct Stray {
    supervisor: Child,
    dir: PathBuf,
    marker: String,
}

impl Stray {
    fn start(desk: &Desk, goal: &str, attempt: u32) -> Self {
        let dir = desk.home.towline().join(format!("attempts/{goal}/{attempt}"));
        fs::create_dir_all(&dir).expect("a directory");
        let launch = json!({
            "argv": ["sh", "-c", "trap '' INT TERM; setsid sleep 600 & sleep 600; sleep 600"],
            "cwd": desk.project.path(),
            "lifetime_ms": 3_600_000,
            "interrupt_grace_ms": 600_000,
            "term_grace_ms": 600_000,
            "drain_ms": 600_000,
        });
        fs::write(dir.join("launch.json"), launch.to_string()).expect("written");
        let marker = format!("STRAY={goal}/{attempt};");
        let mut command = desk.command(["shim".as_ref(), dir.as_os_str()]);
        command.env("STRAY", marker.trim_start_matches("STRAY="));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let supervisor = command.spawn().expect("a supervisor");
        let stray = Self { supervisor, dir, marker };
        wait_for(LIMIT, "the tree to be there", || stray.is_untouched());
        stray
    }

    fn is_untouched(&self) -> bool {
        // Whether the supervisor itself can be seen depends on who looks.
        processes_with(&self.marker).iter().filter(|found| !found.command.contains(" shim ")).count() == 3
    }

    /// It was ended by its supervisor, with everything below it.
    fn assert_ended(mut self) {
        wait_until_process_tree_gone(&self.marker, Duration::from_secs(1));
        self.supervisor.wait().expect("reaped");
        let record = fs::read(self.dir.join("exit.json")).expect("an exit record");
        let record: Value = serde_json::from_slice(&record).expect("an exit record");
        assert_eq!((&record["stopped"], &record["signal"]), (&json!("requested"), &json!(9)), "{record}");
    }
}

#[test]
fn an_agent_of_a_goal_that_nobody_knows_is_ended() {
    let desk = quiet_desk();
    let stray = Stray::start(&desk, UNKNOWN, 1);
    run_a_goal(&desk);
    stray.assert_ended();
}

#[test]
fn an_agent_of_a_goal_that_is_done_is_ended() {
    let desk = quiet_desk();
    let goal = run_a_goal(&desk);
    let stray = Stray::start(&desk, &goal, 2);
    run_a_goal(&desk);
    stray.assert_ended();
}

#[test]
fn an_agent_that_may_be_adopted_is_left_alone_and_other_ones_of_its_goal_are_not() {
    let desk = desk();
    let (towline, goal) = working(&desk);
    kill(towline);
    let stray = Stray::start(&desk, &goal, 9);
    let dir = desk.home.towline().join(format!("attempts/{goal}/1"));
    let supervisor = || towline_process::supervisor_process(&dir).expect("its identity");
    let before = supervisor();
    assert!(before.is_some(), "the agent went down with towline");
    run_a_goal(&desk);
    stray.assert_ended();
    assert_eq!(supervisor(), before);

    let cancelled = desk.towline(["cancel", &goal]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
}

#[test]
fn nothing_of_a_goal_is_touched_while_somebody_drives_it() {
    let desk = desk();
    let (towline, goal) = working(&desk);
    let stray = Stray::start(&desk, &goal, 9);
    run_a_goal(&desk);
    assert!(stray.is_untouched());
    kill(towline);
    run_a_goal(&desk);
    stray.assert_ended();
}

/// A checkout for the checks of a goal, as a crash long ago would have left it.
fn left_checkout(desk: &Desk, goal: &str) -> PathBuf {
    let path = desk.home.towline().join("verify").join(goal);
    desk.project.git(["clone", "--quiet", ".", path.to_str().expect("text")]);
    let directory = File::open(&path).expect("the checkout");
    directory.set_modified(SystemTime::UNIX_EPOCH).expect("a checkout of long ago");
    path
}

#[test]
fn a_checkout_of_a_goal_that_is_done_is_removed_and_one_of_a_goal_that_is_not_stays() {
    let desk = desk();
    let (towline, unfinished) = working(&desk);
    kill(towline);
    let done = run_a_goal(&desk);
    let [needless, needed] = [&done, &unfinished].map(|goal| left_checkout(&desk, goal));
    run_a_goal(&desk);
    assert!(!needless.exists());
    assert!(needed.join(".git").exists());
    assert!(desk.home.towline().join("workspaces").join(&done).is_dir());
}

#[test]
fn a_checkout_that_is_newer_than_the_end_of_its_goal_is_somebody_elses() {
    let desk = quiet_desk();
    let done = run_a_goal(&desk);
    let checkout = left_checkout(&desk, &done);
    fs::write(checkout.join("just made"), "").expect("written");
    run_a_goal(&desk);
    assert!(checkout.join("just made").exists());
}
