//! The transition table: what follows from each thing that can happen in each phase.
//!
//! [`step`] is total: every pair of phase and event either moves the goal, is stale (news of an older attempt or
//! lease, ignored by name), or is illegal (refused by name). What it decides about a living attempt is in
//! `observe`, what follows an attempt's end in `aftermath`, stops are in `stopping`, pauses in `pausing`, spent budgets in
//! `spent`, what a pool decides in `pool`, checks on the base in `baseline`, judges and what follows where one gives no verdict in `judging`, outages and refused conversations in `provider`, and the messages between people and agents
//! to each other in `talk`.

mod aftermath;
mod baseline;
mod handover;
mod judging;
mod observe;
mod pausing;
mod pool;
mod provider;
mod spent;
mod stopping;
mod talk;
#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};

use self::stopping::{Runs, why_of};
use crate::deadlines::later;
use crate::effect::{launch_key, prepare_key};
use crate::{
    AbsentJudge, AttemptNo, Axis, Baseline, BudgetChange, Commit, CompactionRequest, Effect, End,
    EscalationReason, Event, FailureReason, Goal, GoalId, GoalState, Incoming, Merge, Phase, QuestionNo,
    StopWhy, Timeout,
};

/// The state after a step, and what came of it.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Step {
    /// The state; unchanged unless the outcome is [`StepOutcome::Moved`].
    pub state: GoalState,
    /// What came of it.
    pub outcome: StepOutcome,
}

/// What came of an event.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum StepOutcome {
    /// It is part of the goal's story now.
    Moved(Moved),
    /// It speaks of something that is over.
    Stale(Stale),
    /// It cannot happen here.
    Illegal(Illegal),
}

/// What follows from an event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Moved {
    /// The event as it is recorded, where that differs from what came in: an attempt that we ended has our reason
    /// for its end.
    pub recorded_as: Option<Box<Event>>,
    /// Events that follow, to be recorded after it.
    pub events: Vec<Event>,
    /// What is to be done.
    pub effects: Vec<Effect>,
    /// Keys of effects that are over with this.
    pub settled: Vec<String>,
}

/// Why news is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stale {
    /// It was sent under a lease that somebody else holds by now.
    #[error("sent under an older lease")]
    Generation,
    /// It speaks of an attempt that is over.
    #[error("about an attempt that is over")]
    Attempt,
    /// It speaks of checks on the base that nobody waits for.
    #[error("about checks on the base that were stopped")]
    Baseline,
}

/// Why an event is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    /// The event has no meaning in this phase.
    #[error("`{event}` cannot happen while the goal is {phase}")]
    WrongPhase { phase: &'static str, event: &'static str },
    /// The goal is opened again, but a budget is still spent.
    #[error("the budget `{axis}` is spent")]
    StillSpent { axis: Axis },
    /// Another goal has its conversation and its place.
    #[error("goal {} continues it", by.short())]
    Continued { by: GoalId },
    /// An answer to something that nobody asks, or not like this.
    #[error("question {question} does not wait for this answer")]
    NotAsked { question: QuestionNo },
}

/// Works out what follows from `incoming`.
pub fn step(goal: &Goal, state: GoalState, incoming: &Incoming, now: Timestamp) -> Step {
    if let Some(stale) = staleness(&state, incoming) {
        return Step { state, outcome: StepOutcome::Stale(stale) };
    }
    let mut stepper = Stepper { goal, before: state.phase.clone(), state, now, moved: Moved::default() };
    match stepper.apply(incoming) {
        Ok(()) => stepper.finish(),
        Err(illegal) => Step { state: stepper.state, outcome: StepOutcome::Illegal(illegal) },
    }
}

fn staleness(state: &GoalState, incoming: &Incoming) -> Option<Stale> {
    let sent = incoming.stamp.generation;
    let taken_over = matches!(incoming.event, Event::Claimed { .. }) && sent > state.generation;
    if sent != state.generation && !taken_over {
        return Some(Stale::Generation);
    }
    if let Event::BaselineReached { round, .. } | Event::BaselineUnknown { round, .. } = &incoming.event
        && !matches!(state.baseline, Baseline::Running { round: running, .. } if running == *round)
    {
        return Some(Stale::Baseline);
    }
    let newest = state.last_attempt().map(|attempt| attempt.n);
    match incoming.stamp.attempt {
        Some(attempt) if Some(attempt) != newest => Some(Stale::Attempt),
        Some(_) if is_attempt_news(&incoming.event) && !attempt_lives(state) => Some(Stale::Attempt),
        _ => None,
    }
}

