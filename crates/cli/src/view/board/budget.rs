//! What is spent and what is left, as bars: the budget that is nearest to its end first.

use std::time::Duration;

use jiff::Timestamp;
use towline_core::{Axis, MicroUsd, Tokens};
use towline_store::GoalRecord;

use super::Board;
use super::lines::{Canvas, ticking};
use crate::view::Tone;
use crate::view::line::Line;

/// How many columns a bar has.
const BAR: usize = 10;

/// One limited axis.
struct Gauge {
    axis: Axis,
    /// How much of it is used, in thousandths.
    used: u64,
    words: String,
}

impl Gauge {
    fn of(axis: Axis, used: u64, limit: u64, words: String) -> Self {
        let used = used.min(limit).saturating_mul(1_000).checked_div(limit).unwrap_or(1_000);
        Self { axis, used, words }
    }

    /// For a line without room for the bar: only what is spent.
    fn without_bar(&self) -> Line {
        Line::of(Tone::Dim, &format!("{} ", self.axis)).and(Tone::Plain, &self.words)
    }

    fn line(&self) -> Line {
        let tone = match self.used {
            ..600 => Tone::Good,
            600..850 => Tone::Warn,
            _ => Tone::Bad,
        };
        // Something that is used shows, and only what is all used is full.
        let full = usize::try_from(self.used).unwrap_or(0) * BAR / 1_000;
        let full = full.max(usize::from(self.used > 0));
        let bar = |sign: char, count: usize| sign.to_string().repeat(count);
        Line::of(Tone::Dim, &format!("{} ", self.axis))
            .and(tone, &bar('█', full))
            .and(Tone::Dim, &bar('░', BAR - full))
            .and(Tone::Plain, &format!(" {}", self.words))
    }
}

impl Board {
    /// What is spent, and as many bars as fit.
    pub(super) fn budget_line(&self, canvas: &Canvas) -> Line {
        let mut gauges = self.gauges(canvas.now);
        gauges.sort_by_key(|gauge| std::cmp::Reverse(gauge.used));
        let mut line = self.spent_line(&gauges, canvas.now);
        for gauge in gauges {
            let gap = if line.width() == 0 { "" } else { "   " };
            let room = canvas.width.saturating_sub(line.width() + gap.len());
            let cells = [gauge.line(), gauge.without_bar()];
            if let Some(cell) = cells.into_iter().find(|cell| line.width() == 0 || cell.width() <= room) {
                line.push(Tone::Plain, gap);
                line.append(cell);
            }
        }
        line
    }

    /// What is spent and has no bar.
    fn spent_line(&self, gauges: &[Gauge], now: Timestamp) -> Line {
        let has_bar = |axis: Axis| gauges.iter().any(|gauge| gauge.axis == axis);
        let usage = self.state.usage();
        let mut facts = Vec::new();
        if !has_bar(Axis::Wall) {
            let (begun, now) = self.worked(now);
            facts.push(ticking(begun, now));
        }
        if !has_bar(Axis::Tokens) && usage.tokens() != Tokens(0) {
            facts.push(format!("{} tokens", short(usage.tokens().0)));
        }
        let spent = usage.spent();
        if !has_bar(Axis::Usd) && spent.amount != MicroUsd(0) {
            facts.push(spent.to_string());
        }
        if facts.is_empty() {
            return Line::default();
        }
        Line::of(Tone::Dim, "so far ").and(Tone::Plain, &facts.join(" · "))
    }

