//! What was spent: sums over all goals, also those that were removed since.

use std::ops::{AddAssign, Sub};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use towline_core::{AccountStatus, Attempt, Envelope, GoalState, Usage};

/// The time that one row is about, in seconds: the days of every time zone are made of quarters of an hour.
const QUARTER: i64 = 15 * 60;

/// What was used. An amount can be below zero, where an agent's own figure is lower than what was estimated before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Tokens of input that no cache served.
    pub input: i64,
    /// Tokens that the model wrote.
    pub output: i64,
    /// Tokens of input from a cache.
    pub cache_read: i64,
    /// Tokens of input written to a cache.
    pub cache_write: i64,
    /// Millionths of a dollar that agents reported.
    pub cost: i64,
    /// Millionths of a dollar that were estimated where agents did not report them.
    pub estimate: i64,
}

impl From<Usage> for Amounts {
    fn from(usage: Usage) -> Self {
        let amount = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        Self {
            input: amount(usage.input.0),
            output: amount(usage.output.0),
            cache_read: amount(usage.cache_read.0),
            cache_write: amount(usage.cache_write.0),
            cost: amount(usage.cost.0),
            estimate: amount(usage.estimate.0),
        }
    }
}

impl Amounts {
    /// Both amounts, combined by `with`.
    fn zip(self, other: Self, with: impl Fn(i64, i64) -> i64) -> Self {
        Self {
            input: with(self.input, other.input),
            output: with(self.output, other.output),
            cache_read: with(self.cache_read, other.cache_read),
            cache_write: with(self.cache_write, other.cache_write),
            cost: with(self.cost, other.cost),
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
    /// A quarter of an hour, by its beginning. See [`by_day`].
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

/// Sums by time as sums by day, in this time zone.
pub fn by_day(spending: &[Spending], zone: &TimeZone) -> Vec<(Date, Amounts)> {
    let mut days: Vec<(Date, Amounts)> = Vec::new();
    for Spending { key, amounts } in spending {
        let Ok(at) = key.parse::<Timestamp>() else { continue };
        let day = zone.to_datetime(at).date();
        match days.last_mut() {
            Some((last, sum)) if *last == day => *sum += *amounts,
            _ => days.push((day, *amounts)),
        }
    }
    days
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_time_zone() {
        let at = |time: &str, cost| Spending {
            key: quarter(time.parse().expect("a time")).to_string(),
            amounts: Amounts { cost, ..Amounts::default() },
        };
        let spending = [
            at("2026-03-01T18:14:59Z", 1),
            at("2026-03-01T18:15:00Z", 2),
            at("2026-03-01T23:59:00Z", 4),
            at("2026-03-02T00:00:00Z", 8),
        ];
        let costs = |hours, minutes| {
            let offset = jiff::tz::Offset::from_seconds(hours * 3_600 + minutes * 60).expect("an offset");
            let days = by_day(&spending, &TimeZone::fixed(offset));
            days.iter().map(|(day, amounts)| (day.day(), amounts.cost)).collect::<Vec<_>>()
        };
        assert_eq!(costs(0, 0), [(1, 7), (2, 8)]);
        assert_eq!(costs(5, 45), [(1, 1), (2, 14)], "Kathmandu");
        assert_eq!(costs(-8, 0), [(1, 15)]);
    }
}
