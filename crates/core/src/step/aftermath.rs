//! What follows when an attempt, a verdict or a stop is over.

use jiff::Timestamp;

use super::Stepper;
use super::handover::NextAgent;
use crate::deadlines::later;
use crate::prompt::{Conversation, next_prompt};
use crate::{
    AgentName, Attempt, AttemptId, AttemptNo, Effect, End, EscalationReason, FailureReason, Launch,
    LaunchProblem, PauseReason, Phase, Policy, SessionId, SessionLimits, SessionPlan, Timeout, Verdict, Work,
};

impl Stepper<'_> {
    /// Starts the next attempt, unless a budget is spent.
    pub(super) fn begin_attempt(&mut self) {
        if let Some(axis) = self.state.spent_axis(self.now) {
            return self.end_spent(axis);
        }
        if let Some(attempt) = self.take_overdue_verdict() {
            return self.check(attempt);
        }
        if self.state.open_question().is_some() {
            return self.wait_for_answers();
        }
        if self.wants_baseline() {
            return self.run_baseline();
        }
        let agent = match self.choose_agent() {
            NextAgent::Agent(agent) => agent,
            NextAgent::Wait(limited) => return self.state.phase = limited,
            NextAgent::Nobody => return self.escalate(EscalationReason::NoAgent),
        };
        self.state.unavailable.remove(&agent);
        self.state.dispatched_agent = None;
        let is_handover = self.hand_over(&agent);
        let n = AttemptNo::after(self.state.attempts.len());
        let id = AttemptId::of(self.goal.id, n);
        self.forget_worn_out_session();
        self.forget_session_of_other_model(&agent);
        let (session, conversation) = match self.resumable(&agent) {
            Some(native_id) => (SessionPlan::Resume(native_id), Conversation::Resumed),
            None if is_handover => (SessionPlan::Fresh(id.fresh_session()), Conversation::HandedOver),
            None => (SessionPlan::Fresh(id.fresh_session()), Conversation::New),
        };
        let compact = self.compaction(n, &agent, conversation);
        let prompt = next_prompt(self.goal, &self.state, conversation);
        let permitted =
            self.state.questions.iter().filter_map(|question| question.permitted().cloned()).collect();
        self.mark_sent_with_prompt(n);
        (self.state.auth_failures_in_row, self.state.restored) = (0, false);
        let model = self.state.model.clone().or_else(|| self.goal.model.clone());
        let asked_model = self.state.model_for(self.goal, &agent);
        let attempt = Attempt::begun(self.goal.id, n, agent.clone(), model.clone(), self.now);
        self.state.attempts.push(Attempt { asked_model, ..attempt });
        self.state.phase = Phase::Running { attempt: n };
        let launch = Launch { attempt: n, id, agent, model, session, compact, prompt, permitted };
        self.moved.effects.push(Effect::Launch(launch));
    }

    /// Forgets a conversation that has become too old or too full: the next prompt carries everything.
    fn forget_worn_out_session(&mut self) {
        let Some(session) = &self.state.session else { return };
        let limits = self.limits_of(&session.agent);
        let last_used = self.attempts_in_session().last().and_then(|attempt| attempt.ended_at);
        let worn_out = Policy::worn_out(&limits, session.since, last_used, self.now);
        let worn_out = worn_out.or_else(|| {
            let times = self.state.context.not_compacted_in_row;
            (times >= Policy::FAILED_COMPACTIONS && self.is_to_be_compacted())
                .then_some("its context is full and could not be summarised")
        });
        if let Some(why) = worn_out {
            self.start_new_session(why);
        }
    }

    /// What the summary keeps that the attempt begins with; none if it begins without one. The operator's request counts
    /// until an agent has its prompt.
    fn compaction(
        &mut self,
        attempt: AttemptNo,
        agent: &AgentName,
        conversation: Conversation,
    ) -> Option<String> {
        if conversation != Conversation::Resumed {
            if self.state.compaction.take().is_some() {
                self.notice("the next attempt starts a new conversation, so there is nothing to summarise");
            }
            return None;
        }
        let is_full = self.is_to_be_compacted();
        let request = self.state.compaction.as_mut();
        if request.is_none() && !is_full {
            return None;
        }
        let own = request.and_then(|request| {
            request.attempt = Some(attempt);
            request.focus.clone()
        });
        let configured = || self.limits_of(agent).compact_focus;
        Some(own.or_else(configured).unwrap_or_else(|| Policy::COMPACTION_FOCUS.to_owned()))
    }

    /// Whether the conversation fills too much of the context to continue it as it is.
    fn is_to_be_compacted(&self) -> bool {
        let Some(session) = &self.state.session else { return false };
        let limits = self.limits_of(&session.agent);
        let context = self.attempts_in_session().filter_map(|attempt| attempt.context).last();
        self.state.context.overflows_in_row > 0 || Policy::compacts(context, limits.context_threshold)
    }

    pub(super) fn attempts_in_session(&self) -> impl Iterator<Item = &Attempt> {
        let session = self.state.session.as_ref().map(|session| &session.native_id);
        self.state
            .attempts
            .iter()
            .filter(move |attempt| attempt.session.is_some() && attempt.session.as_ref() == session)
    }

    /// The session to continue: the same agent's, in the same directory.
    pub(super) fn resumable(&self, agent: &AgentName) -> Option<SessionId> {
        let (session, workspace) = (self.state.session.as_ref()?, self.state.workspace.as_ref()?);
        let outlives = self.limits_of(agent).outlives_process;
        let fits = outlives && session.agent == *agent && session.directory == workspace.path;
        fits.then(|| session.native_id.clone())
    }

    fn limits_of(&self, agent: &AgentName) -> SessionLimits {
        self.goal.sessions.get(agent).cloned().unwrap_or_default()
    }

    /// What follows an attempt that ended by itself. A bad end is no evidence about the work it left: that is checked
    /// first.
    pub(super) fn after_end(&mut self, attempt: AttemptNo, end: &End) {
        let left_work = self.state.last_attempt().is_some_and(|attempt| attempt.work == Work::Unchecked);
        if *end == End::Interrupted {
            // Its supervisor got the signal: whoever shuts down the machine means the goal as well.
            self.spend_no_attempt();
            self.state.phase = Phase::Paused { reason: PauseReason::Shutdown };
        } else if self.state.open_question().is_some() && answers_help(end) {
            self.after_question();
        } else if left_work && end.is_bad() && !self.checks().is_empty() {
            self.check(attempt);
        } else {
            self.go_on_after(attempt, end);
        }
    }

    /// What follows an attempt's end once there is nothing of it left to check.
    fn go_on_after(&mut self, attempt: AttemptNo, end: &End) {
        let last = self.state.last_attempt();
        let has_begun =
            last.is_some_and(|attempt| attempt.session.is_some() || attempt.work == Work::Unchecked);
        let was_answered = last.is_some_and(Attempt::was_answered);
        let has_verdict = last.is_some_and(|attempt| attempt.verdict.is_some());
        match end {
            End::Completed => {
                self.forget_errors();
                self.check_or_leave_unproven(attempt);
            }
            // Answered before the tree was gone.
            End::Asked => self.after_question(),
            End::Slept { duration, reason } => {
                self.state.errors_in_row = 0;
                let until = later(self.now, *duration);
                self.state.phase = Phase::Sleeping { until, reason: reason.clone() };
            }
            // It may be that nothing was left to do.
            End::PermissionDenied { tool, rule } if self.checks().is_empty() => {
                self.escalate(EscalationReason::PermissionDenied { tool: tool.clone(), rule: rule.clone() });
            }
            End::PermissionDenied { .. } => self.check(attempt),
            // The agent's own cap is no evidence about the work: the checks and our budget decide.
            End::MaxTurns | End::MaxBudget => {
                self.state.errors_in_row += 1;
                if self.checks().is_empty() { self.begin_attempt() } else { self.check(attempt) }
            }
            End::RateLimited { until } => self.after_rate_limit(*until, end),
            End::Auth { message } => self.after_refused_login(message),
            End::SpawnFailed { problem } => self.after_failed_spawn(problem, end),
            // It would print as much again.
            End::OutputLimit => {
                if !self.give_up_on_agent(end, None, false) {
                    self.wait_or_escalate(EscalationReason::OutputLimit);
                }
            }
            End::Declined { message } => {
                self.escalate(EscalationReason::Declined { message: message.clone() });
            }
            End::Crashed { message } if !has_begun => {
                self.leave_lost_session();
                self.after_failed_start(message, end);
            }
            End::TimedOut { .. } if !has_begun => {
                let message = end.detail().unwrap_or_default();
                self.after_failed_start(&message, end);
            }
            End::ServerError { .. } | End::TimedOut { timeout: Timeout::Idle } if !was_answered => {
                self.wait_for_provider(end);
            }
            // Silence is often over when it is spoken to again.
            End::TimedOut { .. } if self.state.errors_in_row == 0 => {
                self.state.errors_in_row = 1;
                self.begin_attempt();
            }
            // Its work was checked after the budget was raised or the goal resumed.
            End::OverBudget | End::Interrupted if has_verdict => self.begin_attempt(),
            end => {
                self.prepare_next_session(end);
                self.pause_after_error(end);
            }
        }
    }

    /// What an error means for the session that the next attempt would resume. Ends that only we bring about, in the phase
    /// `stopping`, come here as well: they are no success.
    fn prepare_next_session(&mut self, end: &End) {
        match end {
            // The id is of no use any more; the next prompt carries everything, so nothing is lost with it.
            End::ResumeRefused { .. } => {
                self.spend_no_attempt();
                self.state.session = None;
            }
            End::ContextOverflow => {
                self.state.context.overflows_in_row += 1;
                if self.state.context.overflows_in_row > Policy::COMPACTIONS_AFTER_OVERFLOW {
                    self.state.session = None;
                    self.state.context = crate::ContextState::default();
                }
            }
            End::Refused { .. } => self.leave_refused_session(),
            End::Lost => self.spend_no_attempt(),
            End::Crashed { .. } => self.leave_lost_session(),
            _ => {}
        }
    }

    fn after_rate_limit(&mut self, announced: Option<Timestamp>, end: &End) {
        self.spend_no_attempt();
        let announced = announced.or_else(|| self.state.last_attempt().and_then(|last| last.limit_until));
        let guesses = self.state.guessed_limits_in_row;
        let (until, guessed) = Policy::limited_until(announced, guesses, self.now);
        self.state.guessed_limits_in_row = if guessed { guesses + 1 } else { 0 };
        self.with_attempt(|last| last.limit_until = Some(until));
        if !self.give_up_on_agent(end, Some(until), guessed) {
            self.wait_or_escalate(EscalationReason::NoAgent);
        }
    }

    fn after_failed_spawn(&mut self, problem: &LaunchProblem, end: &End) {
        self.spend_no_attempt();
        match problem {
            // No other agent could work, either.
            LaunchProblem::NoRepository { path } => {
                self.escalate(EscalationReason::RepositoryGone { path: path.clone() });
            }
            LaunchProblem::Configuration { message } => {
                self.escalate(EscalationReason::Configuration { error: message.clone() });
            }
            problem if !self.give_up_on_agent(end, None, false) => {
                self.wait_or_escalate(EscalationReason::SpawnFailed { problem: problem.to_string() });
            }
            _ => {}
        }
    }

    /// What follows a verdict.
    pub(super) fn after_verdict(&mut self, attempt: AttemptNo, verdict: &Verdict) {
        self.record_verdict(attempt, verdict);
        let end = self.state.attempt(attempt).and_then(|attempt| attempt.end.clone());
        let over_budget = self.state.attempt(attempt).and_then(|attempt| attempt.over_budget);
        if verdict.met() {
            self.report_unsent_messages();
            self.state.phase = Phase::Done;
        } else if let Some(axis) = over_budget {
            self.fail(FailureReason::Budget { axis });
        } else if let Some(End::PermissionDenied { tool, rule }) = end {
            self.escalate(EscalationReason::PermissionDenied { tool, rule });
        } else if let Some(end) = end.filter(End::is_bad) {
            self.go_on_after(attempt, &end);
        } else if self.state.same_failure_in_row >= Policy::NO_PROGRESS
            && self.state.spent_axis(self.now).is_none()
        {
            self.escalate(EscalationReason::NoProgress { times: self.state.same_failure_in_row });
        } else {
            self.begin_attempt();
        }
    }

    pub(super) fn record_verdict(&mut self, attempt: AttemptNo, verdict: &Verdict) {
        let same = self.state.last_verdict().is_some_and(|last| last.same_failure(verdict));
        self.state.same_failure_in_row = if same { self.state.same_failure_in_row + 1 } else { 1 };
        self.state.candidate = Some(verdict.candidate.clone());
        self.state.absent_judge = None;
        self.forget_acceptances();
        if let Some(attempt) = self.state.attempts.get_mut(attempt.index()) {
            attempt.verdict = Some(verdict.clone());
        }
    }

    /// The agent ended its turn as it should.
    pub(super) fn forget_errors(&mut self) {
        self.state.errors_in_row = 0;
        self.state.context.overflows_in_row = 0;
    }

    pub(super) fn check_or_leave_unproven(&mut self, attempt: AttemptNo) {
        if self.checks().is_empty() {
            self.report_unsent_messages();
            self.state.phase = Phase::Unproven;
        } else {
            self.check(attempt);
        }
    }

    pub(super) fn check(&mut self, attempt: AttemptNo) {
        let Some(checked) = self.state.attempts.get_mut(attempt.index()) else { return };
        checked.check_rounds += 1;
        let round = checked.check_rounds;
        self.state.phase = Phase::Checking { attempt };
        self.moved.effects.push(Effect::RunChecks { attempt, round });
    }

    fn after_failed_start(&mut self, message: &str, end: &End) {
        self.spend_no_attempt();
        self.state.failed_starts_in_row += 1;
        if self.state.failed_starts_in_row < Policy::FAILED_STARTS {
            self.pause_after_error(end);
        } else if self.give_up_on_agent(end, None, false) {
            self.state.failed_starts_in_row = 0;
        } else {
            self.wait_or_escalate(EscalationReason::NeverStarted { message: message.to_owned() });
        }
    }

    /// Waits a while before the next attempt, longer with each bad ending in a row.
    pub(super) fn pause_after_error(&mut self, end: &End) {
        self.state.errors_in_row += 1;
        if let Some(axis) = self.state.spent_axis(self.now) {
            return self.end_spent(axis);
        }
        if self.hand_over_after(self.state.errors_in_row, end) {
            return;
        }
        let until = later(self.now, Policy::backoff(self.state.errors_in_row));
        let reason = format!("the agent ended badly: {}", end.kind());
        self.state.phase = Phase::Sleeping { until, reason };
    }

    pub(super) fn after_refused_login(&mut self, message: &str) {
        self.spend_no_attempt();
        let message = message.to_owned();
        if !self.give_up_on_agent(&End::Auth { message: message.clone() }, None, false) {
            let agent =
                self.state.last_attempt().map_or_else(String::new, |attempt| attempt.agent.to_string());
            self.wait_or_escalate(EscalationReason::Auth { agent, message });
        }
    }

    pub(super) fn spend_no_attempt(&mut self) {
        self.with_attempt(|attempt| attempt.counts = false);
    }

    pub(super) fn fail(&mut self, reason: FailureReason) {
        self.state.phase = Phase::Failed { reason };
    }

    pub(super) fn escalate(&mut self, reason: EscalationReason) {
        self.state.phase = Phase::Escalated { reason };
    }
}

/// Whether a person's answer is what the goal waits for after this end. Where the agent cannot work at all, an answer
/// is of no use.
const fn answers_help(end: &End) -> bool {
    !matches!(end, End::Auth { .. } | End::SpawnFailed { .. } | End::Declined { .. })
}
