//! Money and tokens, counted exactly.

use std::fmt;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Dollars in millionths: the smallest unit any provider bills in, so that nothing is rounded away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    /// From a number of dollars as providers and people write it; rounded to the millionth. Negative and
    /// non-finite numbers are no amount.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        let micro = (dollars * 1e6).round();
        // The upper bound keeps the conversion exact; nobody's budget is above nine billion dollars.
        (micro.is_finite() && (0.0..9e15).contains(&micro)).then_some(Self(micro as u64))
    }

    /// As a number of dollars, for JSON.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// What is left of it after `spent`.
    #[must_use]
    pub fn saturating_sub(self, spent: Self) -> Self {
        Self(self.0.saturating_sub(spent.0))
    }
}

/// For people: cents, and for less than ten of them the first two places that are not zero.
impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: u32 = match self.0 {
            1..10 => 6,
            10..1_000 => 5 + u32::from(self.0 < 100),
            1_000..10_000 => 4,
            10_000..100_000 => 3,
            _ => 2,
        };
        let step = 10_u64.pow(6 - places);
        let rounded = self.0.saturating_add(step / 2) / step * step;
        let mut text = format!("${}.{:06}", rounded / 1_000_000, rounded % 1_000_000);
        let cents = text.len() - 4;
        text.truncate(text.trim_end_matches('0').len().max(cents));
        f.pad(&text)
    }
}

impl Add for MicroUsd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// A number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What was used, every kind of token counted apart.
///
/// An amount that was never reported is unknown: `null` in JSON, and 0 in these fields, so that sums count what is known.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(from = "UsageRecord", into = "UsageRecord")]
pub struct Usage {
    /// Input that no cache served.
    pub input: Tokens,
    /// What the model wrote.
    pub output: Tokens,
    /// Input served from a cache.
    pub cache_read: Tokens,
    /// Input written to a cache.
    pub cache_write: Tokens,
    /// The part of `cache_write` that the cache keeps for an hour.
    pub cache_write_1h: Tokens,
    /// What it cost, as far as the agent reports it.
    pub cost: MicroUsd,
    /// What it cost by the list of prices, where the agent does not report it.
    pub estimate: MicroUsd,
    /// Output that the agent does not count yet, by its length. Like `estimate`, it is replaced by the agent's own figure.
    pub written: Tokens,
    /// Which of the zeros were reported.
    pub reported: Reported,
    /// Whether it is a sum of which a part is unknown, so that more was used.
    pub partial: bool,
    /// Tokens for the estimate alone: they are neither stored nor added up.
    pub uncounted: Uncounted,
}

/// Tokens that were counted before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uncounted {
    pub input: Tokens,
    pub output: Tokens,
    pub cache_read: Tokens,
    pub cache_write: Tokens,
    pub cache_write_1h: Tokens,
}

/// Which amounts of a [`Usage`] are known although they may be zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reported {
    /// Input and output.
    pub tokens: bool,
    /// Both amounts of the cache.
    pub cache: bool,
    pub cost: bool,
}

/// A [`Usage`] as it is stored. Earlier versions wrote 0 for what is unknown.
#[derive(PartialEq, Serialize, Deserialize)]
struct UsageRecord {
    input: Option<Tokens>,
    output: Option<Tokens>,
    cache_read: Option<Tokens>,
    cache_write: Option<Tokens>,
    #[serde(default, skip_serializing_if = "is_default")]
    cache_write_1h: Tokens,
    cost: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "is_default")]
    estimate: MicroUsd,
    #[serde(default, skip_serializing_if = "is_default")]
    written: Tokens,
    #[serde(default, skip_serializing_if = "is_default")]
    partial: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl From<Usage> for UsageRecord {
    fn from(usage: Usage) -> Self {
        let tokens = |amount| usage.knows_tokens().then_some(amount);
        let cache = |amount| usage.knows_cache().then_some(amount);
        Self {
            input: tokens(usage.input),
            output: tokens(usage.output),
            cache_read: cache(usage.cache_read),
            cache_write: cache(usage.cache_write),
            cache_write_1h: usage.cache_write_1h,
            cost: (usage.reported.cost || usage.cost != MicroUsd(0)).then_some(usage.cost),
            estimate: usage.estimate,
            written: usage.written,
            partial: usage.partial,
        }
    }
}

