//! Times as people read them: in their own zone, with the date where it is another day.

use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;

static ZONE: OnceLock<TimeZone> = OnceLock::new();

/// Shows times in this zone from now on, instead of UTC. The first zone stays.
pub fn use_time_zone(zone: impl FnOnce() -> TimeZone) {
    ZONE.get_or_init(zone);
}

/// A time as seen from `now`: by the clock, with the date if that is another day.
pub fn clock_time(at: Timestamp, now: Timestamp) -> String {
    in_zone(at, now, ZONE.get().unwrap_or(&TimeZone::UTC))
}

fn in_zone(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (at, now) = (at.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
    let format = if at.date() == now.date() { "%H:%M:%S" } else { "%F %H:%M" };
    at.strftime(format).to_string()
}

/// How long ago something was, by its largest unit.
pub fn age(from: Timestamp, now: Timestamp) -> String {
    match now.as_second().saturating_sub(from.as_second()).max(0) {
        seconds @ ..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn times_are_local_and_have_a_date_on_another_day() {
        let east = TimeZone::fixed(jiff::tz::offset(2));
        let now = at("2026-03-01T20:00:00Z");
        for (time, wanted) in [
            ("2026-03-01T08:06:40Z", "10:06:40"),
            ("2026-03-01T21:59:59Z", "23:59:59"),
            ("2026-03-01T22:00:00Z", "2026-03-02 00:00"),
            ("2026-02-28T21:30:00Z", "2026-02-28 23:30"),
        ] {
            assert_eq!(in_zone(at(time), now, &east), wanted, "{time}");
        }
    }

    #[test]
    fn an_age_has_one_unit() {
        let now = at("2026-03-03T00:00:00Z");
        for (from, wanted) in [
            ("2026-03-03T00:00:09Z", "0s"),
            ("2026-03-02T23:59:01Z", "59s"),
            ("2026-03-02T23:58:00Z", "2m"),
            ("2026-03-02T00:00:01Z", "23h"),
            ("2026-03-01T00:00:00Z", "2d"),
        ] {
            assert_eq!(age(at(from), now), wanted, "{from}");
        }
    }
}
