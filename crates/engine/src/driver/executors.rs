//! What the driver starts: one executor per effect.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use towline_core::{Closed, Effect, Launch, MicroUsd, SessionPlan, Telling, Usage};

use super::{Driver, mask_of};
use crate::link::Trail;
use crate::news::StopLevel;
use crate::{attempt, checks, prepare};

impl Driver {
    /// Starts the executor of an effect.
    pub(super) fn perform(&mut self, effect: Effect) {
        if !matches!(effect, Effect::Stop { .. } | Effect::Deliver(_)) {
            self.stop = watch::Sender::new(StopLevel::Run);
        }
        let shared = Arc::clone(&self.shared);
        let stop = self.stop.subscribe();
        match effect {
            Effect::Prepare { .. } => {
                let line = self.line(None);
                self.work.spawn(prepare::run(shared, self.goal.clone(), line, stop));
            }
            Effect::Launch(launch) => {
                let attempts = self.state.attempts.iter().map(|attempt| attempt.id).chain([launch.id]);
                self.mask = mask_of(&shared, &self.goal, attempts);
                let line = self.line(Some(launch.attempt));
                let (sender, deliveries) = mpsc::unbounded_channel();
                self.deliveries = sender;
                let reins = attempt::Reins { stop, lease_until: self.lease_until.subscribe(), deliveries };
                self.work.spawn(attempt::run(shared, self.job(launch), line, reins));
            }
            Effect::Deliver(delivery) => {
                // An agent that is gone has its end told, and the words are kept for the next one.
                let _ = self.deliveries.send(delivery);
            }
            Effect::RunChecks { attempt } => {
                let line = self.line(Some(attempt));
                let workspace = self.state.workspace.clone();
                let (goal, trail) = (self.goal.clone(), self.trail());
                self.work.spawn(checks::run(shared, goal, workspace, attempt, trail, line, stop));
            }
            Effect::Stop { .. } => self.raise_stop(StopLevel::Stop),
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
            turns: attempt.map_or(0, |attempt| attempt.turns),
            started_at: attempt.map_or_else(|| self.shared.clock.now(), |attempt| attempt.started_at),
            trail: self.trail(),
            answered: answered.collect(),
            cost_before: self.cost_of_session(&launch),
            launch,
        }
    }

    /// The cost of the resumed session in earlier attempts.
    fn cost_of_session(&self, launch: &Launch) -> MicroUsd {
        let SessionPlan::Resume(session) = &launch.session else { return MicroUsd::default() };
        let earlier = self.state.attempts.iter().filter(|attempt| attempt.n != launch.attempt);
        let of_session = earlier.filter(|attempt| attempt.session.as_ref() == Some(session));
        of_session.fold(Usage::default(), |sum, attempt| sum + attempt.usage).cost
    }
}
