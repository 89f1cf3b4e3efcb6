//! Pausing a goal and resuming it: what ran is ended and continued later, and costs neither an attempt nor an error.

use super::stopping::Runs;
use super::{Illegal, Stepper};
use crate::deadlines::later;
use crate::{End, Event, PauseReason, Phase, StopWhy};

impl Stepper<'_> {
    pub(super) fn pause(&mut self, reason: PauseReason) -> Result<(), Illegal> {
        if self.halt(StopWhy::Pause { reason }, Phase::Paused { reason }) {
            return Ok(());
        }
        if self.before == (Phase::Paused { reason: PauseReason::Shutdown }) && reason == PauseReason::Operator
        {
            // No server resumes it from now on.
            self.state.phase = Phase::Paused { reason };
            return Ok(());
        }
        Err(self.wrong_phase(&Event::PauseRequested { reason }))
    }

    /// Ends what runs for this reason; a goal that only waits is in this phase at once. Gives back whether the goal was
    /// under way.
    pub(super) fn halt(&mut self, why: StopWhy, phase: Phase) -> bool {
        match &self.before {
            Phase::Queued
            | Phase::Sleeping { .. }
            | Phase::Limited { .. }
            | Phase::Blocked { attempt: None, .. } => self.state.phase = phase,
            Phase::Preparing if self.state.waits_for_baseline() => {
                self.end_baseline_wait();
                self.state.phase = phase;
            }
            Phase::Preparing => self.stop(Runs::Setup { round: self.state.preparations }, why),
            Phase::Running { attempt } | Phase::Blocked { attempt: Some(attempt), .. } => {
                self.stop(Runs::Agent(*attempt), why);
            }
            Phase::Checking { attempt } => self.stop(self.checks_of(*attempt), why),
            _ => return false,
        }
        true
    }

    /// What follows once nothing is left of what a pause ended.
    pub(super) fn after_pause(&mut self, work: Runs, phase: Phase) {
        self.state.phase = phase;
        match work {
            Runs::Setup { .. } => {}
            Runs::Checks { .. } => self.check_when_resumed(),
            Runs::Agent(attempt) => match self.state.last_attempt().and_then(|last| last.end.clone()) {
                Some(End::Completed) if self.checks().is_empty() => self.check_or_leave_unproven(attempt),
                Some(End::Completed) => {
                    self.forget_errors();
                    self.check_when_resumed();
                }
                _ => self.spend_no_attempt(),
            },
        }
    }

    pub(super) fn check_when_resumed(&mut self) {
        self.with_attempt(|last| last.check_on_resume = true);
    }

    /// Queues a paused goal again. An open question is asked again, and a wait that is not over goes on.
    pub(super) fn resume(&mut self) {
        self.state.first_started_at = self.without_the_wait();
        self.state.settled_at = None;
        self.state.outage = crate::Outage::default();
        self.state.absent_judge.iter_mut().for_each(crate::AbsentJudge::begin_anew);
        self.state.phase = self.rest_of_sleep().unwrap_or(Phase::Queued);
        self.ask_again();
    }

    fn rest_of_sleep(&self) -> Option<Phase> {
        let last = self.state.last_attempt()?;
        let Some(End::Slept { duration, reason }) = &last.end else { return None };
        let until = later(last.ended_at?, *duration);
        (until > self.now).then(|| Phase::Sleeping { until, reason: reason.clone() })
    }
}
