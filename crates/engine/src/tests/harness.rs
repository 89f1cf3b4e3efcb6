//! Engines whose executors are played by the test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout};
use towline_agent::AgentSettings;
use towline_core::{
    AgentEvent, AgentName, Delivery, Envelope, Event, Goal, GoalId, Incoming, RawRef, Seq, Source,
};
use towline_process::SupervisorProgram;
use towline_store::{GoalRecord, MemoryStore, Store};

use super::faulty_store::FaultyStore;
use super::values::{beginning, goal, prepared, session};
use crate::attempt;
use crate::clock::{Alarm, Clock};
use crate::engine::{Engine, EngineSettings, Shared};
use crate::executors::{ExecutorControl, Executors, Job, Real};
use crate::handle::Handle;
use crate::home::Home;
use crate::news::{DriverGone, EventSender, StopLevel, own};
use crate::opening::Opening;
use crate::resolver::{Resolved, Resolver, Unresolved};

/// How long a test waits for anything, in its own time.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Wall time that follows the paused time of the runtime, until the test sets it.
#[derive(Clone)]
struct PausedClock {
    since: Instant,
    set_by: Arc<Mutex<SignedDuration>>,
    was_set: Arc<Notify>,
}

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        let passed = beginning().checked_add(self.since.elapsed()).expect("in range");
        passed + *self.set_by.lock().expect("unharmed")
    }

    fn alarm(&self) -> std::io::Result<Box<dyn Alarm>> {
        Ok(Box::new(self.clone()))
    }
}

impl Alarm for PausedClock {
    fn ring(&mut self, at: Option<Timestamp>) -> BoxFuture<'_, ()> {
        async move {
            let Some(at) = at else { return std::future::pending().await };
            let left = Duration::try_from(at.duration_since(self.now())).unwrap_or_default();
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                () = self.was_set.notified() => {}
            }
        }
        .boxed()
    }
}

/// The same for every goal.
struct OneProject(Resolved);

impl Resolver for OneProject {
    fn resolve(&self, _goal: &Goal) -> Result<Resolved, Unresolved> {
        Ok(self.0.clone())
    }
}

/// A state directory that engines share.
pub(super) struct World {
    pub(super) home: Home,
    pub(super) store: Arc<FaultyStore>,
    clock: Arc<PausedClock>,
    _dir: TempDir,
}

impl World {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let home = Home::create(dir.path().join("state")).expect("a state directory");
        let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
        let clock =
            Arc::new(PausedClock { since: Instant::now(), set_by: Arc::default(), was_set: Arc::default() });
        Self { home, store, clock, _dir: dir }
    }

    /// A state directory, an engine, and a goal that it has just started.
    pub(super) async fn with_goal() -> (Self, PlayedEngine, Handle) {
        let world = Self::new();
        let engine = world.engine();
        let handle = engine.start(goal(1)).await;
        (world, engine, handle)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Sets the system's clock.
    pub(super) fn set_clock(&self, by: SignedDuration) {
        *self.clock.set_by.lock().expect("unharmed") += by;
        self.clock.was_set.notify_waiters();
    }

    /// An engine with as many slots as a test can need.
    pub(super) fn engine(&self) -> PlayedEngine {
        self.engine_with_slots(8)
    }

    pub(super) fn engine_with_slots(&self, slots: usize) -> PlayedEngine {
        self.open(self.settings(slots), Attempts::Played)
    }

    /// An engine whose agents have run already: attempts are read from what is in their directories.
    pub(super) fn engine_that_reads(&self, agents: BTreeMap<AgentName, AgentSettings>) -> PlayedEngine {
        let resolver = Arc::new(OneProject(Resolved { agents, ..Resolved::default() }));
        self.open(EngineSettings { resolver, ..self.settings(8) }, Attempts::Real)
    }

    /// An engine whose goals belong to these projects.
    pub(super) fn engine_of(&self, resolver: Arc<dyn Resolver>) -> PlayedEngine {
        self.open(EngineSettings { resolver, ..self.settings(8) }, Attempts::Played)
    }

    fn open(&self, settings: EngineSettings, attempts: Attempts) -> PlayedEngine {
        // Cannot grow: one entry for each effect of the test's goals.
        let (begun, work) = mpsc::unbounded_channel();
        let engine = Engine::open_with(settings, Box::new(Played { begun, attempts })).expect("an engine");
        PlayedEngine { engine, work, home: self.home.clone() }
    }

    pub(super) fn settings(&self, slots: usize) -> EngineSettings {
        EngineSettings {
            home: self.home.clone(),
            store: Arc::clone(&self.store) as Arc<dyn Store>,
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            supervisor: SupervisorProgram { path: "/nowhere".into(), args: Vec::new(), shown: None },
            resolver: Arc::new(OneProject(Resolved::default())),
            slots,
        }
    }

    pub(super) async fn record(&self, goal: GoalId) -> GoalRecord {
        self.store.load(goal).await.expect("the goal")
    }

    /// Everything that is recorded about the goal.
    pub(super) async fn log(&self, goal: GoalId) -> Vec<Event> {
        self.envelopes(goal).await.into_iter().map(|envelope| envelope.event).collect()
    }

    pub(super) async fn envelopes(&self, goal: GoalId) -> Vec<Envelope> {
        self.store.events(goal, Seq(0), usize::MAX >> 1).await.expect("the log")
    }
}

