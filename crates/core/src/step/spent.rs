//! What follows when a budget is spent: work that exists gets its verdict before the goal ends.

use super::Stepper;
use crate::{AttemptNo, Axis, Check, End, FailureReason, GoalState, Phase, Verdict, Work};

impl Stepper<'_> {
    /// Ends the goal for a spent budget. Unchecked work is checked first, unless time is what was spent: then it is
    /// checked when the goal is opened again.
    pub(super) fn end_spent(&mut self, axis: Axis) {
        let unchecked = self.unchecked();
        if unchecked.is_some() {
            self.with_attempt(|last| last.over_budget = Some(axis));
        }
        match unchecked {
            Some(attempt) if axis != Axis::Wall => self.check(attempt),
            _ => self.fail(FailureReason::Budget { axis }),
        }
    }

    /// What follows an agent that was stopped for a spent budget, once its tree is gone.
    pub(super) fn after_spent_turn(&mut self, attempt: AttemptNo, axis: Axis) {
        let completed = self.state.last_attempt().is_some_and(|last| last.end == Some(End::Completed));
        if completed {
            self.forget_errors();
        }
        if completed && self.checks().is_empty() {
            self.check_or_leave_unproven(attempt);
        } else {
            self.end_spent(axis);
        }
    }

    /// A verdict that was reached while its checks were being stopped because time is up.
    pub(super) fn after_late_verdict(&mut self, attempt: AttemptNo, verdict: &Verdict, axis: Axis) {
        self.record_verdict(attempt, verdict);
        if verdict.met() {
            self.report_unsent_messages();
            self.state.phase = Phase::Done;
        } else {
            self.fail(FailureReason::Budget { axis });
        }
    }

    /// The work whose verdict spent time, a pause or a cancel prevented; it is due when the goal goes on.
    pub(super) fn overdue_verdict(&self) -> Option<AttemptNo> {
        let last = self.state.last_attempt()?;
        self.unchecked().filter(|_| last.over_budget.is_some() || last.check_on_resume)
    }

    /// The budget without which the work of this attempt cannot get its verdict. Checks need time, and a judge that has not
    /// accepted the work needs money.
    pub(super) fn spent_for_verdict(&self, attempt: AttemptNo, reopened: &GoalState) -> Option<Axis> {
        let out_of_time = reopened.wall_ends().filter(|ends| self.now >= *ends).map(|_| Axis::Wall);
        let out_of_money =
            || reopened.over_budget(self.now).filter(|axis| matches!(axis, Axis::Tokens | Axis::Usd));
        out_of_time.or_else(|| self.waits_for_judge(attempt).then(out_of_money).flatten())
    }

    /// Whether a judge has not accepted the work of this attempt.
    fn waits_for_judge(&self, attempt: AttemptNo) -> bool {
        let has_accepted = |check: &Check| {
            let mut judges = self.state.judges.iter().filter(|judge| judge.attempt == attempt);
            judges.any(|judge| judge.check == check.name && judge.accepted.is_some())
        };
        self.checks().iter().any(|check| check.kind.is_judge() && !has_accepted(check))
    }

    pub(super) fn take_overdue_verdict(&mut self) -> Option<AttemptNo> {
        let overdue = self.overdue_verdict();
        let last = self.state.attempts.last_mut()?;
        (last.over_budget, last.check_on_resume) = (None, false);
        overdue
    }

    /// The last attempt, if it left work that has no verdict. Whether an agent that was not cut off changed something is
    /// not known, so its work counts.
    fn unchecked(&self) -> Option<AttemptNo> {
        let last = self.state.last_attempt().filter(|_| !self.checks().is_empty())?;
        let end = last.end.as_ref()?;
        let left_work = last.work == Work::Unchecked || !end.is_bad();
        (left_work && last.verdict.is_none()).then_some(last.n)
    }
}
