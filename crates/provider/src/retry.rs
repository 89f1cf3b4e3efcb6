//! When to ask again, from what a provider reports about its limits.
//!
//! The time of asking is an argument. A time that lies in the past or far ahead is a mistake of the provider's, or of
//! its clock, and is never handed on.

use jiff::{SignedDuration, Timestamp};
use reqwest::header::HeaderMap;

use crate::complaint::Complaint;

/// The longest wait that a provider can ask for; the longest real limits are weekly.
const MAX_WAIT: SignedDuration = SignedDuration::from_hours(8 * 24);

/// Numbers from here on are seconds since 1970, not a wait.
const FIRST_EPOCH_SECOND: f64 = 1e9;

/// Numbers from here on are milliseconds since 1970.
const FIRST_EPOCH_MILLISECOND: f64 = 1e12;

/// Words in front of a wait in the text of a message.
const LEADS: [&str; 2] = ["try again in ", "retry in "];

/// When the provider reports it may be asked again.
pub(crate) fn until(headers: &HeaderMap, complaint: &Complaint, now: Timestamp) -> Option<Timestamp> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let milliseconds = || header("retry-after-ms")?.trim().parse().ok().map(|wait: f64| wait / 1000.0);
    None.or_else(|| after(milliseconds()?, now))
        .or_else(|| moment(header("retry-after")?, now))
        .or_else(|| moment(complaint.wait.as_deref()?, now))
        .or_else(|| moment(wait_in_words(&complaint.message)?, now))
        .or_else(|| bucket_reset(&header, now))
        .or_else(|| moment(header("anthropic-ratelimit-unified-reset")?, now))
        .or_else(|| moment(header("x-ratelimit-reset")?, now))
        .filter(|until| *until >= now)
        .map(|until| until.min(now.saturating_add(MAX_WAIT).unwrap_or(until)))
}

/// When the bucket that is empty is full again; the later of both when none is known to be empty.
fn bucket_reset<'a>(header: &dyn Fn(&str) -> Option<&'a str>, now: Timestamp) -> Option<Timestamp> {
    let resets = ["requests", "tokens"].map(|kind| {
        let reset = moment(header(&format!("x-ratelimit-reset-{kind}"))?, now)?;
        let is_empty =
            header(&format!("x-ratelimit-remaining-{kind}")).is_some_and(|left| left.trim() == "0");
        Some((is_empty, reset))
    });
    resets.into_iter().flatten().max().map(|(_, reset)| reset)
}

/// The wait that a message names: `Please try again in 1m2.5s.`
fn wait_in_words(message: &str) -> Option<&str> {
    let rest = LEADS.iter().find_map(|lead| message.split_once(lead).map(|(_, rest)| rest))?;
    let wait = rest.split_whitespace().next()?;
    Some(wait.trim_end_matches(|last: char| !last.is_ascii_alphanumeric()))
}

/// Reads a moment in any of the forms in use: seconds to wait, seconds or milliseconds since 1970, a duration such as
/// `6m0s`, a date of HTTP or of ISO 8601.
fn moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return match number {
            epoch if epoch >= FIRST_EPOCH_MILLISECOND => after(epoch / 1000.0, Timestamp::UNIX_EPOCH),
            epoch if epoch >= FIRST_EPOCH_SECOND => after(epoch, Timestamp::UNIX_EPOCH),
            wait => after(wait, now),
        };
    }
    if let Some(wait) = seconds(text) {
        return after(wait, now);
    }
    text.parse().ok().or_else(|| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok())
}

fn after(seconds: f64, start: Timestamp) -> Option<Timestamp> {
    start.checked_add(SignedDuration::try_from_secs_f64(seconds).ok()?).ok()
}

/// Reads a duration as Go writes it: `20ms`, `1.5s`, `6m0s`, `2h3m`.
fn seconds(text: &str) -> Option<f64> {
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let number_end = rest.find(|next: char| !next.is_ascii_digit() && next != '.')?;
        let (number, behind) = rest.split_at(number_end);
        let unit_end = behind.find(|next: char| next.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, next) = behind.split_at(unit_end);
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * scale;
        rest = next;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-11-15T12:00:00Z";

    type Headers<'a> = &'a [(&'static str, &'a str)];

    fn read(headers: Headers<'_>, complaint: &Complaint) -> Option<String> {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        };
        let headers = headers.iter().map(header).collect();
        until(&headers, complaint, NOW.parse().expect("a time")).map(|until| until.to_string())
    }

    #[test]
    fn headers_show_when_to_ask_again() {
        let table: &[(Headers<'_>, Option<&str>)] = &[
            (&[], None),
            (&[("retry-after", "7")], Some("2026-11-15T12:00:07Z")),
            (&[("retry-after", "0")], Some(NOW)),
            (&[("retry-after", "1.5")], Some("2026-11-15T12:00:01.5Z")),
            (&[("retry-after", "Sun, 15 Nov 2026 12:01:00 GMT")], Some("2026-11-15T12:01:00Z")),
            (&[("retry-after", "Sun, 15 Nov 2026 11:59:00 GMT")], None),
            (&[("retry-after", "-5")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "inf")], None),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "99999999")], Some("2026-11-23T12:00:00Z")),
            (&[("retry-after", "9"), ("retry-after-ms", "250")], Some("2026-11-15T12:00:00.25Z")),
            (
                &[("x-ratelimit-reset-requests", "20ms"), ("x-ratelimit-reset-tokens", "6m0s")],
                Some("2026-11-15T12:06:00Z"),
            ),
            (
                &[
                    ("x-ratelimit-reset-requests", "1h2m"),
                    ("x-ratelimit-reset-tokens", "7.5s"),
                    ("x-ratelimit-remaining-requests", "12"),
                    ("x-ratelimit-remaining-tokens", "0"),
                ],
                Some("2026-11-15T12:00:07.5Z"),
            ),
            (&[("anthropic-ratelimit-unified-reset", "1794747600")], Some("2026-11-15T13:00:00Z")),
            (&[("anthropic-ratelimit-unified-reset", "1794740000")], None),
            (&[("x-ratelimit-reset", "1794747600000")], Some("2026-11-15T13:00:00Z")),
        ];
        for (headers, expected) in table {
            assert_eq!(read(headers, &Complaint::default()).as_deref(), *expected, "{headers:?}");
        }
    }

    #[test]
    fn bodies_show_when_to_ask_again() {
        let body = |message: &str, details| {
            Complaint::of_body(&json!({"error": {"message": message, "details": details}}))
        };
        let info = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "36.5s"}]);
        assert_eq!(read(&[], &body("", info.clone())).as_deref(), Some("2026-11-15T12:00:36.5Z"));
        assert_eq!(read(&[("retry-after", "2")], &body("", info)).as_deref(), Some("2026-11-15T12:00:02Z"));
        let words = "Rate limit reached. Please try again in 1m1.5s. Visit us.";
        assert_eq!(read(&[], &body(words, json!(null))).as_deref(), Some("2026-11-15T12:01:01.5Z"));
        assert_eq!(read(&[], &body("try again in a while", json!(null))), None);
    }

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let table = [
            ("20ms", Some(0.02)),
            ("1s", Some(1.0)),
            ("2m3s", Some(123.0)),
            ("1d", Some(86_400.0)),
            ("", None),
            ("s", None),
            ("1x", None),
            ("1", None),
            ("1.2.3s", None),
        ];
        for (text, expected) in table {
            assert_eq!(seconds(text), expected, "{text:?}");
        }
    }
}
