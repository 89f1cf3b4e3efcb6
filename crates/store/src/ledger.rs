//! What was spent: sums over all goals, also those that were removed since.

use std::collections::BTreeMap;
use std::ops::{AddAssign, Sub};

use jiff::Timestamp;
use towline_core::{AccountStatus, AgentName, Attempt, Envelope, Event, GoalState, Judging, MicroUsd, Usage};

/// The time that one row is about, in seconds: the days of every time zone are made of quarters of an hour.
const QUARTER: i64 = 15 * 60;

/// What was used; none where no agent reported it. An amount can be below zero, where an agent's own figure is lower than
/// what was estimated before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Tokens of input that no cache served.
    pub input: Option<i64>,
    /// Tokens that the model wrote.
    pub output: Option<i64>,
    /// Tokens of input from a cache.
    pub cache_read: Option<i64>,
    /// Tokens of input written to a cache.
    pub cache_write: Option<i64>,
    /// Millionths of a dollar that agents reported.
    pub cost: Option<i64>,
    /// Millionths of a dollar that were estimated where agents did not report them.
    pub estimate: i64,
    /// Whether an attempt among them did not report its tokens, so that more were used.
    pub lacks_tokens: bool,
    /// Whether the cost of tokens among them was neither reported nor estimated, so that more was spent.
    pub lacks_cost: bool,
}

impl From<Usage> for Amounts {
    fn from(usage: Usage) -> Self {
        let amount = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        let known = |is_known: bool, number: u64| is_known.then(|| amount(number));
        let (tokens, cache) = (usage.knows_tokens(), usage.knows_cache());
        Self {
            input: known(tokens, usage.input.0),
            output: known(tokens, usage.output.0),
            cache_read: known(cache, usage.cache_read.0),
            cache_write: known(cache, usage.cache_write.0),
            cost: known(usage.reported.cost || usage.cost.0 != 0, usage.cost.0),
            estimate: amount(usage.estimate.0),
            ..Self::default()
        }
    }
}

impl Amounts {
    /// What an attempt used. One that never reached the model used nothing, which is known.
    pub(crate) fn of(attempt: &Attempt) -> Self {
        if attempt.may_have_used() { attempt.usage } else { Usage::nothing() }.into()
    }

    /// Both amounts, combined by `with`. What only one of them has is known.
    fn zip(self, other: Self, with: impl Fn(i64, i64) -> i64) -> Self {
        let known = |one: Option<i64>, other: Option<i64>| {
            one.or(other).map(|_| with(one.unwrap_or_default(), other.unwrap_or_default()))
        };
        Self {
            input: known(self.input, other.input),
            output: known(self.output, other.output),
            cache_read: known(self.cache_read, other.cache_read),
            cache_write: known(self.cache_write, other.cache_write),
            cost: known(self.cost, other.cost),
            estimate: with(self.estimate, other.estimate),
            lacks_tokens: self.lacks_tokens || other.lacks_tokens,
            lacks_cost: self.lacks_cost || other.lacks_cost,
        }
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Self) {
        *self = self.zip(other, i64::saturating_add);
    }
}

impl Sub for Amounts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.zip(other, i64::saturating_sub)
    }
}

/// What each sum is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpendBy {
    /// A quarter of an hour, by its beginning.
    Time,
    /// A repository or folder.
    Project,
    Account,
    Agent,
    /// The model that the agent reported; empty if it reported none.
    Model,
    Goal,
}

/// The total of some ledger rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spending {
    /// What it is about.
    pub key: String,
    /// What was used.
    pub amounts: Amounts,
}

/// Money that was spent in each project, with estimates. What no agent reported is not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpentByProject(BTreeMap<String, i64>);

impl SpentByProject {
    pub(crate) fn add(&mut self, project: String, micro: i64) {
        let sum = self.0.entry(project).or_default();
        *sum = sum.saturating_add(micro);
    }

    /// What was spent in one project.
    pub fn of(&self, project: &str) -> MicroUsd {
        above_zero(self.0.get(project).copied().unwrap_or_default())
    }

    /// What was spent in all projects.
    pub fn in_all(&self) -> MicroUsd {
        above_zero(self.0.values().fold(0, |sum: i64, micro| sum.saturating_add(*micro)))
    }
}

/// A time in which an estimate was corrected and nothing was spent has a sum below zero.
fn above_zero(micro: i64) -> MicroUsd {
    MicroUsd(u64::try_from(micro).unwrap_or_default())
}

/// How many attempts of an agent count for what it usually costs: the last ones that cost something.
pub(crate) const COSTS_COUNTED: usize = 20;

/// Among how many they are looked for: an outage may have cost some hundred attempts without an answer.
pub(crate) const COSTS_LOOKED_AT: usize = 500;

