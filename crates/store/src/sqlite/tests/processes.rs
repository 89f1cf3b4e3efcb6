//! Several processes and one file: killed in the middle of writing, and writing at once.
//!
//! Each test starts its own program again, as the child, with the database's path in the environment.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use tokio::runtime::Runtime;
use towline_core::{Event, Generation, Goal, GoalState, Seq};

use super::{DEADLINE, Scratch, SqliteStore, number, texts};
use crate::conformance::samples::{
    append, at, created, everything, goal, happened, launch, marked, notice, pending, places, worker,
};
use crate::{Append, Lease, Store};

/// Where the child finds the database.
const DATABASE: &str = "TOWLINE_STORE_TEST_DATABASE";
/// Which goal the child writes.
const GOAL: &str = "TOWLINE_STORE_TEST_GOAL";

/// Events in each append of a child.
const EVENTS: u64 = 3;

#[test]
fn a_kill_in_the_middle_of_writing_leaves_a_consistent_store() {
    if let Some(path) = child_database() {
        return write_until_killed(&path);
    }
    let scratch = Scratch::new();
    let runtime = runtime();
    let goals = runtime.block_on(async {
        let store = scratch.store();
        [created(&store, 1).await, created(&store, 2).await]
    });
    for round in 0..10_u64 {
        let test = "a_kill_in_the_middle_of_writing_leaves_a_consistent_store";
        let mut child = Writer::start(test, &scratch.database(), 0);
        let mut acknowledged: Vec<String> = (0..5 + round * 3).map(|_| child.line()).collect();
        acknowledged.extend(child.kill_and_drain());
        assert_consistent(&scratch);
        let store = scratch.store();
        for (goal, acknowledged_up_to) in goals.iter().zip(acknowledged_by_goal(&acknowledged)) {
            runtime.block_on(assert_whole(&store, goal, Generation(round + 1), acknowledged_up_to));
        }
    }
}

#[test]
fn two_processes_that_open_a_new_store_at_once_both_write() {
    if let Some(path) = child_database() {
        return write_some(&path);
    }
    for _ in 0..3 {
        let scratch = Scratch::new();
        let test = "two_processes_that_open_a_new_store_at_once_both_write";
        let mut children = [1, 2].map(|number| Writer::start(test, &scratch.database(), number));
        children.iter_mut().for_each(|child| assert_eq!(child.line(), "ready"));
        children.iter_mut().for_each(Writer::go);
        children.into_iter().for_each(Writer::finish);
        let store = scratch.store();
        let runtime = runtime();
        for number in [1, 2] {
            let goal = goal(number);
            runtime.block_on(assert_whole(&store, &goal, Generation(1), 1 + SOME * EVENTS));
            let last = runtime.block_on(store.load(goal.id)).expect("it is there").last_seq;
            assert_eq!(last, Seq(1 + SOME * EVENTS));
        }
        assert_consistent(&scratch);
    }
}

/// How many appends a child makes that is not killed.
const SOME: u64 = 40;

/// The child's part: two goals at once, so that commits are shared, and a line for every append that was answered.
fn write_until_killed(path: &Path) {
    let store = SqliteStore::open(path).expect("it opens");
    let (one, two) = (goal(1), goal(2));
    runtime().block_on(async { tokio::join!(write(&store, &one, u64::MAX), write(&store, &two, u64::MAX)) });
}

fn write_some(path: &Path) {
    let number = std::env::var(GOAL).expect("a goal").parse().expect("a number");
    send_line("ready");
    let mut nothing = Vec::new();
    std::io::stdin().read_to_end(&mut nothing).expect("the parent closes it");
    let store = SqliteStore::open(path).expect("it opens");
    let goal = goal(number);
    runtime().block_on(async {
        let state = GoalState::new(&goal);
        store.create(&goal, &state, happened(Event::Created, 0)).await.expect("it is new");
        write(&store, &goal, SOME).await;
    });
}

async fn write(store: &SqliteStore, goal: &Goal, appends: u64) {
    let lease = store.claim(goal.id, &worker("child"), at(0), at(60), None).await.expect("its own or free");
    let mut last = store.load(goal.id).await.expect("it is there").last_seq;
    for _ in 0..appends {
        last = store.append(next(goal, &lease, last)).await.expect("nobody else writes it").last_seq;
        send_line(&format!("{} {last}", goal.id.short()));
    }
}

