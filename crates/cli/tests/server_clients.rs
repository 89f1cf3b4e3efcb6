//! What a person does with a server from another terminal: stops it twice, leaves a goal to it, or cancels one.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use support::terminal::Terminal;
use support::{Desk, LIMIT, finish, of_attempts};
use towline_testkit::hostile;
use towline_testkit::scratch::{wait_for, wait_for_some};

const CONTROL_C: &str = "\u{3}";

/// An agent that works until there is a file `go`.
fn patient() -> Desk {
    let script = "until test -e $HOME/go; do sleep 0.02; done; echo fixed > fix.txt";
    Desk::with_script(|dir| hostile::doing(dir, script)).without_baseline()
}

fn go(desk: &Desk) {
    std::fs::write(desk.home.path().join("go"), "").expect("written");
}

/// Starts a server that waits for turns as long as it takes.
fn up(desk: &Desk) -> Child {
    let server = desk.start(["up", "--listen", "127.0.0.1:0", "--wait", "1h"]);
    wait_for(LIMIT, "the server", || desk.towline(["open"]).code == Some(0));
    server
}

fn down(desk: &Desk, server: Child) {
    assert_eq!(desk.towline(["down"]).code, Some(0));
    assert_eq!(finish(server).code, Some(0));
}

fn interrupt(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::INT).expect("interrupted");
}

fn wait_for_turn(desk: &Desk, goal: &str) {
    desk.wait_for(goal, "a turn", |goal| goal["attempts"][0]["turns"] == 1);
}

#[test]
fn a_second_down_ends_the_waiting_and_no_agent() {
    let desk = patient();
    let server = up(&desk);
    let added = desk.towline(["add", "slow", "--check", "test -f fix.txt", "--json"]).json();
    let goal = added["id"].as_str().expect("an id").to_owned();
    wait_for_turn(&desk, &goal);
    let waiting = desk.start(["down"]);
    let queued = desk.towline(["add", "later", "--check", "true", "--json"]).json();
    let later = queued["id"].as_str().expect("an id").to_owned();
    wait_for(LIMIT, "the server to drain", || {
        desk.towline(["show", &later, "--json"]).json()["hold"]["reason"] == "draining"
    });
    let second = desk.towline(["down"]);
    let left = "the server is stopped; 1 goal still runs, and the next `towline up` continues it";
    for ran in [second, finish(waiting)] {
        assert_eq!((ran.code, ran.stdout.trim()), (Some(0), left), "{ran:?}");
    }
    let stopped = finish(server);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(stopped.stdout.contains("agents keep running"), "{stopped:?}");

    let server = up(&desk);
    go(&desk);
    let done = desk.wait_for_phase(&goal, "done");
    assert_eq!(of_attempts(&done, "end"), ["completed"], "it was adopted");
    desk.wait_for_phase(&later, "done");
    down(&desk, server);
}

#[test]
fn control_c_asks_once_whether_to_cancel_or_to_leave_the_goal_to_the_server() {
    for (answer, phase) in [("d", "done"), ("c", "cancelled")] {
        let desk = patient();
        let server = up(&desk);
        let mut terminal = Terminal::new();
        let running = terminal.start(&desk.command(["run", "slow", "--check", "test -f fix.txt"]));
        let goal = desk.only_goal();
        wait_for_turn(&desk, &goal);
        terminal.press(CONTROL_C);
        terminal.wait_for("or leave it running on the server (d)?", 1);
        terminal.type_in(answer);
        let left = finish(running);
        terminal.wait_for_the_end();
        assert_eq!(left.code == Some(0), phase == "done", "{left:?}");
        assert_eq!(terminal.shown().matches("or leave it running").count(), 1, "{}", terminal.shown());
        go(&desk);
        desk.wait_for_phase(&goal, phase);
        down(&desk, server);
    }
}

#[test]
fn without_a_terminal_control_c_cancels_the_goal_on_the_server() {
    let desk = patient();
    let server = up(&desk);
    let running = desk.start(["run", "slow", "--check", "test -f fix.txt"]);
    let goal = desk.only_goal();
    wait_for_turn(&desk, &goal);
    interrupt(&running);
    let ran = finish(running);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stdout.contains("or leave it running"), "{ran:?}");
    desk.wait_for_phase(&goal, "cancelled");
    down(&desk, server);
}

#[test]
fn control_c_also_cancels_a_goal_that_still_waits_in_the_queue() {
    let desk = patient();
    let server = support::server::up_with(&desk, &["--slots", "1"]);
    let first = support::server::add(&desk, "slow", &["--check", "test -f fix.txt"]);
    wait_for_turn(&desk, &first);
    let waiting = desk.start(["run", "later", "--check", "true", "--json"]);
    let second = wait_for_some(LIMIT, "the second goal", || {
        let goals = desk.towline(["ls", "--json"]).json();
        let second = goals.as_array()?.iter().find(|goal| goal["title"] == "later")?;
        second["id"].as_str().map(str::to_owned)
    });
    interrupt(&waiting);
    let ran = finish(waiting);
    assert_eq!((ran.code, &ran.json()["phase"]), (Some(130), &json!("cancelled")), "{ran:?}");
    go(&desk);
    desk.wait_for_phase(&first, "done");
    assert_eq!(desk.towline(["show", &second, "--json"]).json()["attempts"], json!([]));
    down(&desk, server);
}

#[test]
fn a_run_that_is_terminated_leaves_its_goal_to_the_server_and_reports_that() {
    let desk = patient();
    let server = up(&desk);
    let running = desk.start(["run", "slow", "--check", "test -f fix.txt"]);
    let goal = desk.only_goal();
    wait_for_turn(&desk, &goal);
    kill_process(Pid::from_child(&running), Signal::TERM).expect("terminated");
    let ran = finish(running);
    assert_eq!(ran.code, Some(143), "{ran:?}");
    assert!(ran.stderr.contains("keeps running; return to it with: towline attach"), "{ran:?}");
    go(&desk);
    let done = desk.wait_for_phase(&goal, "done");
    assert_eq!(of_attempts(&done, "end"), ["completed"], "{done}");
    down(&desk, server);
}

#[test]
fn open_prints_the_address_of_the_server() {
    let desk = patient();
    let server = up(&desk);
    let info = desk.towline(["open", "--json"]).json();
    let address = info["address"].as_str().expect("an address").to_owned();
    assert!(std::net::TcpStream::connect(&address).is_ok(), "{address}");
    let shown = desk.towline(["open"]);
    assert!(shown.stdout.starts_with(&format!("http://{address}/#code=")), "{shown:?}");
    down(&desk, server);
}
