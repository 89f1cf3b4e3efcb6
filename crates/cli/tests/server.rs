//! The server as a program: it runs the goals that others add, may be killed at any moment, and is stopped from another terminal.

#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use serde_json::json;
use support::server::{add, kill, up, up_with};
use support::{Desk, finish, of_attempts};
use towline_testkit::hostile;

#[test]
fn goals_that_are_added_run_on_the_server_which_is_there_once_and_is_stopped_by_down() {
    let desk = Desk::with_script(|dir| hostile::doing(dir, "echo fixed > fix.txt")).without_baseline();
    let waiting = add(&desk, "first", &["--check", "test -f fix.txt"]);
    let shown = desk.towline(["show", &waiting, "--json"]).json();
    assert_eq!(shown["hold"]["reason"], "no_server");
    let server = up(&desk);
    desk.wait_for_phase(&waiting, "done");
    let second = desk.towline(["up"]);
    assert_eq!(second.code, Some(0));
    assert!(second.stdout.contains("a server is running already"), "{second:?}");
    let other = desk.towline(["up", "--slots", "2"]);
    assert_eq!(other.code, Some(2), "its options would be ignored: {other:?}");
    assert!(other.stderr.contains("stop it: towline down"), "{other:?}");
    let after = add(&desk, "second", &["--check", "test -f fix.txt", "--after", &waiting]);
    desk.wait_for_phase(&after, "done");
    let ran = desk.towline(["run", "third", "--check", "test -f fix.txt", "--json"]);
    assert_eq!((ran.code, &ran.json()["phase"]), (Some(0), &json!("done")), "{ran:?}");
    let down = desk.towline(["down"]);
    assert_eq!((down.code, down.stdout.trim()), (Some(0), "the server is stopped"));
    assert_eq!(finish(server).code, Some(0));
    assert_eq!(desk.towline(["down"]).code, Some(5), "none is running");
}

#[test]
fn an_agent_outlives_a_killed_server_and_is_adopted_by_the_next() {
    let script = "until test -e $HOME/go; do sleep 0.02; done; echo fixed > fix.txt";
    let desk = Desk::with_script(|dir| hostile::doing(dir, script)).without_baseline();
    let killed = up(&desk);
    let goal = add(&desk, "slow", &["--check", "test -f fix.txt"]);
    desk.wait_for(&goal, "a turn", |goal| goal["attempts"][0]["turns"] == 1);
    kill(killed);
    let server = up(&desk);
    std::fs::write(desk.home.path().join("go"), "").expect("written");
    let done = desk.wait_for_phase(&goal, "done");
    assert_eq!(of_attempts(&done, "end"), ["completed"]);
    assert_eq!(desk.towline(["down"]).code, Some(0));
    finish(server);
}

#[test]
fn the_queue_goes_by_the_slots_of_the_server_and_lists_what_waits_for_a_person() {
    let script = "until test -e $HOME/go; do sleep 0.02; done; echo fixed > fix.txt";
    let desk = Desk::with_script(|dir| hostile::doing(dir, script)).without_baseline();
    let server = up_with(&desk, &["--slots", "1"]);
    let first = add(&desk, "first", &["--check", "true"]);
    desk.wait_for_phase(&first, "running");
    let second = add(&desk, "second", &["--check", "true"]);
    let third = add(&desk, "third", &["--check", "true"]);
    assert_eq!(desk.towline(["pause", &third]).code, Some(0));
    let queue = desk.towline(["queue", "--json"]).json();
    let waiting = &queue["waiting"][0];
    assert_eq!(
        (&waiting["id"], &waiting["hold"]["text"]),
        (&json!(second), &json!("waits for a slot (pool cap 1)")),
        "{queue:#}"
    );
    let idle = &queue["idle"][0];
    assert_eq!((&idle["id"], &idle["hold"]["text"]), (&json!(third), &json!("paused by you")), "{queue:#}");

    let mut terminal = support::terminal::Terminal::new();
    let attached = terminal.start(&desk.command(["attach", &second]));
    terminal.wait_for("waits for a slot (pool cap 1)", 1);
    terminal.press("\u{3}");
    assert_eq!(finish(attached).code, Some(0));
    terminal.wait_for("stays in the queue; return to it with", 1);
    let mut terminal = support::terminal::Terminal::new();
    let attached = terminal.start(&desk.command(["attach", &first]));
    terminal.wait_for("attempt 1", 1);
    std::fs::write(desk.home.path().join("go"), "").expect("written");
    assert_eq!(finish(attached).code, Some(0));
    assert!(!terminal.shown().contains("adopted"), "{}", terminal.shown());
    desk.wait_for_phase(&second, "done");
    assert_eq!(desk.towline(["down"]).code, Some(0));
    finish(server);
}

#[test]
fn the_terminal_of_a_server_has_a_line_for_what_matters_and_names_what_still_runs_at_its_end() {
    let script = "until test -e $HOME/go; do sleep 0.02; done; echo fixed > fix.txt";
    let desk = Desk::with_script(|dir| hostile::doing(dir, script)).without_baseline();
    let mut terminal = support::terminal::Terminal::new();
    let server =
        terminal.start(&desk.command(["up", "--listen", "127.0.0.1:0", "--slots", "1", "--wait", "10m"]));
    terminal.wait_for("the next `towline up`", 1);
    let first = add(&desk, "first", &["--check", "true"]);
    let short = |id: &str| id[id.len() - 8..].to_owned();
    terminal.wait_for(&format!("  {}  starts: first", short(&first)), 1);
    std::fs::write(desk.home.path().join("go"), "").expect("written");
    terminal.wait_for(&format!("  {}  is done: first", short(&first)), 1);
    std::fs::remove_file(desk.home.path().join("go")).expect("removed");
    let second = add(&desk, "second", &["--check", "true"]);
    desk.wait_for(&second, "a turn", |goal| goal["attempts"][0]["turns"] == 1);
    let down = desk.start(["down"]);
    terminal.wait_for(&format!("to finish: {}", short(&second)), 1);
    terminal.press("\u{3}");
    finish(server);
    terminal.wait_for("continues them:", 1);
    let down = finish(down);
    assert!(
        down.stderr.contains(&format!("waiting up to 10m 00s for the turns of: {} ", short(&second))),
        "{down:?}"
    );
    std::fs::write(desk.home.path().join("go"), "").expect("written");
    let server = up(&desk);
    desk.wait_for_phase(&second, "done");
    assert_eq!(desk.towline(["down"]).code, Some(0));
    finish(server);
}
