//! What the driver starts: one executor per effect.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use towline_agent::UnknownPrice;
use towline_core::{
    Axis, Closed, DeliveryState, Effect, End, Event, Generation, Judging, Launch, LaunchProblem, Phase,
    Reuse, SessionPlan, StopWhy, Stopping, Usage,
};
use towline_mask::Mask;

use super::Driver;
use crate::engine::TRACES;
use crate::error::EngineError;
use crate::executors::{ExecutorControl, Job};
use crate::judge::{self, JudgeMeans, LeftByJudge};
use crate::news::{EventSender, StopLevel};
use crate::reads::apart;
use crate::resolver::{ProjectRead, Resolved};
use crate::runs::{RunState, Trail};
use crate::secrecy::add_token;
use crate::{attempt, baseline, checks, interrupted, prepare, runs, supervisors};

/// Of a driver that is a goal's first: nothing ran for the goal before.
const FIRST: Generation = Generation(1);

/// Checks that run on the base.
pub(super) struct RunningBaseline {
    stop: watch::Sender<StopLevel>,
    /// Closed once nothing is left of them.
    gone: watch::Receiver<()>,
}

impl Driver {
    /// Carries out an effect, most of them by an executor. What belongs to the goal's project is read at this moment.
    pub(super) fn perform(&mut self, effect: Effect) {
        self.trace("effect", effect.key());
        match effect {
            Effect::Stop { .. } => self.raise_stop(self.stop_level()),
            Effect::Deliver(delivery) => {
                // If the agent is gone, the message becomes part of the next prompt.
                let _ = self.deliveries.send(delivery);
            }
            effect => match self.resolve() {
                Ok(resolved) => self.begin_work(effect, resolved),
                Err(reason) => self.refuse_work(effect, reason),
            },
        }
    }

    /// How urgently what runs has to end.
    fn stop_level(&self) -> StopLevel {
        match &self.state.phase {
            Phase::Stopping(Stopping {
                why: StopWhy::Budget { axis: Axis::Usd | Axis::Tokens } | StopWhy::SharedBudget,
                ..
            }) => StopLevel::StopSpending,
            _ => StopLevel::Stop,
        }
    }

    fn begin_work(&mut self, effect: Effect, resolved: Arc<Resolved>) {
        let goal = self.goal.clone();
        let job = match effect {
            Effect::Stop { .. } | Effect::Deliver(_) => return,
            Effect::RunBaseline { round } => return self.start_baseline(round, resolved),
            Effect::Prepare { .. } => Job::Prepare(Box::new(prepare::PrepareJob { goal, resolved })),
            Effect::Launch(launch) => Job::Attempt(Box::new(self.job(launch, resolved))),
            Effect::RunChecks { attempt, .. } => Job::Check(Box::new(checks::ChecksJob {
                goal,
                resolved,
                workspace: self.state.workspace.clone(),
                attempt,
                summary: self.state.attempt(attempt).map_or_else(String::new, |made| made.text.clone()),
                base: self.state.baseline.checks().to_vec(),
                reuse: Reuse::after(self.state.verdicts()),
                last_seq: self.seq,
                means: JudgeMeans::of(&self.goal, &self.state, attempt),
            })),
        };
        self.start(job);
    }

    /// Reports that an effect cannot be carried out, because the configuration of the goal's project cannot be used.
    fn refuse_work(&mut self, effect: Effect, error: String) {
        self.trace("configuration", &error);
        let sender = |attempt| EventSender::new(self.sender.clone(), self.lease.generation, attempt);
        let (sender, event) = match effect {
            Effect::Stop { .. } | Effect::Deliver(_) => return,
            Effect::RunBaseline { round } => (sender(None), Event::BaselineUnknown { round, reason: error }),
            Effect::Prepare { .. } => (sender(None), Event::Unconfigured { error }),
            Effect::RunChecks { attempt, .. } => (sender(Some(attempt)), Event::Unconfigured { error }),
            Effect::Launch(Launch { attempt, .. }) => {
                let (sender, trail) = (sender(Some(attempt)), Trail::of(&self.goal, &self.shared.supervisor));
                let dir = self.shared.home.attempt(self.goal.id, attempt);
                let problem = LaunchProblem::Configuration { message: error };
                self.work.spawn(async move { attempt::refuse(&dir, &trail, &sender, problem).await });
                return;
            }
        };
        self.work.spawn(async move {
            // A driver that is gone needs no report.
            let _ = sender.send_own(event).await;
        });
    }

