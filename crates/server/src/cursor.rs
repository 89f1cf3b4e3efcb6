//! Places in a list, as clients pass them back. What they mean is nobody else's business.

use jiff::Timestamp;
use towline_core::GoalId;

use crate::problem::Problem;

/// The place of a goal in an order by time.
pub(crate) fn of(at: Timestamp, goal: GoalId) -> String {
    towline_core::hexadecimal(format!("{}.{goal}", at.as_nanosecond()).as_bytes())
}

/// The place that a cursor names.
pub(crate) fn read(text: &str) -> Result<(Timestamp, GoalId), Problem> {
    parse(text).ok_or_else(|| Problem::bad_request("`cursor` is not one that this server gave"))
}

fn parse(text: &str) -> Option<(Timestamp, GoalId)> {
    let digits = text.as_bytes();
    if digits.len() > 256 || !digits.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    let text = String::from_utf8(bytes?).ok()?;
    let (at, goal) = text.split_once('.')?;
    Some((Timestamp::from_nanosecond(at.parse().ok()?).ok()?, goal.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_given_and_nothing_else_is() {
        let goal: GoalId = "01932f6e-7c00-7abc-8def-0123456789ab".parse().expect("an id");
        let at: Timestamp = "2026-03-01T10:00:00.000000123Z".parse().expect("a time");
        assert_eq!(read(&of(at, goal)).expect("a place"), (at, goal));
        for wrong in ["", "0", "zz", "ää", "../..", "2e2e", &"61".repeat(200)] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
