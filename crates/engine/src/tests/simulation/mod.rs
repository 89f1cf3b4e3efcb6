//! Whole pools on a simulated machine: agents follow scripts, time is simulated, and the server can be killed at any point.

mod hours;
mod killed;
mod life;
mod machine;
mod mortal_store;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tempfile::TempDir;
use tokio::time::Instant;
use towline_core::{
    AgentName, Caps, Envelope, Event, Goal, GoalId, GoalState, Inherited, MicroUsd, Phase, PoolSeq,
    Prerequisite, Source,
};
use towline_process::SupervisorProgram;
use towline_store::{GoalRecord, Listing, MemoryStore, Store, list_all};

use self::life::Life;
use self::machine::{Machine, Script, Scripted};
use self::mortal_store::MortalStore;
use super::values::{answered, beginning};
use crate::clock::{Alarm, Clock};
use crate::engine::{Dispatching, Engine, EngineSettings};
use crate::home::Home;
use crate::reads::Reads;
use crate::resolver::{Resolved, Resolver, Unresolved};
use crate::rules::{Limits, PoolRules, ProjectRules};

/// How long the operator takes to answer.
const ANSWER_AFTER: Duration = Duration::from_secs(40);
/// How often the operator looks while a question waits, and while nothing happens.
const TICK: Duration = Duration::from_secs(10);
const REST: Duration = Duration::from_secs(600);
/// What happens within this time is looked at together.
const MOMENT: Duration = Duration::from_secs(1);
/// A pool that has not come to its end after this time never will.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Wall time that follows the simulated time of the runtime.
#[derive(Clone)]
struct SimulatedClock {
    since: Instant,
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        beginning().checked_add(self.since.elapsed()).expect("in range")
    }

    fn alarm(&self) -> std::io::Result<Box<dyn Alarm>> {
        Ok(Box::new(self.clone()))
    }
}

impl Alarm for SimulatedClock {
    fn ring(&mut self, at: Option<Timestamp>) -> BoxFuture<'_, ()> {
        async move {
            let Some(at) = at else { return std::future::pending().await };
            let left = Duration::try_from(at.duration_since(self.now())).unwrap_or_default();
            tokio::time::sleep(left).await;
        }
        .boxed()
    }
}

/// Every project has the same empty configuration.
struct NoConfiguration;

impl Resolver for NoConfiguration {
    fn resolve(&self, _goal: &Goal) -> Result<Resolved, Unresolved> {
        Ok(Resolved::default())
    }
}

/// Caps, and nothing else.
struct OnlyCaps(Caps, Reads);

impl PoolRules for OnlyCaps {
    fn limits(&self, now: Timestamp) -> Limits {
        Limits { caps: self.0.clone(), day: None, pool: None, today: (now, now), free_space: 0 }
    }

    fn project(&self, _project: &str, _agents: &BTreeSet<AgentName>) -> ProjectRules {
        ProjectRules::default()
    }

    fn last_budget(&self, _project: &str) -> Option<MicroUsd> {
        None
    }

    fn files(&self, _project: Option<&str>) -> BTreeSet<PathBuf> {
        BTreeSet::new()
    }

    fn reads(&self) -> &Reads {
        &self.1
    }

    fn problem(&self) -> Option<String> {
        None
    }

    fn inherited(&self, _goal: &Goal, _prerequisites: &[GoalRecord]) -> Result<Inherited, String> {
        Ok(Inherited::default())
    }
}

/// A machine with a state directory, goals and scripts for their agents. Servers come and go.
struct Pool {
    home: Home,
    store: MemoryStore,
    clock: SimulatedClock,
    machine: Arc<Machine>,
    caps: Caps,
    /// When the operator answers the goals that ask.
    answers: Mutex<BTreeMap<GoalId, Instant>>,
    _dir: TempDir,
}