impl From<UsageRecord> for Usage {
    fn from(record: UsageRecord) -> Self {
        Self {
            input: record.input.unwrap_or_default(),
            output: record.output.unwrap_or_default(),
            cache_read: record.cache_read.unwrap_or_default(),
            cache_write: record.cache_write.unwrap_or_default(),
            cache_write_1h: record.cache_write_1h,
            cost: record.cost.unwrap_or_default(),
            estimate: record.estimate,
            written: record.written,
            reported: Reported {
                tokens: record.input.is_some(),
                cache: record.cache_read.is_some(),
                cost: record.cost.is_some(),
            },
            partial: record.partial,
            uncounted: Uncounted::default(),
        }
    }
}

/// Equal is what means the same: an amount above zero is known whether or not it is marked.
impl PartialEq for Usage {
    fn eq(&self, other: &Self) -> bool {
        UsageRecord::from(*self) == UsageRecord::from(*other)
    }
}

impl Eq for Usage {}

impl Usage {
    /// Nothing, and all of it is known.
    pub fn nothing() -> Self {
        Self { reported: Reported { tokens: true, cache: true, cost: true }, ..Self::default() }
    }

    /// All tokens of every kind, estimates included, as far as they are known.
    pub fn tokens(&self) -> Tokens {
        self.input + self.output + self.written + self.cache_read + self.cache_write
    }

    /// All that its estimate is about.
    #[must_use]
    pub fn with_uncounted(self) -> Self {
        let Uncounted { input, output, cache_read, cache_write, cache_write_1h } = self.uncounted;
        let output = output + self.written;
        Self { written: Tokens(0), ..self }
            + Self { input, output, cache_read, cache_write, cache_write_1h, ..Self::default() }
    }

    /// What it cost, estimates included, as far as it is known.
    pub fn spent(&self) -> Spent {
        Spent {
            amount: self.cost + self.estimate,
            estimated: self.estimate != MicroUsd(0),
            partial: self.partial,
        }
    }

    /// Whether tokens were reported.
    pub fn knows_tokens(&self) -> bool {
        self.reported.tokens || self.input + self.output != Tokens(0)
    }

    /// Whether tokens of the cache were reported.
    pub fn knows_cache(&self) -> bool {
        self.reported.cache || self.cache_read + self.cache_write != Tokens(0)
    }

    /// Whether the cost was reported or could be estimated.
    pub fn knows_cost(&self) -> bool {
        self.reported.cost || self.cost + self.estimate != MicroUsd(0)
    }

    /// Adds what an agent used next. Its own figure is about everything that it used before, too, so that it replaces what
    /// was estimated until then.
    pub fn record(&mut self, used: Self) {
        if used.cost != MicroUsd(0) {
            self.estimate = MicroUsd(0);
            self.written = Tokens(0);
        }
        *self += used;
    }

    /// The sum with what somebody else used, which is partial where only one of the two is known.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let differs = self.knows_tokens() != other.knows_tokens() || self.knows_cost() != other.knows_cost();
        Self { partial: self.partial || other.partial || differs, ..self + other }
    }

    /// Whether nothing at all was used, as far as it is known.
    pub fn is_empty(&self) -> bool {
        self.tokens() == Tokens(0) && self.spent().amount == MicroUsd(0)
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
            cache_write_1h: self.cache_write_1h + other.cache_write_1h,
            cost: self.cost + other.cost,
            estimate: self.estimate + other.estimate,
            written: self.written + other.written,
            reported: Reported {
                tokens: self.reported.tokens || other.reported.tokens,
                cache: self.reported.cache || other.reported.cache,
                cost: self.reported.cost || other.reported.cost,
            },
            partial: self.partial || other.partial,
            uncounted: Uncounted::default(),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// An amount of money that was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// All of it.
    pub amount: MicroUsd,
    /// Whether a part of it is an estimate.
    pub estimated: bool,
    /// Whether a part of it is unknown, so that more was spent.
    pub partial: bool,
}

