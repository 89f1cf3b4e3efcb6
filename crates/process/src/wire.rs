//! What client and shim say to each other on the socket: one JSON value per line in both directions.
//!
//! A client sends [`Request`]s and gets one [`Message::Reply`] for each, in order; `Grown` and `Exited` come
//! unasked. The bytes of a `write` follow its line as they are (`length` of them), so that any bytes pass
//! without an encoding and neither side has to hold them whole.

use serde::{Deserialize, Serialize};

use crate::launch::Deadline;
use crate::platform::Signal;
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
    /// To the program alone, not to its tree.
    Signal(Signal),
    Stop,
    Kill,
    Extend(Deadline),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    Reply { id: u64, outcome: Outcome },
    Grown(Lengths),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Lengths {
    pub(crate) stdout: u64,
    pub(crate) stderr: u64,
}

/// One value as its line.
pub(crate) fn line<T: Serialize>(value: &T) -> Vec<u8> {
    // These types hold nothing that JSON cannot say, so the encoder has no way to fail on them.
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
            text(line(&Request { id: 3, op: Operation::Signal(Signal::Interrupt) })),
            "{\"id\":3,\"op\":{\"signal\":\"interrupt\"}}\n"
        );
        assert_eq!(
            text(line(&Message::Reply { id: 2, outcome: Outcome::Done })),
            "{\"reply\":{\"id\":2,\"outcome\":\"done\"}}\n"
        );
        assert_eq!(
            text(line(&Message::Grown(Lengths { stdout: 7, stderr: 0 }))),
            "{\"grown\":{\"stdout\":7,\"stderr\":0}}\n"
        );
    }
}