impl Pool {
    async fn new(goals: Vec<(Goal, Script)>, caps: Caps) -> Self {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let home = Home::create(dir.path().join("state")).expect("a state directory");
        let clock = SimulatedClock { since: Instant::now() };
        let store = MemoryStore::new();
        for (goal, _) in &goals {
            let created = Envelope::new(goal.id, goal.created_at, Source::Operator, Event::Created);
            store.create(goal, &GoalState::new(goal), created).await.expect("created");
        }
        let machine =
            Arc::new(Machine::new(goals.into_iter().map(|(goal, script)| (goal.id, script)).collect()));
        Self { home, store, clock, machine, caps, answers: Mutex::default(), _dir: dir }
    }

    /// Runs a server until all goals have come to their end, or the server dies. Whether it was killed.
    async fn serve(&self, life: &Life) -> bool {
        let settings = EngineSettings {
            home: self.home.clone(),
            store: Arc::new(MortalStore::new(self.store.clone(), life.clone())),
            clock: Arc::new(self.clock.clone()),
            supervisor: SupervisorProgram { path: "/nowhere".into(), args: Vec::new(), shown: None },
            resolver: Arc::new(NoConfiguration),
            dispatch: Dispatching::Pool(Arc::new(OnlyCaps(self.caps.clone(), Reads::default()))),
        };
        let executors = Scripted::new(Arc::clone(&self.machine), life.clone());
        let engine = Engine::open_with(settings, Box::new(executors)).expect("an engine");
        tokio::select! {
            biased;
            () = life.death() => true,
            () = self.operate(&engine) => false,
            () = tokio::time::sleep(LONGEST) => panic!("the pool never ends: {:?}", self.phases().await),
        }
    }

    /// Answers questions until nothing is left to do.
    async fn operate(&self, engine: &Engine) {
        let mut changes = engine.changes();
        loop {
            changes.borrow_and_update();
            let records = self.records().await;
            let ended: Vec<&GoalRecord> =
                records.iter().filter(|record| record.state.phase.has_ended()).collect();
            let never_starts = |record: &GoalRecord| {
                let not_done = |needed: &Prerequisite| {
                    let needed = records.iter().find(|record| record.goal.id == needed.goal);
                    needed.is_none_or(|needed| needed.state.phase != Phase::Done)
                };
                record.state.phase == Phase::Queued && record.goal.scheduling.after.iter().any(not_done)
            };
            let waits_for_good = records.iter().filter(|record| never_starts(record)).count();
            let is_idle = records.iter().all(|record| engine.shared().driven(record.goal.id).is_none());
            if is_idle && ended.len() + waits_for_good == records.len() {
                return;
            }
            let asks = records.iter().any(|record| matches!(record.state.phase, Phase::Blocked { .. }));
            for record in records {
                let Phase::Blocked { question, .. } = record.state.phase else { continue };
                let due = {
                    let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
                    *answers.entry(record.goal.id).or_insert_with(|| Instant::now() + ANSWER_AFTER)
                };
                if Instant::now() >= due {
                    // It may have been answered, or be on its way, already.
                    let _ = engine.record_request(record.goal.id, answered(question)).await;
                    self.answers.lock().unwrap_or_else(PoisonError::into_inner).remove(&record.goal.id);
                }
            }
            // Days pass without a question.
            tokio::select! {
                Ok(()) = changes.changed(), if !asks => {}
                () = tokio::time::sleep(if asks { TICK } else { REST }) => {}
            }
            tokio::time::sleep(MOMENT).await;
        }
    }

    async fn records(&self) -> Vec<GoalRecord> {
        let mut records = Vec::new();
        for listed in list_all(&self.store, Listing::all()).await.expect("a list") {
            records.push(self.store.load(listed.id()).await.expect("a goal"));
        }
        records.sort_by_key(|record| record.goal.id);
        records
    }

    async fn phases(&self) -> Vec<(String, &'static str)> {
        let records = self.records().await.into_iter();
        records.map(|record| (record.goal.title, record.state.phase.name())).collect()
    }

    /// The log of all goals.
    async fn log(&self) -> Vec<(PoolSeq, Envelope)> {
        self.store.events_since(PoolSeq(0), usize::MAX >> 1).await.expect("the log")
    }
}

/// Runs a whole simulation in a runtime of its own, whose tasks end with it.
fn simulate<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(work)
}
