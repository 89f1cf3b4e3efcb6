//! Durations as people write them.

use std::time::Duration;

use jiff::SignedDuration;

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a duration; write it like `45s`, `30m`, `4h` or `1h 30m`")]
pub struct BadDuration {
    text: String,
}

/// Reads a duration with its unit: `45s`, `30m`, `1h 30m`. A bare number has no unit and is refused.
pub fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    let bad = || BadDuration { text: text.to_owned() };
    let signed: SignedDuration = days_as_hours(text.trim()).parse().map_err(|_| bad())?;
    Duration::try_from(signed).map_err(|_| bad())
}

/// Days are no exact unit for the parser (clocks change); here a day is always 24 hours.
fn days_as_hours(text: &str) -> String {
    match text.strip_suffix('d').map(str::parse::<u64>) {
        Some(Ok(days)) => format!("{}h", days.saturating_mul(24)),
        _ => text.to_owned(),
    }
}

/// Writes a duration the way people read it: its two largest units.
pub fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if seconds < 10 => format!("{:.1}s", duration.as_secs_f64()),
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h {minutes:02}m"),
        (_, 0, _) => format!("{days}d"),
        _ => format!("{days}d {hours:02}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        for (text, seconds) in
            [("45s", 45), ("30m", 1_800), ("4h", 14_400), ("1h 30m", 5_400), ("30d", 2_592_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_the_fix() {
        for text in ["", "10", "abc", "-5m", "5 parsecs", "d"] {
            let error = parse_duration(text).expect_err(text).to_string();
            assert!(error.contains("write it like"), "{error}");
        }
    }

    #[test]
    fn durations_are_shown_by_their_two_largest_units() {
        let shown =
            [1, 59, 61, 3_700, 86_400, 90_000].map(|seconds| show_duration(Duration::from_secs(seconds)));
        assert_eq!(shown, ["1.0s", "59s", "1m 01s", "1h 01m", "1d", "1d 01h"]);
    }
}
