//! What judges report while checks run: that they begin, what they use, and how they end. It moves the goal nowhere; the verdict
//! does, or the report that a judge gave none.

use jiff::Timestamp;

use super::Stepper;
use crate::deadlines::later;
use crate::{
    AbsentJudge, AgentName, AttemptNo, CheckResult, End, EscalationReason, Event, FailureReason, Judging,
    NoOpinion, Phase, Policy, Usage,
};

impl Stepper<'_> {
    /// An agent is about to be asked. One that is recorded already changes nothing.
    pub(super) fn begin_judging(&mut self, attempt: AttemptNo, event: &Event) {
        let Event::JudgeStarted { n, check, agent, account, model, directory, tree } = event else { return };
        if self.state.judges.iter().any(|judge| judge.n == *n) {
            return;
        }
        self.fold_old_judges();
        self.state.judges.push(Judging {
            n: *n,
            attempt,
            check: check.clone(),
            agent: agent.clone(),
            account: account.clone(),
            model: model.clone(),
            directory: directory.clone(),
            started_at: self.now,
            ended_at: None,
            end: None,
            usage: Usage::default(),
            tree: tree.clone(),
            accepted: None,
        });
    }

    /// Keeps of the oldest conversations only what they used: the state is stored with every step.
    fn fold_old_judges(&mut self) {
        let may_go = |judge: &Judging| judge.ended_at.is_some() && judge.accepted.is_none();
        while self.state.judges.len() >= Policy::JUDGES_LISTED
            && let Some(oldest) = self.state.judges.iter().position(may_go)
        {
            let judge = self.state.judges.remove(oldest);
            if judge.may_have_used() {
                let before = self.state.used_by_older_judges;
                self.state.used_by_older_judges =
                    Some(before.map_or(judge.usage, |before| before.and(judge.usage)));
            }
        }
    }

    /// What a judge used is a sum, so the same report twice counts once.
    pub(super) fn follow_judge(&mut self, event: &Event) {
        let (Event::JudgeUsed { n, .. } | Event::JudgeEnded { n, .. }) = event else { return };
        let now = self.now;
        let Some(judge) = self.state.judges.iter_mut().find(|judge| judge.n == *n) else { return };
        match event {
            Event::JudgeUsed { model, used, .. } => {
                // What is recorded stays spent, whatever is left of its logs.
                if used.tokens() >= judge.usage.tokens() {
                    judge.usage = *used;
                }
                judge.model = model.clone().or(judge.model.take());
            }
            Event::JudgeEnded { end, .. } => {
                judge.end = Some(end.clone());
                judge.ended_at.get_or_insert(now);
            }
            _ => {}
        }
    }

    /// What a judge accepted need not be asked again as long as there is no verdict: another judge may have to be waited for.
    pub(super) fn note_acceptance(&mut self, attempt: AttemptNo, result: &CheckResult) {
        // A result from before is about the tree of the judge that has it, which need not be that of the last one.
        let is_from_before = self.state.judges.iter().any(|judge| judge.accepted.as_ref() == Some(result));
        let is_its = |judge: &&mut Judging| judge.attempt == attempt && judge.check == result.name;
        if let Some(judge) = self.state.judges.last_mut().filter(is_its)
            && result.met
            && !is_from_before
            && judge.end == Some(End::Completed)
        {
            judge.accepted = Some(result.clone());
        }
    }

    /// There is a verdict, or there are other checks.
    pub(super) fn forget_acceptances(&mut self) {
        self.state.judges.iter_mut().for_each(|judge| judge.accepted = None);
    }

    /// How many conversations with the judge of this check used something since this one. One that was stopped by us did not fail.
    fn paid_since(&self, counted: u32, check: &str) -> u32 {
        let attempt = self.state.last_attempt().map(|attempt| attempt.n);
        let is_new =
            |judge: &&Judging| judge.n > counted && judge.check == check && Some(judge.attempt) == attempt;
        let failed = |judge: &&Judging| {
            judge.may_have_used() && judge.accepted.is_none() && judge.end != Some(End::Interrupted)
        };
        let new = self.state.judges.iter().rev().take_while(is_new);
        u32::try_from(new.filter(failed).count()).unwrap_or(u32::MAX)
    }

    /// Until when the goal waits for the quota of a judge, and whether that is a guess.
    fn limit_of_judge(&self, until: Option<Timestamp>, guessed: bool, guesses: u32) -> (Timestamp, bool) {
        let (known, is_guess) = Policy::limited_until(until, guesses, self.now);
        if !guessed {
            return (known, is_guess);
        }
        // A guess about the account does not know how often the goal has waited already.
        (known.max(Policy::limited_until(None, guesses, self.now).0), true)
    }

    /// What follows where a judge gave no verdict. It costs neither an attempt nor an error: the work is checked again when the goal
    /// goes on.
    pub(super) fn after_no_opinion(
        &mut self,
        check: &str,
        agent: &AgentName,
        account: &str,
        reason: &NoOpinion,
    ) {
        self.check_when_resumed();
        let before = self.state.absent_judge.take().filter(|absent| absent.account == account);
        let before = before.unwrap_or_default();
        let paid = self.paid_since(before.counted, check);
        let counted = self.state.judges.last().map_or(0, |judge| judge.n);
        let mut absent = AbsentJudge { account: account.to_owned(), at: self.now, counted, ..before };
        let needs_person = |problem: String| EscalationReason::JudgeUnavailable {
            check: check.to_owned(),
            agent: agent.to_string(),
            problem,
        };
        match reason {
            NoOpinion::Limited { until, guessed } => {
                let (until, is_guess) = self.limit_of_judge(*until, *guessed, absent.guesses);
                let guesses = if is_guess { absent.guesses.saturating_add(1) } else { 0 };
                absent.begin_anew();
                absent.guesses = guesses;
                self.state.phase = Phase::Limited { until, guessed: is_guess };
            }
            NoOpinion::Unreachable { message } => {
                absent.tries = absent.tries.saturating_add(1);
                absent.paid = if paid > 0 { absent.paid.saturating_add(paid) } else { 0 };
                let since = *absent.since.get_or_insert(self.now);
                let hours = Policy::LONGEST_OUTAGE.as_secs() / 3_600;
                if later(since, Policy::LONGEST_OUTAGE) <= self.now {
                    self.escalate(needs_person(format!("it did not answer for {hours} hours: {message}")));
                } else if absent.paid >= Policy::JUDGE_FAILURES {
                    let times = absent.paid;
                    let problem =
                        format!("it used the model {times} times in a row and did not answer: {message}");
                    self.escalate(needs_person(problem));
                } else {
                    let until = later(self.now, Policy::judge_pause(absent.tries));
                    let reason = format!("the judge `{agent}` does not answer: {message}");
                    self.state.phase = Phase::Sleeping { until, reason };
                }
            }
            NoOpinion::Budget { axis } => {
                self.with_attempt(|last| last.over_budget = Some(*axis));
                self.fail(FailureReason::Budget { axis: *axis });
            }
            NoOpinion::Unusable { message } => self.escalate(needs_person(message.clone())),
        }
        self.state.absent_judge = Some(absent);
    }
}