/// For people: an estimate begins with a tilde, and what is at least so much ends with a plus.
impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.estimated { "~" } else { "" };
        let more = if self.partial { "+" } else { "" };
        f.pad(&format!("{sign}{}{more}", self.amount))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_own_figure_replaces_the_estimate_and_later_estimates_add_to_it() {
        let mut sum = Usage::default();
        let mut shown = |used: Usage| {
            sum.record(used);
            (sum.input.0, sum.spent().to_string())
        };
        let estimate = |micro| Usage { input: Tokens(1), estimate: MicroUsd(micro), ..Usage::default() };
        assert_eq!(shown(estimate(100_000)), (1, "~$0.10".to_owned()));
        assert_eq!(shown(estimate(20_000)), (2, "~$0.12".to_owned()));
        assert_eq!(shown(Usage { cost: MicroUsd(110_000), ..Usage::default() }), (2, "$0.11".to_owned()));
        assert_eq!(shown(estimate(100_000)), (3, "~$0.21".to_owned()));
        assert_eq!(shown(Usage { input: Tokens(4), ..Usage::default() }), (7, "~$0.21".to_owned()));
    }

    #[test]
    fn output_that_is_estimated_counts_until_the_agents_own_figure_replaces_it() {
        let mut sum = Usage::default();
        let written = Usage { input: Tokens(10), written: Tokens(300), ..Usage::default() };
        sum.record(written);
        assert_eq!((sum.tokens(), sum.output), (Tokens(310), Tokens(0)));
        let stored = serde_json::to_string(&sum).expect("JSON");
        assert_eq!(serde_json::from_str::<Usage>(&stored).expect("usage").tokens(), Tokens(310));
        sum.record(Usage { output: Tokens(250), cost: MicroUsd(1), ..Usage::default() });
        assert_eq!(sum.tokens(), Tokens(260));
        let priced = Usage { uncounted: Uncounted { output: Tokens(1), ..Uncounted::default() }, ..written };
        assert_eq!(
            (priced.with_uncounted().output, priced.with_uncounted().tokens()),
            (Tokens(301), Tokens(311))
        );
    }

    #[test]
    fn usage_that_was_stored_without_estimates_is_read() {
        let stored = r#"{"input":1,"output":2,"cache_read":3,"cache_write":4,"cost":5}"#;
        let usage: Usage = serde_json::from_str(stored).expect("usage");
        assert_eq!((usage.cost, usage.estimate, usage.cache_write_1h), (MicroUsd(5), MicroUsd(0), Tokens(0)));
        assert_eq!(serde_json::to_string(&usage).expect("JSON"), stored);
    }

    #[test]
    fn what_was_not_reported_is_null_and_a_reported_zero_is_zero() {
        let silent = Usage { input: Tokens(1), ..Usage::default() };
        let stored = r#"{"input":1,"output":0,"cache_read":null,"cache_write":null,"cost":null}"#;
        assert_eq!(serde_json::to_string(&silent).expect("JSON"), stored);
        assert_eq!(serde_json::from_str::<Usage>(stored).expect("usage"), silent);
        let nothing = serde_json::to_string(&Usage::nothing()).expect("JSON");
        assert_eq!(nothing, r#"{"input":0,"output":0,"cache_read":0,"cache_write":0,"cost":0}"#);
        assert_ne!(serde_json::from_str::<Usage>(&nothing).expect("usage"), Usage::default());
    }

    #[test]
    fn a_sum_is_partial_where_only_a_part_of_it_is_known() {
        let paid = Usage { input: Tokens(1), cost: MicroUsd(100_000), ..Usage::default() };
        let silent = Usage { input: Tokens(2), ..Usage::default() };
        let sums = [paid.and(paid), paid.and(silent), silent.and(silent), paid.and(silent).and(paid)];
        let shown = sums.map(|sum| (sum.input.0, sum.knows_cost(), sum.spent().to_string()));
        let wanted = [
            (2, true, "$0.20".to_owned()),
            (3, true, "$0.10+".to_owned()),
            (4, false, "$0.00".to_owned()),
            (4, true, "$0.20+".to_owned()),
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn dollars_keep_six_places() {
        assert_eq!(MicroUsd::from_dollars(0.004), Some(MicroUsd(4_000)));
        assert_eq!(MicroUsd::from_dollars(0.003_075_000_000_000_000_5), Some(MicroUsd(3_075)));
        assert_eq!(MicroUsd(3_075).dollars(), 0.003_075);
    }

    #[test]
    fn dollars_are_shown_as_people_read_them() {
        for (micro, shown) in [
            (0, "$0.00"),
            (7, "$0.000007"),
            (42, "$0.000042"),
            (420, "$0.00042"),
            (999, "$0.001"),
            (3_075, "$0.0031"),
            (4_000, "$0.004"),
            (42_300, "$0.042"),
            (50_000, "$0.05"),
            (99_960, "$0.10"),
            (423_700, "$0.42"),
            (1_200_000, "$1.20"),
            (1_234_567_890, "$1234.57"),
        ] {
            assert_eq!(MicroUsd(micro).to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for dollars in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(MicroUsd::from_dollars(dollars), None, "{dollars}");
        }
    }
}