/// An append from which the state and the outbox can be determined: both follow from the end of the log.
fn next(goal: &Goal, lease: &Lease, last: Seq) -> Append {
    let after = last.0 + EVENTS;
    Append {
        state: marked(goal, u32::try_from(after).expect("small")),
        effects: vec![launch(goal.id, number_of(after), "go")],
        settled: vec![format!("launch/{}", number_of(last.0))],
        ..append(goal, lease.generation, last, (0..EVENTS).map(|_| notice("x".repeat(500), 1)).collect())
    }
}

fn number_of(last: u64) -> u32 {
    u32::try_from(last / EVENTS).expect("small")
}

/// A log without gaps up to at least what the child acknowledged, and everything else as of its end.
async fn assert_whole(store: &SqliteStore, goal: &Goal, generation: Generation, acknowledged_up_to: u64) {
    let stored = everything(store, goal.id).await;
    let last = stored.record.last_seq.0;
    assert!(last >= acknowledged_up_to, "acknowledged up to {acknowledged_up_to}, stored up to {last}");
    assert_eq!(places(&stored.events), (1..=last).collect::<Vec<_>>());
    assert_eq!(stored.record.lease.expect("nobody gave it back").generation, generation);
    if last > 1 {
        assert_eq!(stored.record.state, marked(goal, u32::try_from(last).expect("small")));
        assert_eq!(stored.pending, vec![pending(launch(goal.id, number_of(last), "go"))]);
    }
}

pub(super) fn assert_consistent(scratch: &Scratch) {
    let raw = scratch.raw();
    assert_eq!(texts(&raw, "PRAGMA integrity_check"), ["ok"]);
    assert_eq!(number(&raw, "SELECT COUNT(*) FROM pragma_foreign_key_check"), 0);
}

/// The highest place that was acknowledged, for each of the two goals.
fn acknowledged_by_goal(lines: &[String]) -> [u64; 2] {
    [1, 2].map(|number| {
        let short = goal(number).id.short();
        let acknowledged_line = lines.iter().filter_map(|line| line.strip_prefix(&format!("{short} ")));
        acknowledged_line.filter_map(|last| last.parse().ok()).max().unwrap_or(0)
    })
}

pub(super) fn child_database() -> Option<PathBuf> {
    std::env::var_os(DATABASE).map(PathBuf::from)
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// One line to the parent, in one write, so that a kill leaves no half of it that could be misread.
pub(super) fn send_line(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{line} .\n").as_bytes()).expect("the parent listens");
    out.flush().expect("the parent listens");
}

/// Lines that a child reported; what the test runner prints around them is not meant for us.
fn acknowledged_line(line: &str) -> Option<String> {
    line.strip_suffix(" .").map(str::to_owned)
}

/// The command that runs a test once more, with the database's path in its environment.
#[expect(clippy::disallowed_methods, reason = "the test is its own child")]
pub(super) fn test_again(module: &str, test: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test's own program"));
    let (_, module) = module.split_once("::").expect("the runner leaves the crate's name out");
    command.args([&format!("{module}::{test}"), "--exact", "--nocapture"]).env(DATABASE, path);
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

/// A child's lines as they come, read on a thread of their own so that waiting for them can end.
pub(super) fn listen(out: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in
            BufReader::new(out).lines().map_while(Result::ok).filter_map(|line| acknowledged_line(&line))
        {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// A child that runs a test of this module.
struct Writer {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Writer {
    fn start(test: &str, path: &Path, number: u64) -> Self {
        let mut command = test_again(module_path!(), test, path);
        let mut child =
            command.env(GOAL, number.to_string()).stdin(Stdio::piped()).spawn().expect("it starts");
        let lines = listen(child.stdout.take().expect("its output"));
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.recv_timeout(DEADLINE).expect("the child writes on")
    }

    /// Kills it and returns its last lines.
    fn kill_and_drain(mut self) -> Vec<String> {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is gone");
        self.lines.iter().collect()
    }

    fn go(&mut self) {
        drop(self.child.stdin.take());
    }

    fn finish(mut self) {
        let ended = loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(_) => {}
                Err(error) => break error == mpsc::RecvTimeoutError::Disconnected,
            }
        };
        if !ended {
            self.child.kill().expect("it hangs");
        }
        let status = self.child.wait().expect("it is gone");
        assert!(ended && status.success(), "{status}");
    }
}