/// An engine that hands its jobs to the test.
pub(super) struct PlayedEngine {
    pub(super) engine: Engine,
    work: mpsc::UnboundedReceiver<Work>,
    home: Home,
}

impl PlayedEngine {
    pub(super) async fn start(&self, goal: Goal) -> Handle {
        self.engine.start(goal).await.expect("the goal starts")
    }

    /// Resumes a goal that no engine drives.
    pub(super) async fn resume(&self, goal: GoalId) -> Handle {
        self.engine.resume(goal, None).await.expect("the goal goes on")
    }

    /// Ends the engine as the death of its process would.
    pub(super) async fn crash(self, handle: Handle) {
        handle.crash().await;
    }

    /// The next job.
    pub(super) async fn next(&mut self) -> Work {
        let work = timeout(PATIENCE, self.work.recv()).await.expect("a job in time").expect("an engine");
        if let Job::Attempt(job) = &work.job {
            // An attempt that has begun has a directory.
            let dir = self.home.attempt(job.goal.id, job.launch.attempt);
            self.home.make(&dir).expect("the attempt's directory");
        }
        work
    }

    /// Whether there is a job now.
    pub(super) fn is_idle(&self) -> bool {
        self.work.is_empty()
    }

    /// The workspace is made.
    pub(super) async fn prepare(&mut self) {
        let work = self.next().await;
        assert!(matches!(work.job, Job::Prepare(_)), "not a preparation");
        work.finish(prepared()).await;
    }

    /// The next attempt, in which an agent has begun to work.
    pub(super) async fn attempt(&mut self) -> Work {
        let work = self.next().await;
        assert!(matches!(work.job, Job::Attempt(_)), "not an attempt");
        work.report(Event::AttemptStarted).await;
        work.emit(session()).await;
        work.emit(AgentEvent::TurnStarted).await;
        work
    }

    /// The first attempt of a goal that has just been started.
    pub(super) async fn first_attempt(&mut self) -> Work {
        self.prepare().await;
        self.attempt().await
    }

    /// The checks, as soon as they are to run.
    pub(super) async fn checks(&mut self) -> Work {
        let work = self.next().await;
        assert!(matches!(work.job, Job::Check(_)), "not checks");
        work
    }

    /// The goal has ended, and its work gets no branch.
    pub(super) async fn publish(&mut self) {
        let work = self.next().await;
        assert!(matches!(work.job, Job::Publish(_)), "not the end of a goal");
    }

    /// The record of a goal that has ended.
    pub(super) async fn end_of(&mut self, handle: Handle) -> GoalRecord {
        self.publish().await;
        handle.result().await.expect("a result")
    }
}

/// Cancels the goal; it is recorded when this returns.
pub(super) async fn cancel(handle: &Handle) {
    handle.steerer().send(Event::CancelRequested).await.expect("a driver").expect("it can be cancelled");
}

