//! What may be spent on a goal.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration::{parse_duration, show_duration};
use crate::names::{name_of, value_named};
use crate::{GoalState, MicroUsd, Phase, Tokens};

/// Limits; an axis that is left out has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Prompts given to agents.
    pub turns: Option<u64>,
    /// Attempts that count.
    pub attempts: Option<u64>,
    /// Time since the goal first started, without the time in which it waited for the operator.
    pub wall: Option<Duration>,
    /// Tokens of every kind.
    pub tokens: Option<Tokens>,
    pub usd: Option<MicroUsd>,
    /// Bad endings in a row.
    pub errors: Option<u64>,
    /// Refused permissions in a row.
    pub denials: Option<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { attempts: Some(10), errors: Some(5), denials: Some(5), ..Self::NONE }
    }
}

impl Budget {
    /// No limit at all.
    pub const NONE: Self = Self {
        turns: None,
        attempts: None,
        wall: None,
        tokens: None,
        usd: None,
        errors: None,
        denials: None,
    };

    /// These limits, and on the other axes those of `below`.
    #[must_use]
    pub fn or(self, below: Self) -> Self {
        Self {
            turns: self.turns.or(below.turns),
            attempts: self.attempts.or(below.attempts),
            wall: self.wall.or(below.wall),
            tokens: self.tokens.or(below.tokens),
            usd: self.usd.or(below.usd),
            errors: self.errors.or(below.errors),
            denials: self.denials.or(below.denials),
        }
    }

    /// The limit of an axis in its own unit: seconds for `wall`, micro-dollars for `usd`.
    pub fn limit(&self, axis: Axis) -> Option<u64> {
        match axis {
            Axis::Turns => self.turns,
            Axis::Attempts => self.attempts,
            Axis::Wall => self.wall.map(|wall| wall.as_secs()),
            Axis::Tokens => self.tokens.map(|tokens| tokens.0),
            Axis::Usd => self.usd.map(|usd| usd.0),
            Axis::Errors => self.errors,
            Axis::Denials => self.denials,
        }
    }

    /// The first axis that lets nothing begin, because its limit is nothing.
    pub fn nothing(&self) -> Option<Axis> {
        Axis::ALL.into_iter().find(|axis| self.limit(*axis) == Some(0))
    }

    /// Applies a change as a retry asks for it. Adding to an axis without a limit leaves it without one.
    pub fn apply(&mut self, change: &BudgetChange) {
        let limit = match change.amount {
            Amount::Set(value) => Some(value),
            Amount::Add(more) => self.limit(change.axis).map(|old| old.saturating_add(more)),
        };
        match change.axis {
            Axis::Turns => self.turns = limit,
            Axis::Attempts => self.attempts = limit,
            Axis::Wall => self.wall = limit.map(Duration::from_secs),
            Axis::Tokens => self.tokens = limit.map(Tokens),
            Axis::Usd => self.usd = limit.map(MicroUsd),
            Axis::Errors => self.errors = limit,
            Axis::Denials => self.denials = limit,
        }
    }
}

impl GoalState {
    /// A budget that is spent, in words, with what was used where that can be more.
    pub fn spent_budget(&self, axis: Axis) -> Option<String> {
        let limit = self.budget.limit(axis)?;
        let counted = |what: &str| format!("{limit} {what}{}", if limit == 1 { "" } else { "s" });
        let spent = match axis {
            Axis::Turns => format!("{} spent", counted("turn")),
            Axis::Attempts => format!("{} spent", counted("attempt")),
            Axis::Wall => format!("{} spent", show_duration(self.budget.wall?)),
            Axis::Tokens => format!("{} spent ({})", counted("token"), self.usage().tokens()),
            Axis::Usd => format!("{} spent ({})", MicroUsd(limit), self.usage().spent()),
            Axis::Errors => format!("{} in a row spent", counted("error")),
            Axis::Denials => format!("{} in a row spent", counted("denial")),
        };
        Some(format!("budget of {spent}"))
    }

    /// What follows the name of this phase of the goal on screens.
    pub fn why(&self, phase: &Phase) -> String {
        phase.why(|axis| self.spent_budget(axis))
    }
}

/// One thing that is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Prompts given to agents.
    Turns,
    /// Attempts that count.
    Attempts,
    /// Time since the goal first started, without the time in which it waited for the operator.
    Wall,
    /// Tokens of every kind.
    Tokens,
    Usd,
    /// Bad endings in a row.
    Errors,
    /// Refused permissions in a row.
    Denials,
}

impl Axis {
    /// All of them, in the order people see them.
    pub const ALL: [Self; 7] =
        [Self::Turns, Self::Attempts, Self::Wall, Self::Tokens, Self::Usd, Self::Errors, Self::Denials];

    /// The name in JSON and in the configuration.
    pub fn name(self) -> &'static str {
        name_of(&self)
    }

    /// A sensible amount to add when it is spent, as the command line takes it.
    pub const fn suggestion(self) -> &'static str {
        match self {
            Self::Wall => "wall=+1h",
            Self::Tokens => "tokens=+1000000",
            Self::Usd => "usd=+5",
            Self::Turns => "turns=+20",
            Self::Attempts => "attempts=+5",
            Self::Errors => "errors=+5",
            Self::Denials => "denials=+5",
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A change of one limit: `usd=5` sets it, `usd=+5` adds to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetChange {
    pub axis: Axis,
    /// By how much, in the axis's own unit: seconds for `wall`, micro-dollars for `usd`.
    pub amount: Amount,
}

/// How a limit changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    Set(u64),
    /// By this much more.
    Add(u64),
}

