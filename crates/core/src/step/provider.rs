//! What follows when the model cannot be reached, and when a session cannot be continued: the provider refuses the
//! conversation, the agent lost it, or the model is another one.

use super::Stepper;
use crate::deadlines::later;
use crate::{
    AgentName, Attempt, ContextState, End, EndKind, EscalationReason, NextSession, Phase, Policy, Work,
};

impl Stepper<'_> {
    /// Waits before the next try, longer each time. The model was never reached, so this costs neither an attempt nor an
    /// error.
    pub(super) fn wait_for_provider(&mut self, end: &End) {
        self.spend_no_attempt();
        let since = *self.state.outage.since.get_or_insert(self.now);
        self.state.outage.tries = self.state.outage.tries.saturating_add(1);
        let tries = self.state.outage.tries;
        if let Some(axis) = self.state.spent_axis(self.now) {
            return self.end_spent(axis);
        }
        if self.hand_over_after(tries, end) {
            return;
        }
        if later(since, Policy::LONGEST_OUTAGE) <= self.now {
            let message = end.detail().unwrap_or_default();
            return self.escalate(EscalationReason::Unreachable { message });
        }
        // Silence is often over when the agent is prompted again.
        if tries == 1 && end.kind() == EndKind::TimedOut {
            return self.begin_attempt();
        }
        let reason = match end {
            End::TimedOut { .. } => "the model does not answer".to_owned(),
            end => format!("the model cannot be reached: {}", end.kind()),
        };
        self.state.phase = Phase::Sleeping { until: later(self.now, Policy::backoff(tries)), reason };
    }

    /// What the operator wants of the next session.
    pub(super) fn choose_session(&mut self, session: NextSession, model: Option<&String>) {
        if let Some(model) = model {
            self.state.model = Some(model.clone());
        }
        if session == NextSession::Fresh && self.state.session.is_some() {
            self.start_new_session("the operator asked for it");
        }
    }

    /// A session belongs to its model.
    pub(super) fn forget_session_of_other_model(&mut self, agent: &AgentName) {
        let wanted = self.state.model_for(self.goal, agent);
        let Some(session) = self.state.session.as_ref().filter(|session| session.agent == *agent) else {
            return;
        };
        if session.asked_model.differs_from(&wanted) {
            let why = format!("the model changed from {} to {wanted}", session.asked_model);
            self.start_new_session(&why);
        }
    }

    /// Leaves a session that the provider refused twice in a row: its history does not change by itself.
    pub(super) fn leave_refused_session(&mut self) {
        let is_refused = |attempt: &&Attempt| attempt.end.as_ref().map(End::kind) == Some(EndKind::Refused);
        // What never reached the model is no evidence about the conversation.
        let row = self.attempts_in_session().collect::<Vec<_>>().into_iter().rev();
        let row = row.take_while(|attempt| is_refused(attempt) || !attempt.was_answered());
        if row.filter(is_refused).count() >= Policy::REFUSALS {
            self.start_new_session("the provider refused the conversation twice in a row");
        }
    }

    /// Leaves a session that the agent seems to have lost: resumed twice in a row, it crashed both times and left nothing.
    pub(super) fn leave_lost_session(&mut self) {
        let Some(session) = &self.state.session else { return };
        let is_crash = |attempt: &Attempt| {
            let resumed = attempt.session.is_none() || attempt.resumed;
            let crashed = attempt.end.as_ref().map(End::kind) == Some(EndKind::Crashed);
            resumed && crashed && attempt.work == Work::Nothing && !attempt.was_answered()
        };
        let of_session = |attempt: &&Attempt| {
            let other = attempt.session.as_ref().is_some_and(|id| *id != session.native_id);
            attempt.agent == session.agent && !other
        };
        let row = self.state.attempts.iter().rev().take_while(|attempt| is_crash(attempt));
        if row.take_while(of_session).count() >= Policy::FAILED_RESUMES {
            self.start_new_session("it was resumed twice in a row, and the agent crashed each time");
        }
    }

    /// Forgets the session: the next prompt has everything.
    pub(super) fn start_new_session(&mut self, why: &str) {
        self.state.session = None;
        self.state.context = ContextState::default();
        self.notice(format!("the session is not continued: {why}; the next attempt starts a new one"));
    }
}
