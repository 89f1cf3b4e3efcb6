//! What engines and supervisors leave that were killed is removed: their sockets and locks, and the checkouts of their checks.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use support::{Desk, LIMIT};
use towline_testkit::hostile;
use towline_testkit::scratch::{wait_for, wait_until_process_tree_gone};

/// Everything below a folder that is a socket, a lock of an engine or a clean checkout.
fn leavings(state: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![state.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
            let is_checkout = path.parent().is_some_and(|above| above.ends_with("verify"));
            if path.extension().is_some_and(|end| end == "sock" || end == "lock") || is_checkout {
                found.push(path);
            } else if kind.is_dir() && path.extension().is_none() && !path.ends_with("workspaces") {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

fn kill_with_supervisor(mut towline: Child) {
    let below = towline_process::descendants(towline.id()).expect("a list of processes");
    towline.kill().expect("killed");
    towline.wait().expect("reaped");
    for process in below {
        let is_supervisor = std::fs::read_to_string(format!("/proc/{}/comm", process.pid))
            .is_ok_and(|name| name == "towline-shim\n");
        if is_supervisor {
            let pid = Pid::from_raw(i32::try_from(process.pid).expect("a number")).expect("a process");
            kill_process(pid, Signal::KILL).expect("killed");
        }
    }
}

#[test]
fn what_a_killed_engine_and_its_killed_supervisors_left_is_removed() {
    for doing in ["attempt", "check"] {
        let body = r#"
await_prompt
init
assistant Working.
test $DOING = check || test -e "$HOME/again" || { : > "$HOME/up"; linger; }
result false null Done.
"#;
        let mut desk = Desk::with_script(|dir| hostile::with_body(dir, "agent", body));
        desk.set("DOING", doing);
        let check = match doing {
            "check" => "test -e $HOME/again || { touch $HOME/up; sleep 600; }",
            _ => "true",
        };
        let towline = desk.start(["run", "do it", "--check", check, "--json"]);
        wait_for(LIMIT, doing, || desk.home.path().join("up").exists());
        let goal = desk.only_goal();
        let state = desk.home.towline();
        kill_with_supervisor(towline);
        let left = leavings(&state);
        let kinds =
            ["shim.sock", ".lock"].map(|kind| left.iter().any(|path| path.to_string_lossy().ends_with(kind)));
        assert_eq!(kinds, [true, true], "{doing}: the test shows nothing: {left:?}");

        std::fs::write(desk.home.path().join("again"), "").expect("written");
        let ran = desk.towline(["run", "--goal", &goal, "--json"]);
        assert_eq!(ran.code, Some(0), "{doing}: {ran:?}");
        assert_eq!(leavings(&state), Vec::<PathBuf>::new(), "{doing}");
        wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
    }
}

#[test]
fn cancelling_a_goal_whose_engine_was_killed_removes_the_socket_of_its_check() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt"));
    let check = "test -e fix.txt && touch $HOME/up && sleep 600";
    let mut towline = desk.start(["run", "do it", "--check", check, "--json"]);
    wait_for(LIMIT, "the check", || desk.home.path().join("up").exists());
    let goal = desk.only_goal();
    towline.kill().expect("killed");
    towline.wait().expect("reaped");
    let sockets = || -> Vec<PathBuf> {
        let left = leavings(&desk.home.towline());
        left.into_iter().filter(|path| path.ends_with("shim.sock")).collect()
    };
    assert_ne!(sockets(), Vec::<PathBuf>::new(), "the test shows nothing");
    let cancelled = desk.towline(["cancel", &goal]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    assert_eq!(sockets(), Vec::<PathBuf>::new());
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
}

#[test]
fn what_killed_supervisors_left_before_the_first_attempt_ends_with_the_goal() {
    let lasting = "touch $HOME/up; sleep 600";
    for (place, setup, check) in [("setup", lasting, "true"), ("base", "true", lasting)] {
        for stop in ["cancel", "pause", "rm"] {
            let desk = Desk::with_script(|dir| hostile::doing(dir, "true"));
            desk.agent_settings(&format!("[workspace]\nsetup = [{setup:?}]"));
            let towline = desk.start(["run", "do it", "--check", check, "--red-first", "--json"]);
            wait_for(LIMIT, place, || desk.home.path().join("up").exists());
            let goal = desk.only_goal();
            kill_with_supervisor(towline);
            let stopped = desk.towline(match stop {
                "rm" => vec!["rm", "--force", &goal],
                stop => vec![stop, &goal],
            });
            assert_eq!(stopped.code, Some(0), "{place}, {stop}: {stopped:?}");
            wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
        }
    }
}
