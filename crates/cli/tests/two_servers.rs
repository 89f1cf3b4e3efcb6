//! Several engines on one state directory: a server whose predecessor is suspended, and servers beside `towline run`.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, reason = "an expectation that fails is a test that fails")]

mod support;

use std::collections::BTreeSet;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::server::{add, down, kill, up, wait_until_known};
use support::{Desk, LIMIT, finish, of_attempts};
use towline_testkit::hostile;
use towline_testkit::scratch::{SetClock, processes_with, wait_for, wait_until_process_tree_gone};

/// An agent that works until the file `go` is there, and counts its starts and prompts.
const AGENT: &str = r#"
printf '%s\n' "$TOWLINE_QUESTION_FILE" >> "$HOME/started"
while IFS= read -r line; do
  case "$line" in
    *'"control_request"'*) answer_control "$line" ;;
    *'"role":"user"'* | *'"role": "user"'*)
      init
      assistant 'Working.'
      printf '%s\n' "$TOWLINE_QUESTION_FILE" >> "$HOME/prompted"
      until test -e "$HOME/go"; do sleep 0.02; done
      echo fixed > fix.txt
      assistant 'Done.'
      result false null 'Done.'
      ;;
  esac
done
"#;

fn desk() -> Desk {
    Desk::with_script(|dir| hostile::with_body(dir, "agent", AGENT)).without_baseline()
}

fn lines(desk: &Desk, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(desk.home.path().join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn let_go(desk: &Desk) {
    std::fs::write(desk.home.path().join("go"), "").expect("written");
}

fn signal(process: &Child, signal: Signal) {
    kill_process(Pid::from_child(process), signal).expect("a signal");
}

/// A connection to the store, which waits a moment for whoever writes.
fn store(desk: &Desk) -> rusqlite::Connection {
    let database = rusqlite::Connection::open(desk.home.towline().join("towline.db")).expect("the database");
    database.busy_timeout(std::time::Duration::from_millis(200)).expect("set");
    database
}

/// Suspends a server while it writes nothing: otherwise it would keep the lock of the store.
fn suspend(desk: &Desk, server: &Child) {
    wait_for(LIMIT, "a moment without a write", || {
        signal(server, Signal::STOP);
        let is_free = store(desk).execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok();
        if !is_free {
            signal(server, Signal::CONT);
        }
        is_free
    });
}

/// No attempt was started twice, no log has a gap or a double, and nothing runs any more.
fn assert_sound(desk: &Desk, goals: &[&str]) {
    for file in ["started", "prompted"] {
        let all = lines(desk, file);
        let distinct: BTreeSet<&String> = all.iter().collect();
        assert_eq!(all.len(), distinct.len(), "{file}: {all:#?}");
    }
    for goal in goals {
        let numbers: Vec<u64> = desk.events(goal).iter().filter_map(|event| event["seq"].as_u64()).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    }
    wait_until_process_tree_gone(&desk.home.marker(), LIMIT);
}

/// The supervisors of a desk. Each ends with its agent.
fn supervisors(desk: &Desk) -> BTreeSet<u32> {
    let is_supervisor = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "towline-shim\n")
    };
    let found = processes_with(&desk.home.marker()).into_iter().map(|process| process.pid);
    found.filter(is_supervisor).collect()
}

#[test]
fn a_suspended_server_is_replaced_when_its_lease_has_expired_and_when_it_continues_it_changes_nothing() {
    let desk = desk();
    let first = up(&desk);
    let running = add(&desk, "slow", &["--check", "test -f fix.txt"]);
    wait_for(LIMIT, "the agent to work", || lines(&desk, "prompted").len() == 1);
    assert_eq!(supervisors(&desk).len(), 1);
    suspend(&desk, &first);

    // For the second one, the lease has expired long ago.
    let clock = SetClock::new().expect("a clock");
    clock.set(300).expect("set");
    let second =
        desk.command(["up", "--listen", "127.0.0.1:0", "--wait", "1s"]).envs(clock.variables()).spawn();
    let second = second.expect("a second server");
    wait_until_known(&desk, &second);
    let claims = || desk.events(&running).iter().filter(|event| event["event"]["kind"] == "claimed").count();
    wait_for(LIMIT, "the goal to be taken over", || claims() == 2);
    let queued = add(&desk, "next", &["--check", "test -f fix.txt"]);
    wait_for(LIMIT, "the next goal", || lines(&desk, "prompted").len() == 2);
    let (before, agents) = (desk.events(&running), supervisors(&desk));
    assert_eq!(agents.len(), 2);

    signal(&first, Signal::CONT);
    let ended = finish(first);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("another server has taken over"), "{ended:?}");
    assert_eq!(desk.events(&running), before, "it changes nothing");
    assert_eq!(supervisors(&desk), agents, "it leaves the agents alone");

    let_go(&desk);
    for goal in [&running, &queued] {
        let done = desk.wait_for_phase(goal, "done");
        assert_eq!(of_attempts(&done, "end"), ["completed"], "{done}");
    }
    assert_eq!(lines(&desk, "started").len(), 2);
    down(&desk, second);
    assert_sound(&desk, &[&running, &queued]);
}

