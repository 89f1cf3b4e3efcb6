//! Agents that follow scripts, as processes that outlive the server that started them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::time::Instant;
use towline_core::{
    AgentEvent, Ask, AttemptNo, End, Event, GoalId, Incoming, MicroUsd, RawRef, Source, Usage,
};

use super::super::values::{ended, prepared, question, session, verdict};
use super::life::Life;
use crate::attempt::AttemptJob;
use crate::engine::Shared;
use crate::executors::{ExecutorControl, Executors, Job};
use crate::news::{DriverGone, EventSender, StopLevel, own};

/// The bytes of one event in the output of an agent.
const EVENT_BYTES: u64 = 10;

/// What the agent of a goal does in each attempt; the last step is repeated.
pub(super) type Script = Vec<Step>;

/// What an agent does in one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) takes: Duration,
    pub(super) cost: MicroUsd,
    pub(super) does: Does,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// Its work passes the checks.
    Pass,
    /// Its work fails the checks.
    Fail,
    Crash,
    /// It asks a person.
    Ask,
    /// It wants to wait for so long.
    Sleep(Duration),
    /// The quota is used up until this time.
    Limit(Timestamp),
}

/// A process on the machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    pub(super) starts: u32,
    ends_at: Instant,
    /// Whether somebody saw it end.
    pub(super) is_reaped: bool,
}

/// The processes of all attempts.
pub(super) struct Machine {
    scripts: BTreeMap<GoalId, Script>,
    processes: Mutex<BTreeMap<(GoalId, AttemptNo), Process>>,
}

impl Machine {
    pub(super) const fn new(scripts: BTreeMap<GoalId, Script>) -> Self {
        Self { scripts, processes: Mutex::new(BTreeMap::new()) }
    }

    pub(super) fn processes(&self) -> MutexGuard<'_, BTreeMap<(GoalId, AttemptNo), Process>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, goal: GoalId, attempt: AttemptNo) -> Step {
        let script = &self.scripts[&goal];
        script[(attempt.get() as usize - 1).min(script.len() - 1)]
    }

    /// Starts the process of an attempt.
    fn start(&self, goal: GoalId, attempt: AttemptNo) {
        let now = Instant::now();
        let ends_at = now + self.step(goal, attempt).takes;
        let mut processes = self.processes();
        let first = Process { starts: 0, ends_at, is_reaped: false };
        processes.entry((goal, attempt)).or_insert(first).starts += 1;
    }

    fn has_started(&self, goal: GoalId, attempt: AttemptNo) -> bool {
        self.processes().contains_key(&(goal, attempt))
    }

    fn ends_at(&self, goal: GoalId, attempt: AttemptNo) -> Instant {
        self.processes()[&(goal, attempt)].ends_at
    }

    fn reap(&self, goal: GoalId, attempt: AttemptNo) {
        if let Some(process) = self.processes().get_mut(&(goal, attempt)) {
            process.is_reaped = true;
        }
    }
}

/// Executors that start and watch these processes.
pub(super) struct Scripted {
    machine: Arc<Machine>,
    life: Life,
}

impl Scripted {
    pub(super) const fn new(machine: Arc<Machine>, life: Life) -> Self {
        Self { machine, life }
    }
}

impl Executors for Scripted {
    fn run(
        &self,
        shared: Arc<Shared>,
        job: Job,
        sender: EventSender,
        control: ExecutorControl,
    ) -> BoxFuture<'static, ()> {
        let (machine, life) = (Arc::clone(&self.machine), self.life.clone());
        async move {
            life.point().await;
            // A driver that is gone needs no report.
            let _ = match job {
                Job::Prepare(_) => sender.send_own(prepared()).await,
                Job::Attempt(job) => attempt(&shared, &machine, &life, *job, &sender, control).await,
                Job::Check(job) => {
                    let step = machine.step(job.goal.id, job.attempt);
                    let tree = format!("{}-{}", job.goal.title, job.attempt);
                    sender.send_own(verdict(&tree, step.does == Does::Pass)).await
                }
                Job::Baseline(_) | Job::Publish(_) => Ok(()),
            };
            life.point().await;
        }
        .boxed()
    }

    fn start_processes(&self) -> bool {
        false
    }
}

/// Starts the agent, or adopts the one that runs, and reports what it does.
async fn attempt(
    shared: &Shared,
    machine: &Machine,
    life: &Life,
    job: AttemptJob,
    sender: &EventSender,
    mut control: ExecutorControl,
) -> Result<(), DriverGone> {
    let (goal, attempt) = (job.goal.id, job.launch.attempt);
    let step = machine.step(goal, attempt);
    if !machine.has_started(goal, attempt) {
        life.point().await;
        shared.home.make(&shared.home.attempt(goal, attempt)).expect("the attempt's directory");
        machine.start(goal, attempt);
        life.point().await;
    }
    if !job.started {
        sender.send_and_wait(vec![own(sender.stamp(), Event::AttemptStarted { sandbox: None })]).await?;
    }
    let mut offset = 0;
    for event in [session(), AgentEvent::TurnStarted, used(step.cost)] {
        report(sender, &job, event, &mut offset).await?;
    }
    let stopped = tokio::select! {
        () = tokio::time::sleep_until(machine.ends_at(goal, attempt)) => false,
        _ = control.stop.wait_for(|level| *level > StopLevel::Run) => true,
    };
    life.live().await;
    if let Some(event) = last_words(step.does).filter(|_| !stopped) {
        report(sender, &job, event, &mut offset).await?;
    }
    life.point().await;
    machine.reap(goal, attempt);
    life.point().await;
    sender.send_and_wait(vec![own(sender.stamp(), ended(end_of(step.does, stopped)))]).await
}

/// Reports an event at its place in the output, unless it is recorded.
async fn report(
    sender: &EventSender,
    job: &AttemptJob,
    event: AgentEvent,
    offset: &mut u64,
) -> Result<(), DriverGone> {
    let raw = RawRef { offset: *offset, length: EVENT_BYTES };
    *offset += EVENT_BYTES;
    if raw.offset < job.read_to {
        return Ok(());
    }
    let event = Event::Agent { event };
    let incoming = Incoming { source: Source::Agent, raw: Some(raw), ..own(sender.stamp(), event) };
    sender.send_and_wait(vec![incoming]).await
}

fn used(cost: MicroUsd) -> AgentEvent {
    let used = Usage { cost, ..Usage::default() };
    AgentEvent::Usage { model: None, used, context_used: None, context_size: None }
}

fn last_words(does: Does) -> Option<AgentEvent> {
    match does {
        Does::Ask => Some(AgentEvent::Asked(Ask { request: None, ..question() })),
        Does::Sleep(duration) => Some(AgentEvent::SleepAsked { duration, reason: "a build".into() }),
        _ => None,
    }
}

fn end_of(does: Does, stopped: bool) -> End {
    match does {
        _ if stopped => End::Crashed { message: "it was stopped".into() },
        Does::Crash => End::Crashed { message: "exit code 1".into() },
        Does::Limit(until) => End::RateLimited { until: Some(until) },
        _ => End::Completed,
    }
}
