//! What is spent and what is left, as bars: the budget that is nearest to its end first.

use jiff::Timestamp;
use towline_core::{Axis, MicroUsd, Tokens};
use towline_store::GoalRecord;
use towline_terminal::{Paint, Tone, columns, short_number};

use super::Board;
use super::lines::{Canvas, ticking};

/// How many columns a bar has.
const BAR: usize = 10;

/// One limited axis.
struct Gauge {
    axis: Axis,
    /// How much of it is used, in thousandths.
    used: u64,
    words: String,
    /// What is left out first where there is no room for every axis.
    note: String,
}

impl Gauge {
    /// The axis and what is spent of it, with a bar in between where there is room for it.
    fn cell(&self, paint: Paint, with_bar: bool) -> String {
        let tone = match self.used {
            ..600 => Tone::Good,
            600..850 => Tone::Warn,
            _ => Tone::Bad,
        };
        // Something that is used shows, and only what is all used is full.
        let full = usize::try_from(self.used).unwrap_or(0) * BAR / 1_000;
        let full = full.max(usize::from(self.used > 0));
        let bar = || paint.with(tone, &"█".repeat(full)) + &paint.dim(&"░".repeat(BAR - full)) + " ";
        let bar = if with_bar { bar() } else { String::new() };
        format!("{} {bar}{}{}", paint.dim(&self.axis.to_string()), self.words, self.note)
    }
}

impl Board {
    /// What is spent, and as many bars as fit.
    pub(super) fn budget_line(&self, canvas: &Canvas) -> String {
        let mut gauges = self.gauges(canvas.now);
        gauges.sort_by_key(|gauge| std::cmp::Reverse(gauge.used));
        let (line, are_all_there) = self.bars(&gauges, canvas);
        if are_all_there {
            return line;
        }
        gauges.iter_mut().for_each(|gauge| gauge.note.clear());
        self.bars(&gauges, canvas).0
    }

    /// As many bars as fit, and whether that is all of them.
    fn bars(&self, gauges: &[Gauge], canvas: &Canvas) -> (String, bool) {
        let (mut line, mut are_all_there) = (self.spent_line(gauges, canvas), true);
        for gauge in gauges {
            let gap = if line.is_empty() { "" } else { "   " };
            let room = canvas.width.saturating_sub(columns(&line) + gap.len());
            let mut cells = [true, false].map(|with_bar| gauge.cell(canvas.paint, with_bar)).into_iter();
            match cells.find(|cell| line.is_empty() || columns(cell) <= room) {
                Some(cell) => line.push_str(&format!("{gap}{cell}")),
                None => are_all_there = false,
            }
        }
        (line, are_all_there)
    }

    /// What is spent and has no bar.
    fn spent_line(&self, gauges: &[Gauge], canvas: &Canvas) -> String {
        let has_bar = |axis: Axis| gauges.iter().any(|gauge| gauge.axis == axis);
        let usage = self.state.usage();
        let mut facts = Vec::new();
        if !has_bar(Axis::Wall) {
            let (begun, now) = self.worked(canvas.now);
            facts.push(ticking(begun, now));
        }
        if !has_bar(Axis::Tokens) && usage.tokens() != Tokens(0) {
            facts.push(format!("{} tokens", short_number(usage.tokens().0)));
        }
        let spent = usage.spent();
        if !has_bar(Axis::Usd) && spent.amount != MicroUsd(0) {
            facts.push(spent.to_string());
        }
        if facts.is_empty() {
            return String::new();
        }
        format!("{} {}", canvas.paint.dim("so far"), facts.join(" · "))
    }

    fn gauges(&self, now: Timestamp) -> Vec<Gauge> {
        use Axis::{Attempts, Denials, Errors, Tokens, Turns, Usd, Wall};
        let (state, usage) = (&self.state, self.state.usage());
        let (begun, now) = self.worked(now);
        let if_known = |is_known: bool, words: String| if is_known { words } else { "unknown".to_owned() };
        let gauge = |axis: Axis| {
            let (limit, used) = (state.budget.limit(axis)?, state.used(axis, now));
            let (spent, of) = match axis {
                // A row of them that is empty is as it should be.
                Errors | Denials if used == 0 => return None,
                Usd => (if_known(usage.knows_cost(), usage.spent().to_string()), MicroUsd(limit).to_string()),
                Tokens => (if_known(usage.knows_tokens(), short_number(used)), short_number(limit)),
                Wall => (ticking(begun, now), round(limit)),
                _ => (used.to_string(), limit.to_string()),
            };
            let free = if axis == Attempts { state.attempts.len() as u64 - used } else { 0 };
            // Each has its number on the screen, also one that was paused.
            let note = if free > 0 { format!(", {free} not counted") } else { String::new() };
            let used = used.min(limit).saturating_mul(1_000).checked_div(limit).unwrap_or(1_000);
            Some(Gauge { axis, used, words: format!("{spent} of {of}"), note })
        };
        [Usd, Turns, Attempts, Wall, Tokens, Errors, Denials].into_iter().filter_map(gauge).collect()
    }

    /// The time of the goal's own work. The time in which it waits for the operator is no part of it.
    fn worked(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        let settled_at = self.state.settled_at.unwrap_or(self.since);
        let now = if self.phase.waits_for_operator() { settled_at } else { now };
        (self.state.first_started_at.unwrap_or(now), now)
    }
}

/// Each limited axis with what is spent of it, in words.
pub(crate) fn spent_of_limits(record: &GoalRecord, now: Timestamp) -> Vec<String> {
    let gauges = Board::of(record).gauges(now);
    gauges.into_iter().map(|Gauge { axis, words, note, .. }| format!("{axis} {words}{note}")).collect()
}

/// A limit as people write it: `4h`, `1h 30m`.
fn round(seconds: u64) -> String {
    let parts = [(seconds / 3_600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, unit)| format!("{count}{unit}")).collect();
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn limits_are_shown_without_the_units_they_do_not_use() {
        let shown = [0, 45, 3_600, 5_400, 14_401].map(round);
        assert_eq!(shown, ["0s", "45s", "1h", "1h 30m", "4h 1s"]);
    }
}