/// A budget that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    #[error("budget `{0}` has no value; write it like `attempts=5`, `usd=2.50` or `wall=+1h`")]
    NoValue(String),
    /// Not one of ours.
    #[error("`{0}` is not a budget; use one of turns, attempts, wall, tokens, usd, errors, denials")]
    UnknownAxis(String),
    /// The value does not fit the axis.
    #[error("budget `{axis}` cannot be `{value}`; it takes {takes}, such as `{axis}={example}`")]
    BadValue {
        axis: Axis,
        /// What was given.
        value: String,
        /// What it takes, in words.
        takes: &'static str,
        example: &'static str,
    },
}

impl FromStr for BudgetChange {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let (name, value) = text.split_once('=').ok_or_else(|| BudgetError::NoValue(text.to_owned()))?;
        let axis = value_named(name.trim()).ok_or_else(|| BudgetError::UnknownAxis(name.to_owned()))?;
        let value = value.trim();
        let amount = match value.strip_prefix('+') {
            Some(more) => Amount::Add(parse_amount(axis, more)?),
            None => Amount::Set(parse_amount(axis, value)?),
        };
        Ok(Self { axis, amount })
    }
}

/// Reads an amount in the way people write it for this axis.
fn parse_amount(axis: Axis, value: &str) -> Result<u64, BudgetError> {
    let (parsed, takes, example) = match axis {
        Axis::Wall => (parse_duration(value).ok().map(|wall| wall.as_secs()), "a time with its unit", "4h"),
        Axis::Usd => (
            value.parse().ok().and_then(MicroUsd::from_dollars).map(|usd| usd.0),
            "an amount in dollars",
            "2.50",
        ),
        axis => {
            let example = if axis == Axis::Tokens { "2_000_000" } else { "5" };
            (value.replace('_', "").parse().ok(), "a whole number", example)
        }
    };
    parsed.ok_or_else(|| BudgetError::BadValue { axis, value: value.to_owned(), takes, example })
}

impl fmt::Display for BudgetChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, value) = match self.amount {
            Amount::Set(value) => ("", value),
            Amount::Add(value) => ("+", value),
        };
        match self.axis {
            Axis::Wall => write!(f, "wall={sign}{}", show_duration(Duration::from_secs(value))),
            Axis::Usd => write!(f, "usd={sign}{}", MicroUsd(value).dollars()),
            axis => write!(f, "{axis}={sign}{value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{at, fresh_attempt, goal};

    #[test]
    fn changes_are_read_in_the_unit_of_their_axis() {
        for (text, axis, amount) in [
            ("attempts=3", Axis::Attempts, Amount::Set(3)),
            ("usd=+0.004", Axis::Usd, Amount::Add(4_000)),
            ("wall=+1h", Axis::Wall, Amount::Add(3_600)),
            ("tokens=2_000_000", Axis::Tokens, Amount::Set(2_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(BudgetChange { axis, amount }), "{text}");
        }
    }

    #[test]
    fn wrong_budgets_are_refused_with_the_fix() {
        for text in ["attempts", "money=3", "attempts=many", "wall=4", "usd=-1", "usd=NaN"] {
            let error = text.parse::<BudgetChange>().expect_err(text).to_string();
            assert!(
                ["write it like", "it takes", "use one of"].iter().any(|fix| error.contains(fix)),
                "{error}"
            );
        }
        let error = "tokens=2m".parse::<BudgetChange>().expect_err("no number").to_string();
        let wanted = "budget `tokens` cannot be `2m`; it takes a whole number, such as `tokens=2_000_000`";
        assert_eq!(error, wanted);
    }

    #[test]
    fn a_spent_budget_is_shown_with_its_amounts() {
        let mut state = GoalState::new(&goal());
        state.budget = Budget::NONE;
        assert_eq!(state.spent_budget(Axis::Usd), None);
        for change in ["usd=0.05", "tokens=50", "wall=4h", "attempts=3", "errors=5"] {
            state.budget.apply(&change.parse().expect(change));
        }
        let usage = crate::Usage { input: Tokens(61), cost: MicroUsd(60_000), ..Default::default() };
        state.attempts.push(crate::Attempt { usage, ..fresh_attempt(1, at(0)) });
        let failed = |axis| Phase::Failed { reason: crate::FailureReason::Budget { axis } };
        for (axis, words) in [
            (Axis::Usd, "budget of $0.05 spent ($0.06)"),
            (Axis::Tokens, "budget of 50 tokens spent (61)"),
            (Axis::Wall, "budget of 4h 00m spent"),
            (Axis::Attempts, "budget of 3 attempts spent"),
            (Axis::Errors, "budget of 5 errors in a row spent"),
        ] {
            assert_eq!(state.why(&failed(axis)), format!(": {words}"));
            assert_eq!(failed(axis).reason(), Some(format!("budget: {axis}")), "programs read this");
        }
    }

    #[test]
    fn a_limit_of_nothing_is_found_on_every_axis() {
        assert_eq!((Budget::default().nothing(), Budget::NONE.nothing()), (None, None));
        for axis in Axis::ALL {
            let mut budget = Budget::default();
            budget.apply(&BudgetChange { axis, amount: Amount::Set(0) });
            assert_eq!(budget.nothing(), Some(axis));
        }
    }

    #[test]
    fn adding_to_a_limit_raises_it_and_setting_replaces_it() {
        let mut budget = Budget { usd: Some(MicroUsd(1)), ..Budget::default() };
        for change in ["attempts=+5", "usd=2", "turns=+3"] {
            budget.apply(&change.parse().expect(change));
        }
        let expected = Budget { attempts: Some(15), usd: Some(MicroUsd(2_000_000)), ..Budget::default() };
        assert_eq!(budget, expected);
    }
}