    /// The project's configuration as it is now, or why it cannot be used. Its secrets are hidden in either case.
    fn resolve(&mut self) -> Result<Arc<Resolved>, String> {
        let read = || ProjectRead::of(self.shared.resolver.as_ref(), &self.goal);
        let project = self.project.clone().unwrap_or_else(|| apart(read));
        self.hide_secrets_of(&project);
        project.problem.map_or(Ok(project.resolved), Err)
    }

    /// Hides these secrets from now on, those in the files that the goal copies, and the tokens of its attempts.
    pub(super) fn hide_secrets_of(&mut self, project: &ProjectRead) {
        self.secrets.extend(&project.resolved.secrets());
        self.secrets.extend(&project.copied);
        for attempt in &self.state.attempts {
            add_token(&mut self.secrets, &self.shared.secret, attempt.id);
        }
        self.mask = Arc::new(Mask::new(&self.secrets));
    }

    /// Publishes the work of a goal that has ended.
    pub(super) fn publish(&mut self) {
        self.start(Job::Publish(Box::new((self.goal.clone(), self.state.clone()))));
    }

    fn start(&mut self, job: Job) {
        self.stop = watch::Sender::new(StopLevel::Run);
        let (sender, deliveries) = mpsc::unbounded_channel();
        self.deliveries = sender;
        let sender = EventSender::new(self.sender.clone(), self.lease.generation, job.attempt());
        let (stop, lease_ends) = (self.stop.subscribe(), self.lease_ends.subscribe());
        let control = ExecutorControl { stop, lease_ends, deliveries };
        let base = self.baseline.as_ref().filter(|_| matches!(job, Job::Check(_)));
        let gone = base.map(|baseline| baseline.gone.clone());
        let shared = Arc::clone(&self.shared);
        let (goal, lease, name) = (self.goal.id.short(), self.lease.generation.0, job.name());
        self.trace("executor begins", name);
        self.work.spawn(async move {
            if let Some(mut gone) = gone {
                // Whatever runs on the base was stopped when the verdict became due. Nothing is ever sent: the wait ends when
                // the sender is dropped.
                let _ = gone.changed().await;
            }
            shared.executors.run(Arc::clone(&shared), job, sender, control).await;
            tracing::debug!(target: TRACES, goal, lease, "executor ends: {name}");
        });
    }

