//! Ctrl-C, SIGTERM and `towline cancel` end a goal whatever it is doing, also when its supervisor was suspended or git hangs.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use support::{Desk, LIMIT, finish};
use towline_testkit::hostile;
use towline_testkit::scratch::{wait_for, wait_for_some, wait_until_process_tree_gone};

/// Longer than any stop takes, and shorter than what is stopped.
const PATIENCE: Duration = Duration::from_secs(40);

#[derive(Debug, Clone, Copy)]
enum Way {
    CtrlC,
    Sigterm,
    Cancel,
}

const WAYS: [Way; 3] = [Way::CtrlC, Way::Sigterm, Way::Cancel];

fn stop(desk: &Desk, towline: &Child, goal: &str, way: Way) {
    match way {
        Way::CtrlC => kill_process(Pid::from_child(towline), Signal::INT).expect("Ctrl-C"),
        Way::Sigterm => kill_process(Pid::from_child(towline), Signal::TERM).expect("SIGTERM"),
        Way::Cancel => drop(desk.towline(["cancel", goal])),
    }
}

/// Stops a goal that works, and makes sure that it stopped and left nothing.
fn assert_stops(desk: &Desk, towline: Child, way: Way, doing: &str) {
    let goal = desk.only_goal();
    let began = Instant::now();
    stop(desk, &towline, &goal, way);
    let ran = finish(towline);
    assert!(began.elapsed() < PATIENCE, "{way:?} during {doing}: {:?}", began.elapsed());
    let (code, phase) = match way {
        Way::CtrlC | Way::Cancel => (Some(130), "cancelled"),
        Way::Sigterm => (Some(143), "paused"),
    };
    assert_eq!(desk.show(&goal)["phase"], phase, "{way:?} during {doing}");
    assert_eq!(ran.code, code, "{way:?} during {doing}: {ran:?}");
    wait_until_process_tree_gone(&desk.home.marker(), Duration::from_secs(1));
}

/// The supervisor that towline started.
fn supervisor_of(towline: &Child) -> Pid {
    wait_for_some(LIMIT, "a supervisor", || {
        let below = towline_process::descendants(towline.id()).expect("a list of processes");
        let is_supervisor = |pid: u32| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "towline-shim\n")
        };
        let found = below.into_iter().find(|process| is_supervisor(process.pid))?;
        Pid::from_raw(i32::try_from(found.pid).expect("a process number"))
    })
}

fn in_parallel(cases: &[(&'static str, Way)], case: impl Fn(&'static str, Way) + Sync) {
    for cases in cases.chunks(3) {
        std::thread::scope(|scope| {
            for (doing, way) in cases.iter().copied() {
                let case = &case;
                scope.spawn(move || case(doing, way));
            }
        });
    }
}

fn each(doings: &[&'static str]) -> Vec<(&'static str, Way)> {
    doings.iter().flat_map(|doing| WAYS.map(|way| (*doing, way))).collect()
}

const WAITS: &str = "touch \"$HOME/up\"; exec sleep 600";

#[test]
fn a_suspended_supervisor_holds_up_no_stop() {
    in_parallel(&each(&["attempt", "check", "setup"]), |doing, way| {
        let body = match doing {
            "attempt" => "\nawait_prompt\ninit\nassistant Working.\n: > \"$HOME/up\"\nlinger\n",
            _ => "\nawait_prompt\ninit\nassistant Done.\nresult false null Done.\n",
        };
        let desk = Desk::with_script(|dir| hostile::with_body(dir, "agent", body));
        if doing == "setup" {
            desk.agent_settings(&format!("[workspace]\nsetup = ['{WAITS}']"));
        }
        let check = if doing == "check" { WAITS } else { "true" };
        let towline = desk.start(["run", "do it", "--check", check, "--json"]);
        wait_for(LIMIT, doing, || desk.home.path().join("up").exists());
        kill_process(supervisor_of(&towline), Signal::STOP).expect("suspended");
        assert_stops(&desk, towline, way, doing);
    });
}

/// A filter that hangs on some content, in the user's repository.
fn slow_filter(desk: &Desk, up: &Path) {
    let hangs = format!("touch '{}'; sleep 600", up.display());
    let filter = |word: &str| format!("t=$(cat); case $t in *{word}*) {hangs};; esac; printf '%s\\n' \"$t\"");
    desk.project.write(".gitattributes", "*.slow filter=slow\n");
    desk.project.write("file.slow", "stored\n");
    desk.project.commit("a file with a filter");
    desk.project.git(["config", "filter.slow.clean", &filter("agent")]);
    desk.project.git(["config", "filter.slow.smudge", &filter("hang")]);
}

#[test]
fn git_that_hangs_holds_up_no_stop() {
    in_parallel(&each(&["prepare", "candidate"]), |doing, way| {
        let body = "\nawait_prompt\ninit\necho agent > file.slow\nassistant Done.\nresult false null Done.\n";
        let desk = Desk::with_script(|dir| hostile::with_body(dir, "agent", body));
        let up = desk.home.path().join("up");
        if doing == "prepare" {
            desk.project.write("other.slow", "hang\n");
        }
        slow_filter(&desk, &up);
        let towline = desk.start(["run", "change the file", "--check", "true", "--json"]);
        wait_for(LIMIT, doing, || up.exists());
        let phase = desk.show(&desk.only_goal())["phase"].clone();
        assert_eq!(phase, if doing == "prepare" { "preparing" } else { "checking" }, "{way:?}");
        assert_stops(&desk, towline, way, doing);
    });
}
