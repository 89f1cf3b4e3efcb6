//! The checks on the base: when they run, what their result means, and what stops them.
//!
//! They run before an attempt for a moment, and then beside it. Nothing but the first attempt ever waits for them.

use std::time::Duration;

use super::{Illegal, Stepper};
use crate::deadlines::later;
use crate::effect::baseline_key;
use crate::{
    Baseline, BaselineCheck, BaselineMode, Check, CheckResult, Effect, EscalationReason, Event,
    FailureReason, MissingProgram, Phase, Policy, ReplacedChecks,
};

impl Stepper<'_> {
    /// Whether the checks are to run on the base before the next attempt.
    pub(super) fn wants_baseline(&self) -> bool {
        let is_open = match (self.goal.baseline, &self.state.baseline) {
            (BaselineMode::Off, _) | (_, Baseline::Running { .. } | Baseline::Known { .. }) => false,
            (BaselineMode::Auto, baseline) => *baseline == Baseline::Pending,
            (BaselineMode::Red, _) => true,
        };
        is_open && !self.checks().is_empty()
    }

    pub(super) fn run_baseline(&mut self) {
        self.state.baseline_rounds += 1;
        let round = self.state.baseline_rounds;
        let until =
            (self.goal.baseline != BaselineMode::Red).then(|| later(self.now, Policy::BASELINE_HEAD_START));
        self.state.baseline = Baseline::Running { round, since: self.now, until };
        self.state.phase = Phase::Preparing;
        self.moved.effects.push(Effect::RunBaseline { round });
    }

    /// What may happen while an attempt waits for the checks on the base.
    pub(super) fn apply_while_baseline(&mut self, event: &Event) -> Result<(), Illegal> {
        match (event, &self.state.baseline) {
            // The agent has waited long enough: it starts beside the checks.
            (Event::Woken, Baseline::Running { until: Some(until), .. }) if self.now >= *until => {
                self.end_baseline_wait();
                self.begin_attempt();
                Ok(())
            }
            (event, _) => self.apply_request(&Phase::Preparing, event),
        }
    }

    pub(super) fn baseline_reached(
        &mut self,
        round: u32,
        results: &[CheckResult],
        missing: Option<&MissingProgram>,
    ) {
        let waited = self.end_baseline_wait();
        self.settle(baseline_key(round));
        let checks: Vec<BaselineCheck> = results.iter().map(BaselineCheck::from).collect();
        let is_green = BaselineCheck::all_met(&checks);
        self.state.baseline = Baseline::Known { checks };
        if is_green {
            self.notice("checks passed before any work");
        }
        match missing {
            Some(missing) if waited => self.fail(FailureReason::MissingProgram(missing.clone())),
            Some(missing) => self.notice(missing.to_string()),
            None if waited && is_green && self.goal.baseline == BaselineMode::Red => {
                self.fail(FailureReason::GreenBefore);
            }
            None if waited => self.begin_attempt(),
            None => {}
        }
    }

    /// The checks could not be run on the base. Where they must fail there, nothing begins without knowing.
    pub(super) fn baseline_unknown(&mut self, round: u32, reason: &str) {
        let waited = self.end_baseline_wait();
        self.settle(baseline_key(round));
        self.state.baseline = Baseline::Unknown;
        if waited && self.goal.baseline == BaselineMode::Red {
            self.escalate(EscalationReason::ChecksFailed { error: reason.to_owned() });
        } else if waited {
            self.begin_attempt();
        }
    }

    /// Stops checks on the base that may not go on beside what follows.
    pub(super) fn stop_baseline_if_needed(&mut self) {
        let Baseline::Running { round, .. } = self.state.baseline else { return };
        if self.state.phase.allows_baseline() {
            return;
        }
        self.settle(baseline_key(round));
        if matches!(self.state.phase, Phase::Checking { .. }) {
            self.state.baseline = Baseline::Unknown;
            let reason = "the work was ready to be checked first".to_owned();
            self.moved.events.push(Event::BaselineUnknown { round, reason });
        } else {
            self.state.baseline = Baseline::Pending;
        }
    }

    /// The time in which the attempt waited is not the goal's. Whether it did.
    pub(super) fn end_baseline_wait(&mut self) -> bool {
        let Baseline::Running { since, .. } = self.state.baseline else { return false };
        if self.before != Phase::Preparing {
            return false;
        }
        let waited = Duration::try_from(self.now.duration_since(since)).unwrap_or_default();
        self.state.first_started_at =
            self.state.first_started_at.map(|first_started_at| later(first_started_at, waited));
        true
    }

    /// The operator has other checks for the goal. Work that is there is checked by them before an agent continues it.
    pub(super) fn replace_checks(&mut self, checks: &[Check]) -> Result<(), Illegal> {
        let takes_them = match &self.before {
            Phase::Queued
            | Phase::Sleeping { .. }
            | Phase::Limited { .. }
            | Phase::Blocked { attempt: None, .. }
            | Phase::Unproven => true,
            phase => phase.is_settled() && *phase != Phase::Done,
        };
        if !takes_them || checks.is_empty() {
            return Err(self.wrong_phase(&Event::ChecksReplaced { checks: Vec::new() }));
        }
        self.state.replaced_checks = Some(ReplacedChecks { checks: checks.to_vec(), since: self.now });
        if let Baseline::Running { round, .. } = self.state.baseline {
            self.settle(baseline_key(round));
        }
        self.state.baseline = Baseline::Pending;
        self.with_attempt(|last| last.verdict = None);
        self.forget_acceptances();
        self.check_when_resumed();
        Ok(())
    }

    /// The checks in force.
    pub(super) fn checks(&self) -> &[Check] {
        self.state.checks(self.goal)
    }
}
