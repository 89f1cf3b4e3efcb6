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
    AgentEvent, AgentName, Delivery, End, Envelope, Event, Goal, GoalId, GoalState, Incoming, RawRef, Seq,
    Source,
};
use towline_process::SupervisorProgram;
use towline_store::{GoalRecord, Store, WorkerName};

use super::faulty_store::FaultyStore;
use super::rules::TestRules;
use super::values::{beginning, ended, goal, prepared, session, verdict};
use crate::attempt;
use crate::clock::{Alarm, Clock, SystemClock};
use crate::engine::{Dispatching, Engine, EngineSettings, Shared};
use crate::executors::{ExecutorControl, Executors, Job, Real};
use crate::handle::Handle;
use crate::home::Home;
use crate::news::{DriverGone, EventSender, StopLevel, own};
use crate::opening::Opening;
use crate::resolver::{Resolved, Resolver, Unresolved};
use crate::rules::PoolRules;

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
        let store = Arc::<FaultyStore>::default();
        let clock =
            Arc::new(PausedClock { since: Instant::now(), set_by: Arc::default(), was_set: Arc::default() });
        Self { home, store, clock, _dir: dir }
    }

    /// A state directory, an engine, and the first goal, which it has just started.
    pub(super) async fn with_goal() -> (Self, PlayedEngine, Handle) {
        Self::with(goal(1)).await
    }

    /// The same, and its first attempt, which works.
    pub(super) async fn at_work() -> (Self, PlayedEngine, Work, Handle) {
        let (world, mut engine, handle) = Self::with_goal().await;
        let work = engine.first_attempt().await;
        (world, engine, work, handle)
    }

    /// A state directory, an engine, and this goal, which it has just started.
    pub(super) async fn with(goal: Goal) -> (Self, PlayedEngine, Handle) {
        let world = Self::new();
        let engine = world.engine();
        let handle = engine.start(goal).await;
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

    /// The next engine, which resumes the first goal.
    pub(super) async fn resumed(&self) -> (PlayedEngine, Handle) {
        let engine = self.engine();
        let handle = engine.resume(goal(1).id).await;
        (engine, handle)
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

    /// An engine that runs the goals of the state directory by these rules.
    pub(super) fn pool(&self, rules: &Arc<TestRules>) -> PlayedEngine {
        let dispatch = Dispatching::Pool(Arc::clone(rules) as Arc<dyn PoolRules>);
        let resolver = Arc::clone(rules) as Arc<dyn Resolver>;
        self.open(EngineSettings { dispatch, resolver, ..self.settings(0) }, Attempts::Played)
    }

    /// The same on a database, by the clock of the system.
    pub(super) fn pool_on(&self, store: Arc<dyn Store>, rules: &Arc<TestRules>) -> PlayedEngine {
        let dispatch = Dispatching::Pool(Arc::clone(rules) as Arc<dyn PoolRules>);
        let clock = Arc::new(SystemClock);
        self.open(EngineSettings { dispatch, store, clock, ..self.settings(0) }, Attempts::Played)
    }

    /// Adds a goal as another process would, and has the pool notice the write.
    pub(super) async fn add(&self, goal: Goal) {
        let goal = Goal { created_at: self.now(), ..goal };
        let created = Envelope::new(goal.id, self.now(), Source::Operator, Event::Created);
        self.store.create(&goal, &GoalState::new(&goal), created).await.expect("created");
        self.write();
    }

    /// Writes to the database as another process would.
    pub(super) fn write(&self) {
        let log = self.home.root().join("towline.db-wal");
        std::fs::write(log, "x").expect("written");
    }

    /// Waits until the goal is in a phase by this name.
    pub(super) async fn phase(&self, number: u32, name: &str) {
        let reached = async {
            while self.record(goal(number).id).await.state.phase.name() != name {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if timeout(PATIENCE, reached).await.is_err() {
            panic!("goal {number} is {:?}", self.record(goal(number).id).await.state.phase);
        }
    }

    /// Waits until everything that is under way has come to a rest.
    pub(super) async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(2)).await;
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
            dispatch: Dispatching::Given { slots },
        }
    }

    pub(super) async fn record(&self, goal: GoalId) -> GoalRecord {
        self.store.load(goal).await.expect("the goal")
    }

    /// Another worker takes the first goal from the engine that holds it.
    pub(super) async fn take_lease(&self) -> WorkerName {
        let holder = self.record(goal(1).id).await.lease.expect("a lease").worker;
        let (other, now) = (WorkerName("other".into()), self.now());
        let until = now + Duration::from_secs(60);
        self.store.claim(goal(1).id, &other, now, until, Some(&holder)).await.expect("claimed");
        other
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

    /// The next attempt of a goal, which is this one. Workspaces are made and ended goals published meanwhile.
    pub(super) async fn attempt_of(&mut self, number: u32) -> Work {
        loop {
            let work = self.next().await;
            match &work.job {
                Job::Prepare(_) => work.finish(prepared()).await,
                Job::Publish(_) => {}
                Job::Attempt(_) => {
                    assert_eq!(goal_of(&work), goal(number).id, "an attempt of another goal");
                    work.report(Event::AttemptStarted { sandbox: None }).await;
                    work.emit(session()).await;
                    return work;
                }
                _ => panic!("not an attempt"),
            }
        }
    }

    /// The attempt ends, and its work passes the checks.
    pub(super) async fn complete(&mut self, attempt: Work) {
        let goal = goal_of(&attempt);
        attempt.finish(ended(End::Completed)).await;
        loop {
            let work = self.next().await;
            match &work.job {
                Job::Check(_) if goal_of(&work) == goal => {
                    return work.finish(verdict("t1", true)).await;
                }
                Job::Publish(_) => {}
                _ => panic!("not the checks"),
            }
        }
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
        work.report(Event::AttemptStarted { sandbox: None }).await;
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

    /// The attempt completes, and the checks on its work give this verdict.
    pub(super) async fn judge(&mut self, attempt: Work, tree: &str, met: bool) {
        attempt.finish(ended(End::Completed)).await;
        self.checks().await.finish(verdict(tree, met)).await;
    }

    /// The attempt completes, its work passes the checks, and the goal ends.
    pub(super) async fn pass(&mut self, attempt: Work, handle: Handle) -> GoalRecord {
        self.judge(attempt, "t1", true).await;
        self.end_of(handle).await
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

/// What Towline has reported.
pub(super) fn notices(log: &[Event]) -> Vec<&str> {
    let notices = log.iter().filter_map(|event| match event {
        Event::Notice { text } => Some(text.as_str()),
        _ => None,
    });
    notices.collect()
}

/// The goal that a job is done for.
pub(super) fn goal_of(work: &Work) -> GoalId {
    match &work.job {
        Job::Prepare(job) => job.goal.id,
        Job::Attempt(job) => job.goal.id,
        Job::Check(job) => job.goal.id,
        Job::Baseline(job) => job.goal.id,
        Job::Publish(ended) => ended.0.id,
    }
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
    Opening::new(&dir, job, settings, None).keep(&dir).expect("written");
}
