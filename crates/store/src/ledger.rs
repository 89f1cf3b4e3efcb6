//! What was spent: sums over all goals, also those that were removed since.

use std::ops::{AddAssign, Sub};

use jiff::Timestamp;
use towline_core::{AccountStatus, Attempt, Envelope, GoalState, Usage};

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
        }
    }
}

impl Amounts {
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

/// What to sum up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendQuery {
    /// From this moment on; the quarter of an hour that it is in counts as a whole.
    pub from: Timestamp,
    /// Up to this moment.
    pub until: Timestamp,
    /// Only of this repository or folder.
    pub project: Option<String>,
    /// Only of this account.
    pub account: Option<String>,
    /// One sum for each of these.
    pub by: SpendBy,
}

/// What each sum is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpendBy {
    /// A quarter of an hour, by its beginning.
    Time,
    /// A repository or folder.
    Project,
    Account,
}

/// The total of some ledger rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spending {
    /// What it is about.
    pub key: String,
    /// What was used.
    pub amounts: Amounts,
}

/// The beginning of the quarter of an hour.
pub(crate) fn quarter(at: Timestamp) -> Timestamp {
    let second = at.as_second();
    Timestamp::from_second(second - second.rem_euclid(QUARTER)).unwrap_or(at)
}

/// What an event reports about the account of its attempt.
pub(crate) struct AccountReport<'a> {
    pub(crate) attempt: &'a Attempt,
    pub(crate) status: AccountStatus,
    pub(crate) at: Timestamp,
}

/// What the events of an append report about accounts.
pub(crate) fn account_reports<'a>(
    events: &'a [Envelope],
    state: &'a GoalState,
) -> impl Iterator<Item = AccountReport<'a>> {
    events.iter().filter_map(|new| {
        let attempt = state.attempt(new.attempt?)?;
        let status = AccountStatus::reported_by(&new.event, &attempt.agent, state)?;
        Some(AccountReport { attempt, status, at: new.at })
    })
}
