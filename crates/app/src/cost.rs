//! What was spent, out of the ledger.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use towline_api::{CostLine, CostReport, UsageReport};
use towline_core::{GoalId, MicroUsd, parse_duration};
use towline_store::{Amounts, SpendBy, Spending, Store};

use crate::context::Context;
use crate::error::Error;
use crate::rules::day_around;

/// What each line of a report on costs is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CostBy {
    #[default]
    Day,
    Project,
    Account,
    Agent,
    Model,
    Goal,
}

impl CostBy {
    /// All of them, by name.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("day", Self::Day),
        ("project", Self::Project),
        ("account", Self::Account),
        ("agent", Self::Agent),
        ("model", Self::Model),
        ("goal", Self::Goal),
    ];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, by)| *by == self).map_or("", |(name, _)| name)
    }

    const fn of_ledger(self) -> SpendBy {
        match self {
            Self::Day => SpendBy::Time,
            Self::Project => SpendBy::Project,
            Self::Account => SpendBy::Account,
            Self::Agent => SpendBy::Agent,
            Self::Model => SpendBy::Model,
            Self::Goal => SpendBy::Goal,
        }
    }
}

/// The beginning of the day that is meant: `7d` is seven days ago, `2026-11-01` is a date, `today` is today.
pub fn since(given: &str, now: Timestamp, time_zone: &TimeZone) -> Result<Timestamp, Error> {
    let refused = || {
        Error::usage(format!("cannot count from `{given}`"))
            .hint("give a number of days, such as 7d, or a date, such as 2026-11-01")
    };
    if let Ok(date) = given.parse::<Date>() {
        return Ok(date.to_zoned(time_zone.clone()).map_err(|_| refused())?.timestamp());
    }
    let ago =
        if given == "today" { Default::default() } else { parse_duration(given).map_err(|_| refused())? };
    let ago = SignedDuration::try_from(ago).map_err(|_| refused())?;
    let from = now.checked_sub(ago).map_err(|_| refused())?;
    Ok(day_around(from, time_zone).0)
}

/// What was spent from `since` on. Days are those of the time zone.
pub async fn cost(
    context: &Context,
    by: CostBy,
    since: Timestamp,
    time_zone: &TimeZone,
) -> Result<CostReport, Error> {
    let state = context.existing_state()?;
    let sums = match &state {
        Some(state) => state.store.spending(since, by.of_ledger()).await?,
        None => Vec::new(),
    };
    let mut total = Amounts::default();
    sums.iter().for_each(|sum| total += sum.amounts);
    let sums = if by == CostBy::Day { by_day(sums, time_zone) } else { sums };
    let mut lines = Vec::new();
    for Spending { key, amounts } in sums {
        let title = match (&state, by) {
            (Some(state), CostBy::Goal) => title(state.store.as_ref(), &key).await,
            _ => None,
        };
        lines.push(CostLine { key, title, usage: usage(amounts) });
    }
    if by != CostBy::Day {
        lines.sort_by(|one, other| {
            other.usage.cost_usd.unwrap_or(0.0).total_cmp(&one.usage.cost_usd.unwrap_or(0.0))
        });
    }
    let time_zone = time_zone.iana_name().map_or_else(|| offset(time_zone, since), str::to_owned);
    Ok(CostReport { by: by.name().to_owned(), time_zone, since, lines, total: usage(total) })
}

/// A time zone without a name, by its offset.
fn offset(time_zone: &TimeZone, at: Timestamp) -> String {
    format!("UTC{}", time_zone.to_offset(at))
}

/// The sums of quarters of an hour, put together by calendar days.
fn by_day(sums: Vec<Spending>, time_zone: &TimeZone) -> Vec<Spending> {
    let mut days: BTreeMap<String, Amounts> = BTreeMap::new();
    for Spending { key, amounts } in sums {
        // The ledger's own times can be read; others are listed as they are.
        let day = key.parse::<Timestamp>().map(|at| at.to_zoned(time_zone.clone()).date().to_string());
        *days.entry(day.unwrap_or(key)).or_default() += amounts;
    }
    days.into_iter().map(|(key, amounts)| Spending { key, amounts }).collect()
}

async fn title(store: &dyn Store, key: &str) -> Option<String> {
    let goal: GoalId = key.parse().ok()?;
    Some(store.load(goal).await.ok()?.goal.title)
}

/// Corrections can make a sum of rows negative for a while; the amount spent is never below zero.
fn usage(amounts: Amounts) -> UsageReport {
    let count = |amount: Option<i64>| amount.map(|amount| u64::try_from(amount).unwrap_or_default());
    let spent = amounts.cost.unwrap_or_default().saturating_add(amounts.estimate);
    let is_known = amounts.cost.is_some() || amounts.estimate != 0;
    let dollars = MicroUsd(u64::try_from(spent).unwrap_or_default()).dollars();
    UsageReport {
        input: count(amounts.input),
        output: count(amounts.output),
        cache_read: count(amounts.cache_read),
        cache_write: count(amounts.cache_write),
        cost_usd: is_known.then_some(dollars),
        estimated: amounts.estimate != 0,
        // Where nothing is known, nothing is missing from a sum either.
        partial: amounts.lacks_cost && is_known || amounts.lacks_tokens && amounts.input.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_neither_nothing_nor_hidden_in_a_sum() {
        let unknown = Amounts { lacks_tokens: true, lacks_cost: true, ..Amounts::default() };
        let nothing_known = usage(unknown);
        assert_eq!((nothing_known.cost_usd, nothing_known.input, nothing_known.partial), (None, None, false));
        let mut sum = Amounts { input: Some(2), cost: Some(5_000_000), ..Amounts::default() };
        sum += unknown;
        let part_known = usage(sum);
        assert_eq!((part_known.cost_usd, part_known.input, part_known.partial), (Some(5.0), Some(2), true));
        let dollars_only = Amounts { cost: Some(1_000_000), lacks_tokens: true, ..Amounts::default() };
        let tokens_only = Amounts { input: Some(2), lacks_cost: true, ..Amounts::default() };
        for (amounts, partial) in [(dollars_only, false), (tokens_only, false)] {
            assert_eq!(usage(amounts).partial, partial, "no attempt reports it: {amounts:?}");
        }
        let mut both = dollars_only;
        both += tokens_only;
        assert!(usage(both).partial);
    }

    #[test]
    fn a_day_is_one_of_the_time_zone() {
        let kolkata = TimeZone::fixed(jiff::tz::offset(5));
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let spent = |key: &str, cost| Spending {
            key: key.to_owned(),
            amounts: Amounts { cost: Some(cost), ..Amounts::default() },
        };
        let sums =
            ["2026-11-17T18:45:00Z", "2026-11-17T19:00:00Z", "2026-11-18T18:45:00Z"].map(|key| spent(key, 1));
        assert_eq!(by_day(sums.to_vec(), &kolkata), [spent("2026-11-17", 1), spent("2026-11-18", 2)]);
        let now = at("2026-11-18T20:00:00Z");
        let from = |given: &str| since(given, now, &kolkata).map_err(|error| error.message());
        assert_eq!(from("today"), Ok(at("2026-11-18T19:00:00Z")));
        assert_eq!(from("1d"), Ok(at("2026-11-17T19:00:00Z")));
        assert_eq!(from("2026-11-01"), Ok(at("2026-10-31T19:00:00Z")));
        assert_eq!(from("soon"), Err("cannot count from `soon`".to_owned()));
    }
}
