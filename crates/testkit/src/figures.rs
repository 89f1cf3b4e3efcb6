//! What a benchmark found, as `cargo xtask bench` collects it: one JSON object on a line of standard output.

use std::io::Write;

use serde_json::json;

/// One figure, with what it is wanted to be and what it is compared with.
#[derive(Debug, Clone)]
pub struct Figure {
    section: &'static str,
    what: String,
    value: f64,
    unit: &'static str,
    goal: Goal,
    gates: bool,
    beside: String,
}

#[derive(Debug, Clone, Copy)]
enum Goal {
    None,
    AtLeast(f64),
    Below(f64),
}

impl Figure {
    /// A figure without a goal. The section is the table that it is in.
    pub fn new(section: &'static str, what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        let (what, beside) = (what.into(), String::new());
        Self { section, what, value, unit, goal: Goal::None, gates: false, beside }
    }

    /// It is to be so much or more.
    pub fn at_least(self, goal: f64) -> Self {
        Self { goal: Goal::AtLeast(goal), ..self }
    }

    /// It is to be less than this.
    pub fn below(self, goal: f64) -> Self {
        Self { goal: Goal::Below(goal), ..self }
    }

    /// A missed goal fails the whole run: for ratios, which are the same on every machine.
    pub fn gates(self) -> Self {
        Self { gates: true, ..self }
    }

    /// What it is to be read next to.
    pub fn beside(self, beside: impl Into<String>) -> Self {
        Self { beside: beside.into(), ..self }
    }

    /// Hands it over.
    pub fn print(&self) {
        let (goal, is_met) = match self.goal {
            Goal::None => (String::new(), true),
            Goal::AtLeast(goal) => (format!("≥ {}", shown(goal)), self.value >= goal),
            Goal::Below(goal) => (format!("< {}", shown(goal)), self.value < goal),
        };
        let line = json!({
            "section": self.section,
            "what": self.what,
            "figure": format!("{} {}", shown(self.value), self.unit).trim_end(),
            "goal": goal,
            "met": is_met,
            "gates": self.gates,
            "beside": self.beside,
        });
        let written = writeln!(std::io::stdout(), "{line}");
        written.unwrap_or_else(|error| panic!("cannot print a figure: {error}"));
    }
}

/// A number with about three digits that are significant.
pub fn shown(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 || value.fract() == 0.0 => grouped(value.round()),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A whole number with its thousands apart.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && digit.is_ascii_digit() && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The value in the middle.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let values = sorted(values);
    values[values.len() / 2]
}

/// The smallest value that this share of all values does not exceed: 0.99 for p99, 1 for the largest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is a number of values, rounded up"
)]
pub fn percentile(values: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let values = sorted(values);
    let rank = (values.len() as f64 * share).ceil() as usize;
    values[rank.clamp(1, values.len()) - 1]
}

fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_the_digits_that_matter() {
        let shown = [0.0, 0.614, 3.0, 12.34, 99.96, 345.6, 51_234.0, 1_000_000.0].map(shown);
        assert_eq!(shown, ["0", "0.61", "3", "12.3", "100.0", "346", "51,234", "1,000,000"]);
    }

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!([median([3.0, 1.0, 2.0]), median([7.0])], [2.0, 7.0]);
    }

    #[test]
    fn a_percentile_is_a_value_that_so_many_do_not_exceed() {
        let values = || (1..=200).rev().map(f64::from);
        assert_eq!(
            [0.0, 0.5, 0.99, 1.0].map(|share| percentile(values(), share)),
            [1.0, 100.0, 198.0, 200.0]
        );
        assert_eq!(percentile([7.0], 0.99), 7.0);
    }
}
