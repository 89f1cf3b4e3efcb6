//! What a living attempt's own words change: usage, session, decisions, and reasons to stop it.

use super::Stepper;
use super::stopping::Runs;
use crate::{
    AgentEvent, AttemptNo, Incoming, LimitStatus, Outcome, Phase, Policy, SessionBinding, SessionStarted,
    StopWhy, TurnStop,
};

impl Stepper<'_> {
    /// Takes over where the workspace is, if that is another place than before. Sessions that belong to the earlier one are not resumed.
    pub(super) fn find_workspace(&mut self, path: Option<&str>) {
        if let (Some(binding), Some(path)) = (&mut self.state.workspace, path) {
            path.clone_into(&mut binding.path);
        }
    }

    /// Takes note of what the agent wrote or did.
    pub(super) fn observe(&mut self, event: &AgentEvent, incoming: &Incoming) {
        if let (Some(raw), Some(attempt)) = (incoming.raw, self.state.attempts.last_mut()) {
            attempt.read_to = attempt.read_to.max(raw.offset.saturating_add(raw.length));
        }
        match event {
            AgentEvent::SessionStarted(session) => self.bind_session(session),
            AgentEvent::TurnStarted => self.begin_turn(),
            AgentEvent::Usage { used, context_used, context_size, .. } => {
                // Whoever used something was let in; an empty count proves nothing.
                if !used.is_empty() {
                    self.state.auth_failures_in_row = 0;
                    self.model_answered();
                }
                self.with_attempt(|attempt| {
                    attempt.usage.record(*used);
                    if let Some(used) = context_used {
                        attempt.context = Some((*used, *context_size));
                    }
                });
            }
            AgentEvent::Retrying { status, .. } => {
                let is_auth = matches!(status, Some(401 | 403));
                let failures = self.state.auth_failures_in_row;
                self.state.auth_failures_in_row = if is_auth { failures + 1 } else { 0 };
                self.with_attempt(|attempt| attempt.waits_for_quota = *status == Some(429));
            }
            AgentEvent::Tool(_) | AgentEvent::Thought { .. } => self.model_worked(event),
            AgentEvent::RateLimit(limit) if limit.status == LimitStatus::Rejected => {
                self.with_attempt(|attempt| attempt.limit_until = limit.resets_at.or(attempt.limit_until));
            }
            AgentEvent::Compacted { after, .. } => {
                self.state.context.not_compacted_in_row = 0;
                self.with_attempt(|attempt| {
                    attempt.context = after.map(|after| (after, attempt.context.and_then(|(_, size)| size)));
                });
            }
            AgentEvent::NotCompacted { .. } => self.state.context.not_compacted_in_row += 1,
            AgentEvent::SleepAsked { duration, reason } => {
                self.with_attempt(|attempt| attempt.sleep = Some((*duration, reason.clone())));
            }
            AgentEvent::Asked(ask) => self.ask(ask),
            // What we end lets go of everything it waited for; its questions stay open.
            AgentEvent::Withdrawn { .. } if matches!(self.before, Phase::Stopping(_)) => {}
            AgentEvent::Withdrawn { request } => self.withdraw(request),
            AgentEvent::Heard { message } => self.heard(*message),
            AgentEvent::Decided(decision) => {
                match decision.outcome {
                    Outcome::Allow => self.state.denials_in_row = 0,
                    Outcome::Deny => self.state.denials_in_row += 1,
                }
                self.with_attempt(|attempt| attempt.decisions.push(decision.clone()));
            }
            AgentEvent::TurnEnded(end) => {
                self.with_attempt(|attempt| attempt.text.clone_from(&end.text));
                if let TurnStop::Failed { status: Some(401 | 403), .. } = end.stop {
                    self.state.auth_failures_in_row += 1;
                }
            }
            AgentEvent::Unrecognised { count, .. } => {
                self.with_attempt(|attempt| attempt.unrecognised += count);
            }
            _ => {}
        }
    }

    /// The agent has its prompt. A summary comes before that, so a requested one was made or refused by now.
    fn begin_turn(&mut self) {
        self.with_attempt(|attempt| attempt.turns += 1);
        self.forget_withdrawn();
        let attempt = self.state.last_attempt().map(|attempt| attempt.n);
        self.state.compaction.take_if(|request| request.attempt.is_some() && request.attempt == attempt);
    }

    fn model_worked(&mut self, event: &AgentEvent) {
        self.model_answered();
        // The call that asked ends with its question; a new one is work.
        if matches!(event, AgentEvent::Tool(tool) if !tool.status.is_over()) {
            self.forget_withdrawn();
        }
    }

    /// What was in the way of an answer is over.
    fn model_answered(&mut self) {
        self.state.outage = crate::Outage::default();
        self.state.guessed_limits_in_row = 0;
        self.with_attempt(|attempt| {
            attempt.answered = true;
            attempt.waits_for_quota = false;
        });
    }

    /// Ends the attempt when what was observed shows that going on only costs.
    pub(super) fn stop_if_needed(&mut self, attempt: AttemptNo) {
        let work = Runs::Agent(attempt);
        if self.state.auth_failures_in_row >= Policy::AUTH_FAILURES {
            let message = "the provider refused the credentials twice in a row".to_owned();
            self.stop(work, StopWhy::Auth { message });
        } else if let Some(axis) = self.state.over_budget(self.now) {
            self.stop(work, StopWhy::Budget { axis });
        }
    }

    fn bind_session(&mut self, session: &SessionStarted) {
        self.state.failed_starts_in_row = 0;
        let directory =
            self.state.workspace.as_ref().map_or_else(String::new, |workspace| workspace.path.clone());
        let resumable = self.state.last_attempt().and_then(|attempt| self.resumable(&attempt.agent));
        let Some(attempt) = self.state.attempts.last_mut() else { return };
        // Asked to go on, the agent began anew: a conversation that never got the goal cannot continue.
        let lost = attempt.session.is_none() && !session.resumed && resumable.is_some();
        attempt.session = Some(session.native_id.clone());
        attempt.resumed = session.resumed;
        if session.model.is_some() {
            attempt.model.clone_from(&session.model);
        }
        if lost {
            self.state.session = None;
            return;
        }
        let since = match &self.state.session {
            Some(bound) if bound.native_id == session.native_id => bound.since,
            _ => self.now,
        };
        self.state.session = Some(SessionBinding {
            agent: attempt.agent.clone(),
            native_id: session.native_id.clone(),
            model: attempt.model.clone(),
            directory,
            since,
            asked_model: attempt.asked_model.clone(),
            origin: Some(self.goal.origin.clone()),
        });
    }

    /// The agent's process runs, and this confines it.
    pub(super) fn attempt_started(&mut self, sandbox: Option<crate::Sandbox>) {
        self.with_attempt(|attempt| {
            attempt.started = true;
            attempt.sandbox = sandbox;
        });
    }

    pub(super) fn with_attempt(&mut self, change: impl FnOnce(&mut crate::Attempt)) {
        if let Some(attempt) = self.state.attempts.last_mut() {
            change(attempt);
        }
    }
}
