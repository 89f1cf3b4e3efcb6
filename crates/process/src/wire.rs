//! The messages between client and supervisor: one JSON value per line in both directions.
//!
//! A client sends [`Request`]s and gets one [`Message::Reply`] for each, in order; `Grown` and `Exited` come
//! unasked. The bytes of a `write` follow its line as they are (`length` of them), so that any bytes pass
//! without an encoding and neither side has to hold them whole.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::{self, millis};
use crate::record::ExitRecord;

/// Longest line a client may send; payloads are not lines.
pub(crate) const MAX_REQUEST_LINE: usize = 8 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) op: Operation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    /// `length` raw bytes follow the line.
    Write {
        length: u64,
    },
    CloseStdin,
    Stop,
    Kill,
    Extend(Deadline),
}

/// A point in time in milliseconds since the Unix epoch. Whoever reads it takes what is left of the time at once, because the clock
/// may be set afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Deadline(u64);

impl Deadline {
    pub(crate) fn after(remaining: Duration) -> Self {
        Self(clock::unix_ms().saturating_add(millis(remaining)))
    }

    /// What is left of the time at this moment.
    pub(crate) fn remaining(self, unix_ms: u64) -> Duration {
        Duration::from_millis(self.0.saturating_sub(unix_ms))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    Reply {
        id: u64,
        outcome: Outcome,
    },
    /// How long the logs are at a time of the run.
    Grown {
        stdout: u64,
        stderr: u64,
        /// When this was sent, in milliseconds since the Unix epoch by the run's own clock. Supervisors of earlier versions do not
        /// report it.
        #[serde(default)]
        now_ms: Option<u64>,
    },
    Exited(Box<ExitRecord>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Done,
    /// The program has exited.
    Ended,
    StdinClosed,
    Stopping,
    Failed(String),
}

/// How long the two logs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Lengths {
    pub(crate) stdout: u64,
    pub(crate) stderr: u64,
}

/// One value as its line.
pub(crate) fn line<T: Serialize>(value: &T) -> Vec<u8> {
    // These types hold nothing that JSON cannot express, so the encoder has no way to fail on them.
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_messages_read_as_documented() {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert_eq!(
            text(line(&Request { id: 1, op: Operation::Write { length: 5 } })),
            "{\"id\":1,\"op\":{\"write\":{\"length\":5}}}\n"
        );
        assert_eq!(text(line(&Request { id: 2, op: Operation::Stop })), "{\"id\":2,\"op\":\"stop\"}\n");
        assert_eq!(
            text(line(&Request { id: 4, op: Operation::Extend(Deadline(1_800_000_000_123)) })),
            "{\"id\":4,\"op\":{\"extend\":1800000000123}}\n"
        );
        assert_eq!(
            text(line(&Message::Reply { id: 2, outcome: Outcome::Done })),
            "{\"reply\":{\"id\":2,\"outcome\":\"done\"}}\n"
        );
        assert_eq!(
            text(line(&Message::Grown { stdout: 7, stderr: 0, now_ms: Some(5) })),
            "{\"grown\":{\"stdout\":7,\"stderr\":0,\"now_ms\":5}}\n"
        );
    }

    #[test]
    fn the_lengths_that_an_earlier_version_reports_have_no_time() {
        let growth: Message = serde_json::from_str(r#"{"grown":{"stdout":7,"stderr":1}}"#).unwrap();
        assert_eq!(growth, Message::Grown { stdout: 7, stderr: 1, now_ms: None });
    }

    #[test]
    fn a_deadline_leaves_the_time_until_then_and_none_once_it_has_passed() {
        let deadline = Deadline(1_000_500);
        let left = [1_000_000, 1_000_500, 9_000_000].map(|now| deadline.remaining(now).as_millis());
        assert_eq!(left, [500, 0, 0]);
    }
}
