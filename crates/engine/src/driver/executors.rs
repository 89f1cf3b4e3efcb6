//! What the driver starts: one executor per effect.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use towline_agent::UnknownPrice;
use towline_core::{AgentName, Closed, Effect, Launch, Reuse, SessionPlan, Telling, Usage};

use super::{Driver, mask_of};
use crate::executors::{ExecutorControl, Job};
use crate::link::Trail;
use crate::news::{Newsline, StopLevel};
use crate::{attempt, baseline, checks};

/// Checks that run on the base.
pub(super) struct RunningBaseline {
    stop: watch::Sender<StopLevel>,
    /// Closed once nothing is left of them.
    gone: watch::Receiver<()>,
}

impl Driver {
    /// Carries out an effect, most of them by an executor.
    pub(super) fn perform(&mut self, effect: Effect) {
        let job = match effect {
            Effect::Stop { .. } => return self.raise_stop(StopLevel::Stop),
            Effect::Deliver(delivery) => {
                // An agent that is gone has its end told, and the words are kept for the next one.
                let _ = self.deliveries.send(delivery);
                return;
            }
            Effect::RunBaseline { round } => return self.start_baseline(round),
            Effect::Prepare { .. } => Job::Prepare(Box::new(self.goal.clone())),
            Effect::Launch(launch) => {
                let attempts = self.state.attempts.iter().map(|attempt| attempt.id).chain([launch.id]);
                self.mask = mask_of(&self.shared, &self.goal, attempts);
                Job::Attempt(Box::new(self.job(launch)))
            }
            Effect::RunChecks { attempt, .. } => {
                let (goal, workspace) = (self.goal.clone(), self.state.workspace.clone());
                let summary = self.state.attempt(attempt).map_or_else(String::new, |made| made.text.clone());
                let trail = self.trail();
                let reuse = Reuse::after(self.state.verdicts());
                let last_seq = self.seq;
                Job::Check(Box::new(checks::Job {
                    goal,
                    workspace,
                    attempt,
                    summary,
                    reuse,
                    last_seq,
                    trail,
                }))
            }
        };
        self.start(job);
    }

    /// Publishes the work of a goal that has ended.
    pub(super) fn publish(&mut self) {
        self.start(Job::Publish(Box::new((self.goal.clone(), self.state.clone()))));
    }

    fn start(&mut self, job: Job) {
        self.stop = watch::Sender::new(StopLevel::Run);
        let (sender, deliveries) = mpsc::unbounded_channel();
        self.deliveries = sender;
        let line = Newsline::new(self.newsline.clone(), self.lease.generation, job.attempt());
        let (stop, lease_ends) = (self.stop.subscribe(), self.lease_ends.subscribe());
        let control = ExecutorControl { stop, lease_ends, deliveries };
        let base = self.baseline.as_ref().filter(|_| matches!(job, Job::Check(_)));
        let gone = base.map(|baseline| baseline.gone.clone());
        let shared = Arc::clone(&self.shared);
        self.work.spawn(async move {
            if let Some(mut gone) = gone {
                // Whatever runs on the base was stopped when the verdict became due. Nothing is ever sent: the wait ends when
                // the sender is dropped.
                let _ = gone.changed().await;
            }
            shared.executors.run(Arc::clone(&shared), job, line, control).await;
        });
    }

    /// Runs the checks on the base beside whatever else runs.
    fn start_baseline(&mut self, round: u32) {
        let setup_changes = self.state.workspace.as_ref().map(|workspace| workspace.setup_changes.clone());
        let job = baseline::Job {
            goal: self.goal.clone(),
            round,
            setup_changes: setup_changes.unwrap_or_default(),
        };
        let job = Job::Baseline(Box::new(job));
        let line = Newsline::new(self.newsline.clone(), self.lease.generation, None);
        let (stop, stopped) = watch::channel(StopLevel::Run);
        let (running, gone) = watch::channel(());
        // Nothing is ever delivered to checks.
        let deliveries = mpsc::unbounded_channel().1;
        let control = ExecutorControl { stop: stopped, lease_ends: self.lease_ends.subscribe(), deliveries };
        let work = self.shared.executors.run(Arc::clone(&self.shared), job, line, control);
        self.work.spawn(async move {
            work.await;
            drop(running);
        });
        self.baseline = Some(RunningBaseline { stop, gone });
    }

    /// Stops checks on the base that the goal does not wait for any more.
    pub(super) fn stop_unwanted_baseline(&self) {
        if !self.state.baseline.is_running() {
            self.stop_baseline(StopLevel::Stop);
        }
    }

    pub(super) fn stop_baseline(&self, level: StopLevel) {
        if let Some(baseline) = &self.baseline {
            baseline.stop.send_replace(level);
        }
    }

    /// Ends checks on the base that a killed engine left and nobody waits for.
    pub(super) async fn clear_left_baseline(&self) {
        if !self.state.baseline.is_running() {
            // What cannot be ended now is ended before the next verdict.
            let _ = baseline::clear(&self.shared.home, self.goal.id).await;
        }
    }

    /// Where to look for what the goal's attempts left.
    fn trail(&self) -> Trail {
        Trail::of(self.goal.id, &self.state, self.shared.clock.now())
    }

    /// Everything that an attempt needs to know.
    fn job(&self, launch: Launch) -> attempt::Job {
        let attempt = self.state.attempt(launch.attempt);
        let answered = self.state.questions.iter().filter_map(|question| match &question.closed {
            Some(Closed::Answered { at, telling: Telling::Told(_), .. }) => {
                Some((question.ask.request.clone()?, *at))
            }
            _ => None,
        });
        attempt::Job {
            goal: self.goal.clone(),
            workspace: self.state.workspace.clone(),
            checked: self.state.last_verdict().map(|verdict| verdict.tree.clone()),
            read_to: attempt.map_or(0, |attempt| attempt.read_to),
            // Earlier versions did not record it in the state.
            started: attempt.is_some_and(|attempt| attempt.started || attempt.turns > 0),
            started_at: attempt.map_or_else(|| self.shared.clock.now(), |attempt| attempt.started_at),
            trail: self.trail(),
            answered: answered.collect(),
            used_before: self.usage_of_session(&launch),
            unknown_price: self.unknown_price(),
            launch,
        }
    }

    /// The models that the configuration sets for the goal's agents.
    pub(super) fn models(&self) -> BTreeMap<AgentName, String> {
        let model = |agent: &AgentName| {
            let settings = self.shared.agents.get(agent)?;
            Some((agent.clone(), settings.model.clone()?))
        };
        self.goal.agents.iter().filter_map(model).collect()
    }

    /// A model without a price is worth a notice when a limit depends on it.
    fn unknown_price(&self) -> UnknownPrice {
        if self.state.budget.usd.is_some() { UnknownPrice::Report } else { UnknownPrice::Ignore }
    }

    /// What the resumed session used in earlier attempts, as the agent may report it again. It does not know of a turn that
    /// was killed.
    fn usage_of_session(&self, launch: &Launch) -> Usage {
        let SessionPlan::Resume(session) = &launch.session else { return Usage::default() };
        let earlier = self.state.attempts.iter().filter(|attempt| attempt.n != launch.attempt);
        let of_session = earlier.filter(|attempt| attempt.session.as_ref() == Some(session));
        of_session.fold(Usage::default(), |sum, attempt| match attempt.usage {
            used if used.spent().estimated => sum + Usage { cost: used.cost, ..Usage::default() },
            used => sum + used,
        })
    }
}