/// The middle one of some costs in millionths of a dollar.
pub(crate) fn median(mut costs: Vec<u64>) -> MicroUsd {
    costs.sort_unstable();
    MicroUsd(costs.get(costs.len() / 2).copied().unwrap_or_default())
}

/// The beginning of the quarter of an hour.
pub(crate) fn quarter(at: Timestamp) -> Timestamp {
    let second = at.as_second();
    Timestamp::from_second(second - second.rem_euclid(QUARTER)).unwrap_or(at)
}

/// Who used something: an attempt, or a judge of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spender<'a> {
    /// The attempt's number; that of a judge below zero. No attempt has such a number, so the rows of the two never meet.
    pub(crate) number: i64,
    pub(crate) agent: &'a AgentName,
    /// The account of a judge. That of an attempt is the one that its goal names.
    pub(crate) account: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) amounts: Amounts,
}

impl<'a> Spender<'a> {
    fn attempt(attempt: &'a Attempt) -> Self {
        Self {
            number: i64::from(attempt.n.get()),
            agent: &attempt.agent,
            account: None,
            model: attempt.model.as_deref(),
            amounts: Amounts::of(attempt),
        }
    }

    fn judge(judge: &'a Judging) -> Self {
        let used = if judge.may_have_used() { judge.usage } else { Usage::nothing() };
        Self {
            number: -i64::from(judge.n),
            agent: &judge.agent,
            account: Some(&judge.account),
            model: judge.model.as_deref(),
            amounts: used.into(),
        }
    }
}

/// Attempts and judges that have used something else than the state before knew, or have ended without a word about it: an append can
/// end one attempt and begin the next. Without a state before, only the newest attempt and judge can have.
pub(crate) fn changed_usage<'a>(
    state: &'a GoalState,
    before: Option<&'a GoalState>,
) -> impl Iterator<Item = Spender<'a>> {
    let newest = state.last_attempt().map(|attempt| attempt.n);
    let is_changed = move |attempt: &Attempt| match before.map(|before| before.attempt(attempt.n)) {
        Some(Some(known)) => {
            (Spender::attempt(known), known.ended_at.is_some())
                != (Spender::attempt(attempt), attempt.ended_at.is_some())
        }
        Some(None) => true,
        None => Some(attempt.n) == newest,
    };
    // One that took no prompt has used nothing.
    let is_silent = |attempt: &Attempt| attempt.ended_at.is_some() && attempt.turns > 0;
    let counts = move |attempt: &Attempt| !attempt.usage.is_empty() || is_silent(attempt);
    let attempts = state.attempts.iter().filter(move |attempt| counts(attempt) && is_changed(attempt));
    attempts.map(Spender::attempt).chain(changed_judges(state, before))
}

fn changed_judges<'a>(
    state: &'a GoalState,
    before: Option<&'a GoalState>,
) -> impl Iterator<Item = Spender<'a>> {
    let newest = state.judges.last().map(|judge| judge.n);
    let known = move |n| before?.judges.iter().find(|judge| judge.n == n);
    let is_changed = move |judge: &Judging| match known(judge.n) {
        Some(known) => Spender::judge(known) != Spender::judge(judge) || known.end != judge.end,
        None => before.is_some() || Some(judge.n) == newest,
    };
    let judges = state.judges.iter().filter(move |judge| judge.may_have_used() && is_changed(judge));
    judges.map(Spender::judge)
}

/// What an event reports about the account of its attempt or judge.
pub(crate) struct AccountReport<'a> {
    pub(crate) agent: &'a AgentName,
    /// The account of a judge. That of an attempt is the one that its goal names.
    pub(crate) account: Option<&'a str>,
    /// When the attempt or the judge began.
    pub(crate) started_at: Timestamp,
    pub(crate) status: AccountStatus,
    pub(crate) at: Timestamp,
}

/// What the events of an append report about accounts.
pub(crate) fn account_reports<'a>(
    events: &'a [Envelope],
    state: &'a GoalState,
) -> impl Iterator<Item = AccountReport<'a>> {
    events.iter().filter_map(|new| {
        let (agent, account, started_at) = match &new.event {
            Event::JudgeEnded { n, .. } => {
                let judge = state.judges.iter().find(|judge| judge.n == *n)?;
                (&judge.agent, Some(judge.account.as_str()), judge.started_at)
            }
            Event::JudgeUnavailable { agent, account, .. } => (agent, Some(account.as_str()), new.at),
            _ => {
                let attempt = state.attempt(new.attempt?)?;
                (&attempt.agent, None, attempt.started_at)
            }
        };
        let status = AccountStatus::reported_by(&new.event, agent, state)?;
        Some(AccountReport { agent, account, started_at, status, at: new.at })
    })
}