    /// Runs the checks on the base beside whatever else runs.
    fn start_baseline(&mut self, round: u32, resolved: Arc<Resolved>) {
        let setup_changes = self.state.workspace.as_ref().map(|workspace| workspace.setup_changes.clone());
        let job = baseline::BaselineJob {
            goal: self.goal.clone(),
            resolved,
            round,
            setup_changes: setup_changes.unwrap_or_default(),
        };
        let job = Job::Baseline(Box::new(job));
        let sender = EventSender::new(self.sender.clone(), self.lease.generation, None);
        let (stop, stopped) = watch::channel(StopLevel::Run);
        let (running, gone) = watch::channel(());
        // Nothing is ever delivered to checks.
        let deliveries = mpsc::unbounded_channel().1;
        let control = ExecutorControl { stop: stopped, lease_ends: self.lease_ends.subscribe(), deliveries };
        let work = self.shared.executors.run(Arc::clone(&self.shared), job, sender, control);
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

    /// Ends checks on the base that a killed engine left and this goal does not wait for.
    pub(super) async fn clear_left_baseline(&self) {
        if !self.state.baseline.is_running() {
            // What cannot be ended now is ended before the next verdict.
            let _ = baseline::clear(&self.shared.home, self.goal.id).await;
        }
    }

    /// Ends leftovers of a killed engine that cannot be adopted: all that runs for the goal, but for its living attempt, the check that
    /// its log names, and setup, in which no agent has had a hand.
    pub(super) async fn end_unexpected(&mut self) -> Result<(), EngineError> {
        let is_first = self.lease.generation == FIRST && self.ended_for.is_none();
        if is_first || !self.shared.executors.start_processes() {
            return Ok(());
        }
        let attempt = match &self.state.phase {
            Phase::Preparing => return Ok(()),
            Phase::Stopping(stopping) => stopping.attempt,
            phase => phase.living_attempt(),
        };
        let expected = match (&self.state.phase, attempt) {
            (Phase::Checking { .. }, _) => {
                let interrupted = interrupted::find(&self.shared, &self.goal, self.seq).await;
                interrupted.map(|interrupted| interrupted.supervisor())
            }
            (_, Some(attempt)) => {
                let dir = self.shared.home.attempt(self.goal.id, attempt);
                if RunState::is_left(&dir) {
                    // One that is just starting has not announced itself yet.
                    let _ = towline_process::connect(&dir).await;
                }
                towline_process::supervisor_process(&dir).ok().flatten()
            }
            _ => None,
        };
        self.was_cut_off = self.state.phase.living_attempt().is_some() && expected.is_none();
        let ended = supervisors::end_others(&self.shared, self.goal.id, expected).await;
        if expected.is_none() {
            // A supervisor that was killed may have left processes that nothing else names. What cannot be ended is reported before
            // the next attempt or verdict.
            let _ = runs::sweep(&Trail::of(&self.goal, &self.shared.supervisor)).await;
        }
        ended.map_err(|source| EngineError::Processes { goal: self.goal.id, source })
    }

    /// Everything that an attempt needs to know.
    fn job(&self, launch: Launch, resolved: Arc<Resolved>) -> attempt::AttemptJob {
        let attempt = self.state.attempt(launch.attempt);
        let answered = self.state.questions.iter().filter_map(|question| match &question.closed {
            Some(Closed::Answered { at, delivery: DeliveryState::Delivered(_), .. }) => {
                Some((question.ask.request.clone()?, *at))
            }
            _ => None,
        });
        attempt::AttemptJob {
            goal: self.goal.clone(),
            resolved,
            workspace: self.state.workspace.clone(),
            checked: self.state.last_verdict().map(|verdict| verdict.tree.clone()),
            read_to: attempt.map_or(0, |attempt| attempt.read_to),
            // Earlier versions did not record it in the state.
            started: attempt.is_some_and(|attempt| attempt.started || attempt.turns > 0),
            started_at: attempt.map_or_else(|| self.shared.clock.now(), |attempt| attempt.started_at),
            answered: answered.collect(),
            used_before: match &launch.session {
                SessionPlan::Resume(session) => {
                    self.state.used_in_session(&self.goal, session, Some(launch.attempt))
                }
                SessionPlan::Fresh(_) => Usage::default(),
            },
            // A model without a price is worth a notice when a limit depends on it.
            unknown_price: match self.state.budget.usd {
                Some(_) => UnknownPrice::Report,
                None => UnknownPrice::Ignore,
            },
            launch,
            judge: None,
        }
    }

    /// Records what judges used that a killed engine was listening to, and a limit that they ran into, from their logs. Nothing of
    /// them is left.
    pub(super) async fn close_left_judges(&mut self) -> Result<(), EngineError> {
        let running: Vec<Judging> = self.state.running_judges().cloned().collect();
        for judging in running {
            let run_dir = judge::logs_of(&self.shared, &self.goal, &judging);
            let left = tokio::task::spawn_blocking(move || judge::left_by(run_dir)).await.ok().flatten();
            let end = left.as_ref().map_or(End::Lost, |left| left.end.clone());
            let used = left.map(|LeftByJudge { model, used, .. }| {
                // The logs may have been removed in part; what was recorded stays spent.
                let used = if used.tokens() < judging.usage.tokens() { judging.usage } else { used };
                Event::JudgeUsed { n: judging.n, model, used }
            });
            let ended = Event::JudgeEnded { n: judging.n, end };
            let news = used.into_iter().chain([ended]).map(|event| self.own(event)).collect();
            self.take_in(news).await?;
        }
        Ok(())
    }
}