#[test]
fn a_suspended_server_whose_lease_holds_is_waited_for_and_reported_when_it_continues() {
    let desk = desk();
    let first = up(&desk);
    let goal = add(&desk, "slow", &["--check", "test -f fix.txt"]);
    wait_for(LIMIT, "the agent to work", || lines(&desk, "prompted").len() == 1);
    suspend(&desk, &first);
    // Without options, which a server that runs already cannot take.
    let second = desk.start(["up"]);
    // It has opened the store, which it does before it looks who serves.
    let store = desk.home.towline().join("towline.db");
    let opened = || {
        let files = std::fs::read_dir(format!("/proc/{}/fd", second.id())).into_iter().flatten().flatten();
        files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|path| path == store)
    };
    wait_for(LIMIT, "the second server to look", opened);
    signal(&first, Signal::CONT);
    let second = finish(second);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(second.stdout.contains("a server is running already"), "{second:?}");
    let_go(&desk);
    let done = desk.wait_for_phase(&goal, "done");
    assert_eq!(of_attempts(&done, "end"), ["completed"]);
    down(&desk, first);
    assert_sound(&desk, &[&goal]);
}

#[test]
fn a_second_server_on_the_port_of_a_suspended_one_reports_how_to_end_that_one_before_it_waits() {
    let desk = desk();
    let first = up(&desk);
    let goal = add(&desk, "slow", &["--check", "test -f fix.txt"]);
    wait_for(LIMIT, "the agent to work", || lines(&desk, "prompted").len() == 1);
    suspend(&desk, &first);
    let (before, pid) = (desk.events(&goal), first.id());
    let announced: Value = std::fs::read(desk.home.towline().join("server.json"))
        .map(|bytes| serde_json::from_slice(&bytes).expect("JSON"))
        .expect("an announcement");
    let address = announced["address"].as_str().expect("an address");
    let port = address.rsplit_once(':').expect("a port").1;
    // The lease holds for a minute, and none of it is waited for.
    for listen in [address.to_owned(), format!("0.0.0.0:{port}")] {
        let second = desk.towline(["up", "--listen", &listen]);
        assert_eq!((second.code, second.stdout.as_str()), (Some(4), ""), "{second:?}");
        let error = format!("cannot listen on {listen}: the suspended server (pid {pid}) has {address}");
        assert!(second.stderr.contains(&error), "{second:?}");
        assert!(second.stderr.contains(&format!("`kill -KILL {pid}`")), "{second:?}");
        assert!(second.stderr.contains("towline up --listen 127.0.0.1:8690"), "{second:?}");
    }
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = elsewhere.local_addr().expect("an address").to_string();
    let second = desk.towline(["up", "--listen", &taken]);
    assert!(second.stderr.contains("another program has this port"), "{second:?}");
    assert_eq!(desk.events(&goal), before, "nothing was changed");

    // The advice works: the next server has the address, and the goal.
    kill(first);
    let second = desk.start(["up", "--listen", address, "--wait", "1s"]);
    wait_until_known(&desk, &second);
    let_go(&desk);
    let done = desk.wait_for_phase(&goal, "done");
    assert_eq!(of_attempts(&done, "end"), ["completed"]);
    down(&desk, second);
    assert_sound(&desk, &[&goal]);
}

#[test]
fn a_server_that_was_suspended_while_it_wrote_is_named_with_the_way_out() {
    let desk = desk();
    let first = up(&desk);
    suspend(&desk, &first);
    let writing = store(&desk);
    writing.execute_batch("BEGIN IMMEDIATE").expect("the lock of the store");
    let second = desk.towline(["up", "--listen", "127.0.0.1:0"]);
    let pid = first.id();
    assert_eq!(second.code, Some(4), "{second:?}");
    let what = format!("the database is locked, probably by the suspended server (pid {pid})");
    assert!(second.stderr.contains(&what), "{second:?}");
    assert!(second.stderr.contains(&format!("`kill -CONT {pid}`")), "{second:?}");
    writing.execute_batch("ROLLBACK").expect("given back");
    signal(&first, Signal::CONT);
    down(&desk, first);
    assert_sound(&desk, &[]);
}