/// Whether the event speaks of the agent's process, and so means nothing once that is gone.
fn is_attempt_news(event: &Event) -> bool {
    matches!(
        event,
        Event::AttemptStarted { .. }
            | Event::Agent { .. }
            | Event::AttemptEnded { .. }
            | Event::TimeoutReached { .. }
            | Event::AnswerDelivered { .. }
            | Event::SharedBudgetSpent { .. }
    )
}

fn attempt_lives(state: &GoalState) -> bool {
    state.last_attempt().is_some_and(|attempt| attempt.end.is_none())
}

/// A step under way. Methods change the state only once they know that the event is legal.
struct Stepper<'a> {
    goal: &'a Goal,
    before: Phase,
    state: GoalState,
    now: Timestamp,
    moved: Moved,
}

impl Stepper<'_> {
    fn apply(&mut self, incoming: &Incoming) -> Result<(), Illegal> {
        match (self.before.clone(), &incoming.event) {
            (_, Event::Notice { .. }) => {}
            (_, Event::ClockMoved { by_ms }) => self.move_clock(*by_ms),
            // Money that was spent is spent, whatever the goal does meanwhile.
            (_, Event::JudgeUsed { .. } | Event::JudgeEnded { .. }) => self.follow_judge(&incoming.event),
            (_, Event::Claimed { models, workspace, .. }) => {
                self.state.generation = incoming.stamp.generation;
                self.state.configured_models.clone_from(models);
                self.find_workspace(workspace.as_deref());
            }
            (phase, Event::CompactRequested { focus }) if phase != Phase::Done => {
                self.may_be_opened()?;
                self.state.compaction = Some(CompactionRequest { focus: focus.clone(), attempt: None });
            }
            (_, Event::BaselineReached { round, checks, missing, .. }) => {
                self.baseline_reached(*round, checks, missing.as_ref());
            }
            (_, Event::BaselineUnknown { round, reason }) => self.baseline_unknown(*round, reason),
            (Phase::Preparing, event) if self.state.baseline.is_running() => {
                self.apply_while_baseline(event)?;
            }
            (Phase::Running { attempt } | Phase::Blocked { attempt: Some(attempt), .. }, event)
                if is_attempt_news(event) =>
            {
                self.apply_to_living(attempt, event, incoming)?;
            }
            (Phase::Stopping(stopping), event) => self.apply_while_stopping(&stopping, event, incoming)?,
            (Phase::Sleeping { until, .. } | Phase::Limited { until, .. }, Event::Woken)
                if self.now >= until =>
            {
                self.queue_again();
            }
            (Phase::Blocked { attempt, until: Some(until), .. }, Event::Woken) if self.now >= until => {
                self.answers_are_due(attempt);
            }
            (Phase::Queued, event) => self.apply_while_queued(event)?,
            (Phase::Preparing, event) => self.apply_while_preparing(event)?,
            (Phase::Checking { attempt }, event) => self.apply_while_checking(attempt, event)?,
            (Phase::Done | Phase::Unproven, Event::Merged { into, commit, candidate }) => {
                self.merged(into, commit, candidate);
            }
            (phase, Event::Published { branch, .. }) if phase.is_settled() => {
                self.state.branch = Some(branch.clone());
            }
            (phase, Event::Verified { .. }) if phase.is_settled() => {}
            (phase, Event::Continued { by, workspace, instead_of }) if phase.has_ended() => {
                if self.state.continued_by != *instead_of {
                    self.may_be_opened()?;
                }
                self.state.continued_by = Some(*by);
                if let (Some(binding), Some(path)) = (&mut self.state.workspace, workspace) {
                    binding.path.clone_from(path);
                }
            }
            // Both count: the agent hears about a visit that a crash cut short, and about all that one changed.
            (phase, Event::Entered { .. } | Event::Left { .. }) if phase.can_be_entered() => {
                self.may_be_opened()?;
                self.state.entered_at = Some(self.now);
            }
            (phase, event) => self.apply_request(&phase, event)?,
        }
        Ok(())
    }

    fn merged(&mut self, into: &str, commit: &Commit, candidate: &Commit) {
        let (into, commit, candidate) = (into.to_owned(), commit.clone(), candidate.clone());
        self.state.merged = Some(Merge { into, commit, candidate, at: self.now });
    }

    /// News of the workspace that is being made.
    fn apply_while_preparing(&mut self, event: &Event) -> Result<(), Illegal> {
        let key = prepare_key(self.state.preparations);
        match event {
            Event::Prepared { workspace, .. } => {
                self.settle(key);
                self.state.workspace = Some(workspace.clone());
                self.begin_attempt();
            }
            Event::PrepareFailed { error } => {
                self.settle(key);
                self.fail(FailureReason::Setup { error: error.clone() });
            }
            Event::RepositoryGone { path } => {
                self.settle(key);
                self.escalate(EscalationReason::RepositoryGone { path: path.clone() });
            }
            Event::Unconfigured { error } => {
                self.settle(key);
                self.escalate(EscalationReason::Configuration { error: error.clone() });
            }
            Event::TimeoutReached { timeout: timeout @ Timeout::Wall } => {
                self.stop(Runs::Setup { round: self.state.preparations }, why_of(*timeout));
            }
            event => self.apply_request(&Phase::Preparing, event)?,
        }
        Ok(())
    }

    /// News of the checks of an attempt.
    fn apply_while_checking(&mut self, attempt: AttemptNo, event: &Event) -> Result<(), Illegal> {
        let checks = self.checks_of(attempt);
        match event {
            Event::CheckStarted { .. } => {}
            Event::CheckFinished { result } => self.note_acceptance(attempt, result),
            Event::JudgeStarted { .. } => self.begin_judging(attempt, event),
            // A judge spends it. The work is judged when there is money again.
            Event::SharedBudgetSpent { .. } if self.state.running_judges().next().is_some() => {
                self.stop(checks, StopWhy::SharedBudget);
            }
            Event::JudgeUnavailable { check, agent, account, reason } => {
                self.settle(checks.key());
                self.after_no_opinion(check, agent, account, reason);
            }
            Event::VerdictReached { verdict } => {
                self.settle(checks.key());
                self.after_verdict(attempt, verdict);
            }
            Event::ChecksFailed { error } => {
                self.settle(checks.key());
                self.escalate(EscalationReason::ChecksFailed { error: error.clone() });
            }
            Event::Unconfigured { error } => {
                self.settle(checks.key());
                // It costs no attempt: the work is checked when the goal is resumed.
                self.check_when_resumed();
                self.escalate(EscalationReason::Configuration { error: error.clone() });
            }
            Event::TimeoutReached { timeout: timeout @ Timeout::Wall } => self.stop(checks, why_of(*timeout)),
            event => self.apply_request(&Phase::Checking { attempt }, event)?,
        }
        Ok(())
    }

    /// A request of the operator, which is legal in several phases.
    fn apply_request(&mut self, phase: &Phase, event: &Event) -> Result<(), Illegal> {
        match (phase, event) {
            (_, Event::Answered { question, reply, by }) => self.answer(*question, reply, *by)?,
            (_, Event::MessageSent { text }) => self.receive_message(text)?,
            (phase, Event::Restored { paths, .. }) if phase.is_settled() => {
                self.state.restored |= paths.is_empty();
            }
            (_, Event::CancelRequested) => self.cancel()?,
            (_, Event::PauseRequested { reason }) => self.pause(*reason)?,
            (Phase::Paused { .. }, Event::ResumeRequested) => self.resume(),
            (
                Phase::Escalated {
                    reason: EscalationReason::Auth { .. } | EscalationReason::JudgeUnavailable { .. },
                },
                Event::ResumeRequested,
            ) => {
                // It did not end by its own fault, and has its place still.
                let queued_at = self.state.queued_at;
                self.reopen(&[])?;
                self.state.queued_at = queued_at;
                self.ask_again();
            }
            (Phase::Sleeping { .. } | Phase::Limited { .. }, Event::ResumeRequested) => {
                self.state.unavailable.clear();
                self.state.phase = Phase::Queued;
            }
            (_, Event::RetryRequested { budget, session, model }) => {
                self.retry(budget)?;
                self.choose_session(*session, model.as_ref());
            }
            (_, Event::ChecksReplaced { checks }) => self.replace_checks(checks)?,
            (_, event) => return Err(self.wrong_phase(event)),
        }
        Ok(())
    }

    /// News of an agent that works or waits for an answer.
    fn apply_to_living(
        &mut self,
        attempt: AttemptNo,
        event: &Event,
        incoming: &Incoming,
    ) -> Result<(), Illegal> {
        match event {
            Event::Agent { event } => {
                self.observe(event, incoming);
                self.wait_or_run(attempt);
                self.stop_if_needed(attempt);
            }
            Event::TimeoutReached { timeout } => self.stop(Runs::Agent(attempt), why_of(*timeout)),
            Event::AttemptEnded { end: found, exit, work, changes } => {
                self.settle(launch_key(attempt));
                let end = self.name_end(found, *work);
                self.record_end(end.clone(), exit, *work, changes);
                if end != *found {
                    self.moved.recorded_as = Some(Box::new(with_end(event, &end)));
                }
                self.after_end(attempt, &end);
            }
            Event::AnswerDelivered { question, words } => self.answer_delivered(*question, *words)?,
            Event::AttemptStarted { sandbox } => self.attempt_started(*sandbox),
            Event::SharedBudgetSpent { .. } => self.stop_for_shared_budget(attempt),
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self) {
        self.state.first_started_at.get_or_insert(self.now);
        if self.state.workspace.is_some() {
            self.begin_attempt();
        } else {
            self.state.preparations += 1;
            self.state.phase = Phase::Preparing;
            self.moved.effects.push(Effect::Prepare { round: self.state.preparations });
        }
    }

    fn cancel(&mut self) -> Result<(), Illegal> {
        if matches!(self.before, Phase::Escalated { .. } | Phase::Paused { .. }) {
            self.state.phase = Phase::Cancelled;
        } else if !self.halt(StopWhy::Cancel, Phase::Cancelled) {
            return Err(self.wrong_phase(&Event::CancelRequested));
        }
        Ok(())
    }

    fn retry(&mut self, changes: &[BudgetChange]) -> Result<(), Illegal> {
        // Checks that prove nothing prove nothing the second time, either; others may.
        let hopeless = self.before == Phase::Failed { reason: FailureReason::GreenBefore }
            && self.state.baseline.met() == Some(true);
        let reopens = !hopeless
            && matches!(
                self.before,
                // A message of the operator has queued an escalated goal already.
                Phase::Queued
                    | Phase::Sleeping { .. }
                    | Phase::Limited { .. }
                    | Phase::Escalated { .. }
                    | Phase::Failed { .. }
                    | Phase::Cancelled
                    | Phase::Unproven
            );
        if !reopens {
            return Err(Illegal::WrongPhase { phase: self.before.name(), event: "retry" });
        }
        self.reopen(changes)?;
        if matches!(self.before, Phase::Failed { reason: FailureReason::MissingProgram(_) }) {
            self.state.baseline = Baseline::Pending;
        }
        self.ask_again();
        Ok(())
    }

    /// Queues a goal that had ended or waits, with a clean slate of what went wrong in a row.
    fn reopen(&mut self, changes: &[BudgetChange]) -> Result<(), Illegal> {
        self.may_be_opened()?;
        let mut reopened = self.state.clone();
        changes.iter().for_each(|change| reopened.budget.apply(change));
        reopened.errors_in_row = 0;
        reopened.failed_starts_in_row = 0;
        reopened.same_failure_in_row = 0;
        reopened.denials_in_row = 0;
        reopened.context = crate::ContextState::default();
        reopened.unavailable.clear();
        reopened.outage = crate::Outage::default();
        reopened.guessed_limits_in_row = 0;
        reopened.absent_judge.iter_mut().for_each(AbsentJudge::begin_anew);
        // What was merged is no longer the goal's work.
        reopened.merged = None;
        reopened.first_started_at = self.without_the_wait();
        let spent = match self.overdue_verdict() {
            Some(attempt) => self.spent_for_verdict(attempt, &reopened),
            None => reopened.spent_axis(self.now),
        };
        if let Some(axis) = spent {
            return Err(Illegal::StillSpent { axis });
        }
        if self.before.has_ended() {
            reopened.queued_at = Some(self.now);
        }
        reopened.settled_at = None;
        reopened.phase = Phase::Queued;
        self.state = reopened;
        Ok(())
    }

    /// Fails for a goal that another one continues.
    fn may_be_opened(&self) -> Result<(), Illegal> {
        self.state.continued_by.map_or(Ok(()), |by| Err(Illegal::Continued { by }))
    }

    /// From when wall time counts after a reopening: the time spent waiting for the operator is not the goal's.
    fn without_the_wait(&self) -> Option<Timestamp> {
        let first_started_at = self.state.first_started_at?;
        let waited = self.state.settled_at.map(|settled_at| self.now.duration_since(settled_at));
        let waited = waited.and_then(|waited| waited.try_into().ok()).unwrap_or_default();
        Some(later(first_started_at, waited))
    }

    /// Keeps the time in which the goal worked, and in which it waited, as long as it was. Times of the day stay as they are.
    fn move_clock(&mut self, by_ms: i64) {
        let moved = |at: Timestamp| at.checked_add(SignedDuration::from_millis(by_ms)).unwrap_or(at);
        self.state.first_started_at = self.state.first_started_at.map(moved);
        self.state.settled_at = self.state.settled_at.map(moved);
        self.state.outage.since = self.state.outage.since.map(moved);
        if let Some(absent) = &mut self.state.absent_judge {
            absent.since = absent.since.map(moved);
        }
        if let Baseline::Running { since, until, .. } = &mut self.state.baseline {
            *since = moved(*since);
            *until = until.map(moved);
        }
    }

    fn record_end(&mut self, end: End, exit: &crate::Exit, work: crate::Work, changes: &str) {
        let now = self.now;
        if let Some(attempt) = self.state.attempts.last_mut() {
            attempt.ended_at = Some(now);
            attempt.exit = Some(exit.clone());
            attempt.work = work;
            changes.clone_into(&mut attempt.changes);
            attempt.end = Some(end.clone());
            let attempt = attempt.n;
            self.take_back_undelivered(attempt, &end);
            self.reopen_withdrawn(&end);
        }
    }

    fn settle(&mut self, key: String) {
        self.moved.settled.push(key);
    }

    fn notice(&mut self, text: impl Into<String>) {
        self.moved.events.push(Event::Notice { text: text.into() });
    }

    fn wrong_phase(&self, event: &Event) -> Illegal {
        Illegal::WrongPhase { phase: self.before.name(), event: event.request() }
    }

    fn finish(mut self) -> Step {
        self.stop_baseline_if_needed();
        // A pause counts from the request on: whoever carries it out may be killed before its end.
        let waits = self.state.phase.waits_for_operator() || self.state.phase.is_pausing();
        // What opens a settled goal again has taken the wait out already.
        if (matches!(self.before, Phase::Blocked { .. }) || self.before.is_pausing()) && !waits {
            self.state.first_started_at = self.without_the_wait();
        }
        let since = self.state.settled_at.unwrap_or(self.now);
        self.state.settled_at = waits.then_some(since);
        if !self.state.phase.holds_slot() {
            self.state.dispatched_agent = None;
        }
        if self.state.phase != self.before {
            self.moved.events.push(Event::PhaseChanged { phase: self.state.phase.clone() });
        }
        Step { state: self.state, outcome: StepOutcome::Moved(self.moved) }
    }
}

/// The same event with another end.
fn with_end(event: &Event, end: &End) -> Event {
    let mut event = event.clone();
    if let Event::AttemptEnded { end: found, .. } = &mut event {
        found.clone_from(end);
    }
    event
}
