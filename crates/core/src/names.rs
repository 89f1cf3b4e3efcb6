//! Names of variants as serde writes them: JSON tags, columns, filters and messages all take them from here.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Error, IntoDeserializer};

/// The tag of a value whose enum is internally tagged, or the text of one whose enum has no fields.
pub(crate) fn name_of<T: Serialize + DeserializeOwned>(value: &T) -> &'static str {
    let mut beginning = Beginning::default();
    // Ends with an error once the name is there: what follows it may be long.
    let _ = serde_json::to_writer(&mut beginning, value);
    let text = String::from_utf8_lossy(&beginning.0);
    let mut quoted = text.split('"').skip(1).step_by(2);
    let tag = if text.starts_with('{') { quoted.next() } else { None };
    let name = quoted.next().unwrap_or_default();
    names::<T>(tag).iter().find(|known| **known == name).copied().unwrap_or_default()
}

/// The value of an enum without fields that has this name.
pub(crate) fn value_named<T: DeserializeOwned>(name: &str) -> Option<T> {
    T::deserialize(IntoDeserializer::<Variants>::into_deserializer(name)).ok()
}

/// The names of all variants, with those that are only read.
pub(crate) fn names<T: DeserializeOwned>(tag: Option<&str>) -> &'static [&'static str] {
    // No variant has an empty name, and the refusal lists the names that there are.
    let refused = match tag {
        Some(tag) => T::deserialize(MapDeserializer::new([(tag, "")].into_iter())),
        None => T::deserialize(IntoDeserializer::<Variants>::into_deserializer("")),
    };
    refused.err().map_or(&[], |Variants(names)| names)
}

/// JSON up to the end of the name in it: `{"kind":"created"` or `"created"`.
#[derive(Default)]
struct Beginning(Vec<u8>);

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let quotes = self.0.iter().filter(|byte| **byte == b'"').count();
        if quotes == if self.0.starts_with(b"{") { 4 } else { 2 } {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The variants that serde names when it refuses an unknown one.
#[derive(Debug)]
struct Variants(&'static [&'static str]);

impl fmt::Display for Variants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl std::error::Error for Variants {}

impl Error for Variants {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self(&[])
    }

    fn unknown_variant(_variant: &str, expected: &'static [&'static str]) -> Self {
        Self(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentEvent, Axis, EndKind, Event, MicroUsd, Phase, Source, Timeout, Usage};

    #[test]
    fn a_name_is_the_tag_or_the_text() {
        let usage = Usage { cost: MicroUsd(7), ..Usage::default() };
        let used = AgentEvent::Usage { model: None, used: usage, context_used: None, context_size: None };
        assert_eq!(name_of(&used), "usage");
        assert_eq!(name_of(&Event::Agent { event: used }), "agent");
        assert_eq!(name_of(&Event::Created), "created");
        for (source, name) in
            [(Source::Agent, "agent"), (Source::Towline, "towline"), (Source::Operator, "operator")]
        {
            assert_eq!((source.name(), Source::named(name)), (name, Some(source)));
        }
        assert_eq!(Source::named("nobody"), None);
    }

    #[test]
    fn names_are_snake_case() {
        let all = [
            names::<Event>(Some("kind")),
            names::<AgentEvent>(Some("kind")),
            names::<Phase>(Some("phase")),
            names::<EndKind>(None),
            names::<Axis>(None),
            names::<Timeout>(None),
            names::<Source>(None),
        ];
        for names in all {
            assert!(!names.is_empty());
            for name in names {
                assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            }
        }
    }

    /// Stored goals and programs know them.
    #[test]
    fn no_event_or_phase_has_another_name() {
        let events = "created claimed prerequisites_met account_unavailable agent_unavailable dispatched shared_budget_spent prepared prepare_failed repository_gone unconfigured \
                      baseline_reached baseline_unknown attempt_started agent attempt_ended handed_over clock_ran_out check_started \
                      check_finished judge_started judge_used judge_ended judge_unavailable verdict_reached checks_failed stopped woken cancel_requested pause_requested \
                      resume_requested answered told compact_requested entered left restored continued answer_delivered retry_requested checks_replaced merged \
                      published verified phase_changed clock_moved notice";
        assert_eq!(names::<Event>(Some("kind")).join(" "), events);
        let phases = "queued preparing running stopping checking sleeping limited blocked paused escalated done \
                      unproven failed cancelled";
        assert_eq!(names::<Phase>(Some("phase")).join(" "), phases);
    }
}