#[test]
fn of_several_servers_that_start_at_once_one_comes_up_and_the_others_report_it() {
    let desk = desk();
    let started: Vec<Child> = (0..4)
        .map(|_| desk.start(["up", "--slots", "1", "--listen", "127.0.0.1:0", "--wait", "1s"]))
        .collect();
    let announced = desk.home.towline().join("server.json");
    wait_for(LIMIT, "a server", || announced.exists());
    let announced: Value =
        serde_json::from_slice(&std::fs::read(&announced).expect("an announcement")).expect("JSON");
    let (mut servers, others): (Vec<Child>, Vec<Child>) =
        started.into_iter().partition(|process| announced["pid"] == process.id());
    assert_eq!((servers.len(), others.len()), (1, 3));
    for other in others {
        let other = finish(other);
        assert_eq!(other.code, Some(2), "{other:?}");
        assert!(
            other.stderr.contains(&format!(
                "running already: http://{}/",
                announced["address"].as_str().expect("an address")
            )),
            "{other:?}"
        );
        assert!(!other.stdout.contains("towline is up"), "{other:?}");
    }
    down(&desk, servers.remove(0));
}

/// What is done to the two programs that may run a goal.
#[derive(Debug, Clone, Copy)]
enum Move {
    Up,
    KillServer,
    Down,
    Run,
    KillRun,
}

/// The programs that run.
struct Programs<'a> {
    desk: &'a Desk,
    goal: String,
    server: Option<Child>,
    run: Option<Child>,
}

impl Programs<'_> {
    fn make(&mut self, what: Move) {
        match what {
            Move::Up => self.server = Some(up(self.desk)),
            Move::KillServer => kill(self.server.take().expect("a server")),
            Move::Down => down(self.desk, self.server.take().expect("a server")),
            Move::Run => {
                self.run = Some(self.desk.start(["run", "--goal", &self.goal, "--json"]));
            }
            Move::KillRun => kill(self.run.take().expect("a run")),
        }
    }
}

/// Begins with a goal of `towline run` and one in the queue, makes these moves, and lets a server bring both to their end.
fn play(moves: &[Move]) {
    let desk = desk();
    let run = desk.start(["run", "by hand", "--check", "test -f fix.txt", "--json"]);
    let goal = desk.only_goal();
    let queued = add(&desk, "in the queue", &["--check", "test -f fix.txt"]);
    wait_for(LIMIT, "the agent to work", || !lines(&desk, "prompted").is_empty());
    let mut programs = Programs { desk: &desk, goal: goal.clone(), server: None, run: Some(run) };
    for made in moves {
        programs.make(*made);
    }
    if programs.server.is_none() {
        programs.make(Move::Up);
    }
    let_go(&desk);
    for goal in [&goal, &queued] {
        let done = desk.wait_for_phase(goal, "done");
        assert_eq!(of_attempts(&done, "end"), ["completed"], "{moves:?}: {done}");
    }
    if let Some(run) = programs.run.take() {
        let ran = finish(run);
        // A goal that was done before it could be resumed is refused, and so is one that the server has taken first. One that is
        // followed on a server that is killed is left with the reason.
        let reasons = ["is done", "is driven by another", "the process that ran goal"];
        let has_reason = reasons.iter().any(|reason| ran.stderr.contains(reason));
        assert!(ran.code == Some(0) || has_reason, "{moves:?}: {ran:?}");
    }
    programs.make(Move::Down);
    assert_eq!(lines(&desk, "started").len(), 2, "{moves:?}");
    let cost: Value = desk.towline(["cost", "--json"]).json();
    assert_eq!(cost["total"]["cost_usd"], json!(0.002), "{moves:?}");
    assert_sound(&desk, &[&goal, &queued]);
}

#[test]
fn a_run_and_a_server_that_stop_and_start_in_any_order_run_no_goal_twice_and_forget_none() {
    use Move::{Down, KillRun, KillServer, Run, Up};
    for moves in [
        &[Up][..],
        &[Up, KillRun],
        &[KillRun, Up],
        &[Up, KillServer],
        &[Up, Down, KillRun],
        &[Up, KillRun, KillServer, Run],
        &[KillRun, Run, Up, KillServer, Up, KillRun],
        &[KillRun, Up, Run, KillServer],
        &[Up, KillServer, KillRun, Up, Down, Run],
    ] {
        play(moves);
    }
}
