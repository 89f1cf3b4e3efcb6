//! Many agents at once under one server: how late a client has what they write, and what the server takes for it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;
use towline_core::GoalState;
use towline_engine::{Clock, SystemClock};
use towline_testkit::figures::{Figure, median, percentile, shown};

use crate::agent;
use crate::processes::pss_of;
use crate::server::Server;
use crate::stored::{AGENT, Template, fill};
use crate::support::Desk;

const SECTION: &str = "100 agents at once";
const AGENTS: usize = 100;
/// How long they are watched once all of them work.
const WATCHED: Duration = Duration::from_secs(20);
/// How often the server's memory is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How long all of them may take to start, and to end.
const LIMIT: Duration = Duration::from_secs(120);
/// How late an event may be, in milliseconds.
const LATE: f64 = 1_000.0;
/// What the server may take, in megabytes.
const MEMORY: f64 = 200.0;

/// What a client has seen.
#[derive(Default)]
struct Seen {
    messages: Vec<Message>,
    /// Goals whose agents have written something.
    working: BTreeSet<String>,
    ended: usize,
}

struct Message {
    written_at: Timestamp,
    /// How much later the client had it, in milliseconds.
    late: f64,
}

pub(crate) fn measure() {
    let mut desk = Desk::new();
    desk.leaves_nothing_to_replay("its attempts are there to be measured");
    let (program, stop) = (std::env::current_exe().expect("this program"), desk.home.path().join("stop"));
    desk.configure(&format!(
        "[defaults]\nagents = [\"{AGENT}\"]\n[agents.{AGENT}]\nkind = \"claude\"\ncommand = [{program:?}, \"{}\", {stop:?}]\n",
        agent::ARGUMENT
    ));
    let template = Template::of(&desk.project);
    let goals = (0..AGENTS).map(|number| template.goal(number));
    fill(&desk.home.towline().join("towline.db"), goals.map(|goal| (GoalState::new(&goal), goal)));

    let begun = Instant::now();
    let server = Server::up(&desk, AGENTS);
    let (client, seen) = (server.client(), Arc::new(Mutex::new(Seen::default())));
    let follower = std::thread::spawn({
        let seen = Arc::clone(&seen);
        move || client.follow(|event| note(&mut locked(&seen), event))
    });
    let mut memory = Memory { pid: server.pid(), largest: 0.0 };
    memory.watch_until("all agents to work", || locked(&seen).working.len() == AGENTS);
    let started = begun.elapsed().as_secs_f64();
    let from = SystemClock.now();
    let watched = Instant::now();
    memory.watch_until("the time to pass", || watched.elapsed() >= WATCHED);
    let until = SystemClock.now();
    std::fs::write(&stop, "").expect("the agents can be stopped");
    memory.watch_until("all goals to end", || locked(&seen).ended == AGENTS);
    server.down(&desk);
    follower.join().expect("the client ends with the server");

    let seen = locked(&seen);
    let (during, around): (Vec<&Message>, Vec<&Message>) =
        seen.messages.iter().partition(|message| (from..until).contains(&message.written_at));
    print_lateness("what they write, until a client has it, p99", &during);
    print_lateness("the same while they start and end", &around);
    Figure::new(SECTION, "the server, PSS at most", memory.largest / 1e6, "MB")
        .below(MEMORY)
        .beside(format!("all agents worked after {} s", shown(started)))
        .print();
}

fn print_lateness(what: &str, messages: &[&Message]) {
    let late = || messages.iter().map(|message| message.late);
    let beside = format!(
        "{} messages; median: {} ms, longest: {} ms",
        shown(messages.len() as f64),
        shown(median(late())),
        shown(percentile(late(), 1.0))
    );
    Figure::new(SECTION, what, percentile(late(), 0.99), "ms").below(LATE).beside(beside).print();
}

fn note(seen: &mut Seen, event: &Value) {
    let now = SystemClock.now();
    let (goal, event) = (&event["goal"], &event["event"]);
    if event["kind"] == "phase_changed" {
        let phase = event["phase"]["phase"].as_str().expect("a phase");
        assert!(!["failed", "escalated", "limited", "blocked"].contains(&phase), "{event}");
        seen.ended += usize::from(phase == "unproven");
    }
    if let Some(written_at) = event["event"]["text"].as_str().and_then(agent::written_at) {
        seen.working.insert(goal.as_str().expect("an id").to_owned());
        let late = now.duration_since(written_at).as_secs_f64() * 1e3;
        seen.messages.push(Message { written_at, late });
    }
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most memory that a process had when it was looked at, in bytes.
struct Memory {
    pid: u32,
    largest: f64,
}

impl Memory {
    fn watch_until(&mut self, what: &str, mut is_over: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_over() {
            assert!(begun.elapsed() < LIMIT, "waited {LIMIT:?} for {what}, in vain");
            self.largest = self.largest.max(pss_of(self.pid));
            std::thread::sleep(LOOK);
        }
    }
}
