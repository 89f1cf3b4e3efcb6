//! Domain values as columns hold them, and back.

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failure::Failure;

/// A time as a text that sorts by time and loses nothing.
pub(super) fn time_to_text(time: Timestamp) -> String {
    format!("{time:.9}")
}

pub(super) fn time_from_text(what: &str, text: &str) -> Result<Timestamp, Failure> {
    text.parse().map_err(|why| Failure::unreadable(what, why))
}

pub(super) fn to_json<T: Serialize>(what: &str, value: &T) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|why| Failure::unreadable(what, why))
}

pub(super) fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|why| Failure::unreadable(what, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_every_nanosecond_and_sort_as_texts() {
        let times = [
            (0, 0),
            (1_800_000_000, 0),
            (1_800_000_000, 1),
            (1_800_000_000, 500_000_000),
            (9_000_000_000, 7),
        ]
        .map(|(second, nanosecond)| Timestamp::new(second, nanosecond).expect("in range"));
        let texts = times.map(time_to_text);
        assert!(texts.is_sorted(), "{texts:?}");
        let back = texts.map(|text| time_from_text("a time", &text).expect("a time"));
        assert_eq!(back, times);
        assert_eq!(time_from_text("max", &time_to_text(Timestamp::MAX)).expect("a time"), Timestamp::MAX);
    }
}