    fn gauges(&self, now: Timestamp) -> Vec<Gauge> {
        let (limits, usage) = (&self.state.budget, self.state.usage());
        let count = |axis: Axis, limit: Option<u64>, used: u64, show: fn(u64) -> String| {
            limit.map(|limit| Gauge::of(axis, used, limit, format!("{} of {}", show(used), show(limit))))
        };
        let plain: fn(u64) -> String = |number| number.to_string();
        // A row of them that is empty is as it should be.
        let in_row = |axis: Axis, limit: Option<u64>, used: u32| {
            count(axis, limit.filter(|_| used > 0), u64::from(used), plain)
        };
        let state = &self.state;
        let gauges = [
            limits.usd.map(|limit| {
                let spent = usage.spent();
                let words = if usage.knows_cost() { spent.to_string() } else { "unknown".to_owned() };
                Gauge::of(Axis::Usd, spent.amount.0, limit.0, format!("{words} of {limit}"))
            }),
            count(Axis::Turns, limits.turns, state.turns(), plain),
            limits.attempts.map(|limit| {
                let spent = state.attempts_spent();
                let free = state.attempts.len() as u64 - spent;
                // Each has its number on the screen, also one that was paused.
                let free = if free > 0 { format!(", {free} not counted") } else { String::new() };
                Gauge::of(Axis::Attempts, spent, limit, format!("{spent} of {limit}{free}"))
            }),
            self.wall(now),
            limits.tokens.map(|limit| {
                let used = usage.tokens().0;
                let words = if usage.knows_tokens() { short(used) } else { "unknown".to_owned() };
                Gauge::of(Axis::Tokens, used, limit.0, format!("{words} of {}", short(limit.0)))
            }),
            in_row(Axis::Errors, limits.errors, state.errors_in_row),
            in_row(Axis::Denials, limits.denials, state.denials_in_row),
        ];
        gauges.into_iter().flatten().collect()
    }

    /// The time of the goal's own work. The time in which it waits for the operator is no part of it.
    fn worked(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        let settled_at = self.state.settled_at.unwrap_or(self.since);
        let now = if self.phase.waits_for_operator() { settled_at } else { now };
        (self.state.first_started_at.unwrap_or(now), now)
    }

    fn wall(&self, now: Timestamp) -> Option<Gauge> {
        let wall = self.state.budget.wall?;
        let (begun, now) = self.worked(now);
        let used = Duration::try_from(now.duration_since(begun)).unwrap_or_default().as_secs();
        let words = format!("{} of {}", ticking(begun, now), round(wall));
        Some(Gauge::of(Axis::Wall, used, wall.as_secs(), words))
    }
}

/// Each limited axis with what is spent of it, in words.
pub(crate) fn spent_of_limits(record: &GoalRecord, now: Timestamp) -> Vec<String> {
    let gauges = Board::of(record).gauges(now);
    gauges.into_iter().map(|Gauge { axis, words, .. }| format!("{axis} {words}")).collect()
}

/// A short form of a number: 950, 12k, 1.2M.
pub(crate) fn short(number: u64) -> String {
    let tenths = |unit: u64, name: &str| match (number / unit, number % unit * 10 / unit) {
        (whole @ 100.., _) | (whole, 0) => format!("{whole}{name}"),
        (whole, tenth) => format!("{whole}.{tenth}{name}"),
    };
    match number {
        ..1_000 => number.to_string(),
        1_000..1_000_000 => tenths(1_000, "k"),
        _ => tenths(1_000_000, "M"),
    }
}

/// A limit as people write it: `4h`, `1h 30m`.
fn round(limit: Duration) -> String {
    let seconds = limit.as_secs();
    let parts = [(seconds / 3_600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, unit)| format!("{count}{unit}")).collect();
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0, 999, 1_000, 1_250, 45_000, 123_456, 2_000_000, 2_340_000].map(short);
        assert_eq!(shown, ["0", "999", "1k", "1.2k", "45k", "123k", "2M", "2.3M"]);
    }

    #[test]
    fn limits_are_shown_without_the_units_they_do_not_use() {
        let shown = [0, 45, 3_600, 5_400, 14_401].map(|seconds| round(Duration::from_secs(seconds)));
        assert_eq!(shown, ["0s", "45s", "1h", "1h 30m", "4h 1s"]);
    }
}
