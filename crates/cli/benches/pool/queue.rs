//! A server with one slot and a queue. Its agents work as long as a file is there, so that nothing starts until it is taken away.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Runtime;
use towline_core::{Envelope, Event, Goal, GoalState, Phase, PoolSeq};
use towline_store::{SqliteStore, Store};
use towline_testkit::scratch::wait_for;

use crate::server::Server;
use crate::stored::{AGENT, Template, fill};
use crate::support::{Desk, LIMIT};

/// How many events are read at once.
const PAGE: usize = 1_000;
/// Nothing left of a start takes longer than this between two events.
const REST: Duration = Duration::from_millis(200);

pub(crate) struct Queue {
    desk: Desk,
    pub(crate) server: Server,
    template: Template,
    hold: PathBuf,
    /// How many goals are in the queue at least.
    size: usize,
    /// How many goals were added so far.
    added: usize,
    runtime: Runtime,
    store: SqliteStore,
    read_to: PoolSeq,
    events: Vec<Envelope>,
}

/// How long a goal took from the moment that the slot was free, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    /// It was chosen, and holds the slot.
    pub(crate) dispatched: f64,
    /// Its workspace was ready.
    pub(crate) prepared: f64,
    /// Its agent ran.
    pub(crate) started: f64,
}

impl Queue {
    /// A server whose slot is taken, with so many more goals in its queue.
    pub(crate) fn new(size: usize) -> Self {
        let mut desk = Desk::new();
        desk.leaves_nothing_to_replay("its attempts are there to be measured");
        let hold = desk.home.path().join("hold");
        std::fs::write(&hold, "").expect("a file");
        let script = format!("while test -e '{}'; do sleep 0.01; done", hold.display());
        desk.configure(&format!(
            "[agents.{AGENT}]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", {script:?}]\nprompt = \"stdin\"\n"
        ));
        let template = Template::of(&desk.project);
        let database = desk.home.towline().join("towline.db");
        let queued = (0..=size).map(|number| template.goal(number));
        fill(&database, queued.map(|goal| (GoalState::new(&goal), goal)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let store = SqliteStore::open(&database).expect("a store");
        // What it was filled with is no start.
        let read_to = runtime.block_on(store.last_place()).expect("a place");
        let server = Server::up(&desk, 1);
        let mut queue = Self {
            desk,
            server,
            template,
            hold,
            size,
            added: size + 1,
            runtime,
            store,
            read_to,
            events: Vec::new(),
        };
        queue.wait_for_rest();
        queue
    }

    /// The goal with this number.
    pub(crate) fn goal(&self, number: usize) -> Goal {
        self.template.goal(number)
    }

    /// Lets so many goals or a few more come to their end, one after the other.
    pub(crate) fn run(&mut self, goals: usize) {
        // One works, and the queue is not to become shorter than it was.
        let wanted = self.ended() + 1 + goals + self.size;
        let new = (self.added..wanted).map(|number| self.template.goal(number));
        fill(&self.desk.home.towline().join("towline.db"), new.map(|goal| (GoalState::new(&goal), goal)));
        self.added = self.added.max(wanted);
        self.wait_for_rest();
        let before = self.ended();
        std::fs::remove_file(&self.hold).expect("the goals go on");
        wait_for(LIMIT, "the goals to end", || {
            self.read();
            self.ended() >= before + goals
        });
        std::fs::write(&self.hold, "").expect("a file");
        self.wait_for_rest();
    }

    /// How long each goal took to start.
    pub(crate) fn starts(&self) -> Vec<Start> {
        let mut starts = Vec::new();
        let (mut free_at, mut dispatched, mut prepared) = (None, None, None);
        for Envelope { at, event, .. } in &self.events {
            let since = |free_at: Timestamp| at.duration_since(free_at).as_secs_f64() * 1e3;
            match event {
                Event::PhaseChanged { phase: Phase::Unproven } => free_at = Some(*at),
                Event::Dispatched { .. } => dispatched = free_at.map(since),
                Event::Prepared { .. } => prepared = free_at.map(since),
                Event::AttemptStarted { .. } => {
                    if let (Some(free_at), Some(dispatched), Some(prepared)) =
                        (free_at.take(), dispatched.take(), prepared.take())
                    {
                        starts.push(Start { dispatched, prepared, started: since(free_at) });
                    }
                }
                _ => {}
            }
        }
        starts
    }

    pub(crate) fn close(self) {
        std::fs::remove_file(&self.hold).expect("the last agent is released");
        self.server.down(&self.desk);
    }

    fn ended(&self) -> usize {
        let has_ended =
            |event: &&Envelope| matches!(&event.event, Event::PhaseChanged { phase } if phase.is_settled());
        self.events.iter().filter(has_ended).count()
    }

    /// Waits until an agent works and nothing else happens.
    fn wait_for_rest(&mut self) {
        wait_for(LIMIT, "the agent to work", || {
            self.read();
            std::thread::sleep(REST);
            let last =
                self.events.iter().rev().find(|event| matches!(event.event, Event::PhaseChanged { .. }));
            let works = last.is_some_and(|last| {
                matches!(last.event, Event::PhaseChanged { phase: Phase::Running { .. } })
            });
            works && !self.read()
        });
    }

    /// Reads what happened. Whether it was anything.
    fn read(&mut self) -> bool {
        let new = self.runtime.block_on(self.store.events_since(self.read_to, PAGE)).expect("events");
        let Some((last, _)) = new.last() else { return false };
        self.read_to = *last;
        self.events.extend(new.into_iter().map(|(_, event)| event));
        true
    }
}