/// What an attempt is to do.
pub(super) fn attempt_of(work: &Work) -> &attempt::AttemptJob {
    let Job::Attempt(job) = &work.job else { panic!("not an attempt") };
    job
}

/// A job that the test does.
pub(super) struct Work {
    pub(super) job: Job,
    pub(super) control: ExecutorControl,
    sender: EventSender,
    /// The executor returns when this is dropped.
    _over: oneshot::Sender<()>,
}

impl Work {
    /// Reports something that Towline did; it is recorded when this returns.
    pub(super) async fn report(&self, event: Event) {
        self.try_to_report(event).await.expect("a driver");
    }

    pub(super) async fn try_to_report(&self, event: Event) -> Result<(), DriverGone> {
        self.sender.send_and_wait(vec![own(self.sender.stamp(), event)]).await
    }

    /// Reports an event of the agent.
    pub(super) async fn emit(&self, event: AgentEvent) {
        self.sender.send_and_wait(vec![self.incoming(event, None)]).await.expect("a driver");
    }

    /// Sends an event of the agent, without waiting until it is recorded.
    pub(super) async fn send(&self, event: AgentEvent) {
        self.sender.send(vec![self.incoming(event, None)]).await.expect("a driver");
    }

    /// Waits until everything that was sent is recorded.
    pub(super) async fn recorded(&self) {
        self.sender.send_and_wait(Vec::new()).await.expect("a driver");
    }

    /// Reports an event of the agent at this place of its output.
    pub(super) async fn emit_at(&self, event: AgentEvent, raw: RawRef) {
        self.sender.send_and_wait(vec![self.incoming(event, Some(raw))]).await.expect("a driver");
    }

    fn incoming(&self, event: AgentEvent, raw: Option<RawRef>) -> Incoming {
        let event = Event::Agent { event };
        Incoming { source: Source::Agent, raw, ..own(self.sender.stamp(), event) }
    }

    /// Reports the last thing and returns.
    pub(super) async fn finish(self, event: Event) {
        self.report(event).await;
    }

    /// Waits until the job is to stop.
    pub(super) async fn stopped(&mut self) -> StopLevel {
        let stop = self.control.stop.wait_for(|level| *level > StopLevel::Run);
        *timeout(PATIENCE, stop).await.expect("a stop in time").expect("a driver")
    }

    /// The next answer or message for the agent.
    pub(super) async fn delivery(&mut self) -> Delivery {
        timeout(PATIENCE, self.control.deliveries.recv()).await.expect("in time").expect("a driver")
    }
}

/// Who runs attempts.
enum Attempts {
    Played,
    Real,
}

/// Executors that hand jobs to the test.
struct Played {
    begun: mpsc::UnboundedSender<Work>,
    attempts: Attempts,
}

impl Executors for Played {
    fn run(
        &self,
        shared: Arc<Shared>,
        job: Job,
        sender: EventSender,
        control: ExecutorControl,
    ) -> BoxFuture<'static, ()> {
        if let (Job::Attempt(attempt), Attempts::Real) = (&job, &self.attempts) {
            keep_opening(&shared, attempt);
            return Real.run(shared, job, sender, control);
        }
        let (over, is_over) = oneshot::channel();
        let begun = self.begun.send(Work { job, control, sender, _over: over });
        async move {
            if begun.is_ok() {
                // An error means that the test is done with it.
                let _ = is_over.await;
            }
        }
        .boxed()
    }
}

/// What whoever started the agent left beside its output.
fn keep_opening(shared: &Shared, job: &attempt::AttemptJob) {
    let dir = shared.home.attempt(job.goal.id, job.launch.attempt);
    let Some(settings) = job.resolved.agents.get(&job.launch.agent).cloned() else { return };
    let workspace = job.workspace.as_ref().map(|workspace| workspace.path.clone()).unwrap_or_default();
    let pricing = attempt::pricing(&settings, job.unknown_price);
    let launch = job.launch.clone();
    let opening = Opening::new(&dir, settings, launch, workspace, job.used_before, pricing, None);
    opening.keep(&dir).expect("written");
}
