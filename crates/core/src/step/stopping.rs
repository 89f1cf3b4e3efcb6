//! Ending what runs for a goal: an agent, checks or the setup, and what follows once nothing of it is left.

use super::{Illegal, Stepper, attempt_lives, with_end};
use crate::effect::{checks_key, launch_key, prepare_key, stop_key};
use crate::{AttemptNo, Axis, Effect, End, Event, Incoming, PauseReason, Phase, StopWhy, Stopping, Timeout};

/// What runs for a goal: at most one thing at a time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Runs {
    Setup { round: u32 },
    Agent(AttemptNo),
    Checks { attempt: AttemptNo, round: u32 },
}

impl Runs {
    /// The key of the effect that began it.
    pub(super) fn key(self) -> String {
        match self {
            Self::Setup { round } => prepare_key(round),
            Self::Agent(attempt) => launch_key(attempt),
            Self::Checks { attempt, round } => checks_key(attempt, round),
        }
    }
}

impl Stepper<'_> {
    /// While something is being ended, only news of it counts; nothing else may start.
    pub(super) fn apply_while_stopping(
        &mut self,
        stopping: &Stopping,
        event: &Event,
        incoming: &Incoming,
    ) -> Result<(), Illegal> {
        let work = self.work_of(stopping);
        let because = |why| Phase::Stopping(Stopping { attempt: stopping.attempt, why });
        match (work, event) {
            (_, Event::CancelRequested) => self.state.phase = because(StopWhy::Cancel),
            // Cancelling wins over a pause, and a pause over every other reason.
            (_, Event::PauseRequested { .. }) if stopping.why == StopWhy::Cancel => {}
            // A person's pause wins over a shutdown, after which a server resumes the goal.
            (_, Event::PauseRequested { reason: PauseReason::Shutdown })
                if stopping.why == (StopWhy::Pause { reason: PauseReason::Operator }) => {}
            (_, Event::PauseRequested { reason }) => {
                self.state.phase = because(StopWhy::Pause { reason: *reason });
            }
            (_, Event::ResumeRequested) if matches!(stopping.why, StopWhy::Pause { .. }) => {
                self.state.phase = because(StopWhy::Resume);
            }
            (Runs::Setup { .. }, Event::Prepared { workspace, .. }) => {
                self.state.workspace = Some(workspace.clone());
                self.after_stop(work, &stopping.why);
            }
            (
                Runs::Setup { .. },
                Event::PrepareFailed { .. }
                | Event::RepositoryGone { .. }
                | Event::Unconfigured { .. }
                | Event::Stopped,
            ) => self.after_stop(work, &stopping.why),
            (Runs::Agent(_), Event::AnswerDelivered { question, words }) => {
                return self.answer_delivered(*question, *words);
            }
            (Runs::Agent(_), Event::AttemptStarted { sandbox }) => self.attempt_started(*sandbox),
            (Runs::Agent(_), Event::TimeoutReached { .. } | Event::SharedBudgetSpent { .. }) => {}
            // What a dying agent still used is paid for, too.
            (Runs::Agent(_), Event::Agent { event }) => self.observe(event, incoming),
            (Runs::Agent(_), Event::AttemptEnded { end, exit, work: left, changes }) => {
                // What came to its end in the moment in which we ended it may have asked all the same.
                let end = self.name_end(&self.end_of(&stopping.why, end), *left);
                self.record_end(end.clone(), exit, *left, changes);
                self.moved.recorded_as = Some(Box::new(with_end(event, &end)));
                self.after_stop(work, &stopping.why);
            }
            (Runs::Checks { .. }, Event::CheckStarted { .. }) => {}
            // It is paid for, and counts when the goal is resumed.
            (Runs::Checks { attempt, .. }, Event::CheckFinished { result }) => {
                self.note_acceptance(attempt, result);
            }
            (Runs::Checks { attempt, .. }, Event::JudgeStarted { .. }) => self.begin_judging(attempt, event),
            (Runs::Checks { attempt, .. }, Event::VerdictReached { verdict }) => match &stopping.why {
                StopWhy::Budget { axis } => {
                    self.settle_stop(work);
                    self.after_late_verdict(attempt, verdict, *axis);
                }
                why => self.after_stop(work, why),
            },
            (
                Runs::Checks { .. },
                Event::ChecksFailed { .. }
                | Event::JudgeUnavailable { .. }
                | Event::Unconfigured { .. }
                | Event::Stopped,
            ) => self.after_stop(work, &stopping.why),
            (_, event) => return self.apply_request(&Phase::Stopping(stopping.clone()), event),
        }
        Ok(())
    }

    /// What is being ended.
    fn work_of(&self, stopping: &Stopping) -> Runs {
        match stopping.attempt {
            None => Runs::Setup { round: self.state.preparations },
            Some(attempt) if attempt_lives(&self.state) => Runs::Agent(attempt),
            Some(attempt) => self.checks_of(attempt),
        }
    }

    /// The checks that run on an attempt's work.
    pub(super) fn checks_of(&self, attempt: AttemptNo) -> Runs {
        let round = self.state.attempt(attempt).map_or(0, |attempt| attempt.check_rounds);
        Runs::Checks { attempt, round }
    }

    pub(super) fn stop(&mut self, work: Runs, why: StopWhy) {
        let attempt = match work {
            Runs::Setup { .. } => None,
            Runs::Agent(attempt) | Runs::Checks { attempt, .. } => Some(attempt),
        };
        self.state.phase = Phase::Stopping(Stopping { attempt, why });
        self.moved.effects.push(Effect::Stop { work: work.key() });
    }

    fn settle_stop(&mut self, work: Runs) {
        let key = work.key();
        self.settle(stop_key(&key));
        self.settle(key);
    }

    /// How an attempt ended that we ended: by our reason, whatever its last words were.
    fn end_of(&self, why: &StopWhy, found: &End) -> End {
        match why {
            StopWhy::Cancel => End::Cancelled,
            StopWhy::Auth { message } => End::Auth { message: message.clone() },
            StopWhy::Asked => End::Asked,
            // It may have finished its turn by then: then that is what happened.
            _ if *found == End::Completed => End::Completed,
            StopWhy::Pause { .. } | StopWhy::Resume | StopWhy::SharedBudget => End::Interrupted,
            StopWhy::Budget { .. } => End::OverBudget,
            // An agent that reported a used-up quota was not silent: it waits for the quota.
            StopWhy::Timeout { timeout: Timeout::Idle }
                if self.state.last_attempt().is_some_and(|last| last.waits_for_quota) =>
            {
                End::RateLimited { until: None }
            }
            StopWhy::Timeout { timeout } => End::TimedOut { timeout: *timeout },
        }
    }

    /// What follows when a tree that we ended is gone.
    pub(super) fn after_stop(&mut self, work: Runs, why: &StopWhy) {
        self.settle_stop(work);
        match why {
            StopWhy::Cancel => {
                self.state.phase = Phase::Cancelled;
                if matches!(work, Runs::Checks { .. }) {
                    self.check_when_resumed();
                }
            }
            StopWhy::Pause { reason } => self.after_pause(work, Phase::Paused { reason: *reason }),
            StopWhy::Resume => {
                self.after_pause(work, Phase::Queued);
                if self.state.phase == Phase::Queued {
                    self.ask_again();
                }
            }
            StopWhy::SharedBudget => match work {
                Runs::Agent(attempt) => self.after_shared_budget(attempt),
                Runs::Setup { .. } => self.state.phase = Phase::Queued,
                Runs::Checks { .. } => {
                    self.check_when_resumed();
                    self.state.phase = Phase::Queued;
                }
            },
            StopWhy::Auth { message } => self.after_refused_login(message),
            StopWhy::Budget { axis } => match work {
                Runs::Agent(attempt) => self.after_spent_turn(attempt, *axis),
                Runs::Setup { .. } | Runs::Checks { .. } => self.end_spent(*axis),
            },
            StopWhy::Timeout { .. } | StopWhy::Asked => {
                let last = self.state.last_attempt().map(|attempt| (attempt.n, attempt.end.clone()));
                if let Some((attempt, Some(end))) = last {
                    self.after_end(attempt, &end);
                }
            }
        }
    }
}

/// Why a tree is ended when this timeout is reached.
pub(super) fn why_of(timeout: Timeout) -> StopWhy {
    match timeout {
        Timeout::Wall => StopWhy::Budget { axis: Axis::Wall },
        Timeout::Answer => StopWhy::Asked,
        timeout => StopWhy::Timeout { timeout },
    }
}
