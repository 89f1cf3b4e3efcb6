//! What carries out the driver's decisions: makes the workspace, runs an attempt, runs the checks, publishes the work.
//!
//! The driver knows executors by [`Executors`] alone, so a test can drive a goal with scripted ones: no process, no git.
//! [`Real`] starts agents and runs git.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use towline_core::{AttemptNo, Delivery, Goal, GoalState};

use crate::engine::Shared;
use crate::news::{EventSender, StopLevel};
use crate::{attempt, baseline, checks, prepare, publish};

/// Work for an executor.
pub(crate) enum Job {
    /// Make the workspace and run the setup in it.
    Prepare(Box<prepare::PrepareJob>),
    /// Run an attempt to its end, or adopt the one that is running.
    Attempt(Box<attempt::AttemptJob>),
    /// Run the checks on the base, beside whatever else runs.
    Baseline(Box<baseline::BaselineJob>),
    /// Make the candidate and run the checks on it.
    Check(Box<checks::ChecksJob>),
    /// Give the work of a goal that has ended its branch.
    Publish(Box<(Goal, GoalState)>),
}

impl Job {
    /// What kind of work it is.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Prepare(_) => "prepare",
            Self::Attempt(_) => "attempt",
            Self::Baseline(_) => "baseline",
            Self::Check(_) => "check",
            Self::Publish(_) => "publish",
        }
    }

    /// The attempt that the work belongs to.
    pub(crate) fn attempt(&self) -> Option<AttemptNo> {
        match self {
            Self::Attempt(job) => Some(job.launch.attempt),
            Self::Check(job) => Some(job.attempt),
            Self::Prepare(_) | Self::Baseline(_) | Self::Publish(_) => None,
        }
    }
}

/// How the driver reaches an executor at work.
pub(crate) struct ExecutorControl {
    pub(crate) stop: watch::Receiver<StopLevel>,
    /// When the driver's lease expires, which bounds the life of an agent without an engine.
    pub(crate) lease_ends: watch::Receiver<Instant>,
    /// Answers and messages for a running agent.
    pub(crate) deliveries: mpsc::UnboundedReceiver<Delivery>,
}

/// Carries out jobs. An executor reports everything that happens through its sender and returns when the job is over.
pub(crate) trait Executors: Send + Sync {
    /// Carries out one job.
    fn run(
        &self,
        shared: Arc<Shared>,
        job: Job,
        sender: EventSender,
        control: ExecutorControl,
    ) -> BoxFuture<'static, ()>;

    /// Whether what they start are processes of this machine, which can be looked for.
    fn start_processes(&self) -> bool {
        true
    }
}

/// The executors that start processes and run git.
pub(crate) struct Real;

impl Executors for Real {
    fn run(
        &self,
        shared: Arc<Shared>,
        job: Job,
        sender: EventSender,
        control: ExecutorControl,
    ) -> BoxFuture<'static, ()> {
        match job {
            Job::Prepare(job) => prepare::run(shared, *job, sender, control.stop).boxed(),
            Job::Attempt(job) => attempt::run(shared, *job, sender, control).boxed(),
            Job::Baseline(job) => baseline::run(shared, *job, sender, control.stop).boxed(),
            Job::Check(job) => checks::run(shared, *job, sender, control).boxed(),
            Job::Publish(ended) => {
                let (goal, state) = *ended;
                publish::run(shared.home.clone(), goal, state, sender, control.stop).boxed()
            }
        }
    }
}
