//! The base of every protocol on JSON lines: it separates frames from other lines, counts unknown frames, and tracks
//! whether the agent's input is still open.
//!
//! Neighbours: the protocols, which read one line at a time.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use towline_core::End;

use crate::json::{self, Text};
use crate::protocol::{Action, Frame, ProcessEnd};
use crate::unrecognised::Unrecognised;

/// A frame that this version does not understand, by the name to count it under.
pub(crate) struct Unknown(pub(crate) String);

impl Unknown {
    /// A line that is no frame of any kind.
    pub(crate) fn line(line: &str) -> Self {
        Self::frame(line, "JSON of another shape")
    }

    /// A frame with this name that is unknown or of another shape.
    pub(crate) fn frame(line: &str, name: &str) -> Self {
        let is_json = serde_json::from_str::<IgnoredAny>(line).is_ok();
        Self(if is_json { name } else { "not JSON" }.to_owned())
    }
}

/// The `type` of a frame. It is the first field of nearly all frames, which are then parsed once; others are parsed
/// twice.
pub(crate) fn frame_type(line: &str) -> Result<Text<'_>, Unknown> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow)]
        r#type: Text<'a>,
    }
    match json::leading("type", line) {
        Some(kind) => Ok(kind.into()),
        None => serde_json::from_str(line).map(|Envelope { r#type }| r#type).map_err(|_| Unknown::line(line)),
    }
}

/// Parses a frame of a known name. One of another shape is counted under that name.
pub(crate) fn decode<'a, T: Deserialize<'a>>(line: &'a str, name: &str) -> Result<T, Unknown> {
    serde_json::from_str(line).map_err(|_| Unknown::frame(line, name))
}

/// The actions for a frame, unless it is not understood.
pub(crate) type Reading = Result<Vec<Action>, Unknown>;

/// A conversation on JSON lines.
pub(crate) trait Conversation {
    fn lines(&mut self) -> &mut Lines;

    /// Handles a line that is not empty.
    fn read(&mut self, line: &str) -> Reading;

    /// Handles a frame; one that is not understood is counted.
    fn read_frame(&mut self, frame: Frame<'_>) -> Vec<Action> {
        let line = match frame.text() {
            Ok(line) => line,
            Err(raw) => return self.lines().unknown("too long".to_owned(), &raw),
        };
        if line.is_empty() {
            return Vec::new();
        }
        self.read(&line).unwrap_or_else(|Unknown(what)| self.lines().unknown(what, &line))
    }
}

/// The state of every conversation on lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    stdin: Stdin,
    unrecognised: Unrecognised,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stdin {
    #[default]
    Open,
    /// To be closed once nothing is outstanding.
    Closing,
    Closed,
}

impl Lines {
    /// Counts a frame that is not understood.
    pub(crate) fn unknown(&mut self, what: String, raw: &str) -> Vec<Action> {
        self.unrecognised.note(what, raw).into_iter().collect()
    }

    /// Whether the agent's input is still open.
    pub(crate) fn listens(&self) -> bool {
        self.stdin != Stdin::Closed
    }

    /// Writes a line, as long as the agent's input is open.
    pub(crate) fn write(&self, line: Vec<u8>) -> Option<Action> {
        self.listens().then_some(Action::Write(line))
    }

    /// Closes the agent's input, once.
    pub(crate) fn close(&mut self) -> Option<Action> {
        let was = std::mem::replace(&mut self.stdin, Stdin::Closed);
        (was != Stdin::Closed).then_some(Action::CloseStdin)
    }

    /// Closes the agent's input now or, while something is outstanding, with the next [`Self::close_if_due`].
    pub(crate) fn close_in_time(&mut self, is_idle: bool) -> Option<Action> {
        if self.listens() {
            self.stdin = Stdin::Closing;
        }
        self.close_if_due(is_idle)
    }

    /// Closes the agent's input if that was postponed and nothing is outstanding.
    pub(crate) fn close_if_due(&mut self, is_idle: bool) -> Option<Action> {
        (self.stdin == Stdin::Closing && is_idle).then(|| self.close()).flatten()
    }

    /// The agent works again: its input stays open.
    pub(crate) fn keep_open(&mut self) {
        if self.listens() {
            self.stdin = Stdin::Open;
        }
    }

    /// The final actions when the process has ended.
    pub(crate) fn finish(&mut self, exit: &ProcessEnd, end: &End) -> Vec<Action> {
        let oddity = exit.oddity_after(end).map(Action::notice);
        self.rest().into_iter().chain(oddity).collect()
    }

    /// Frames that were not understood and not yet reported.
    pub(crate) fn rest(&mut self) -> Vec<Action> {
        self.stdin = Stdin::Closed;
        self.unrecognised.rest()
    }
}

/// A message as a line. Messages are plain values, which can always be serialised.
pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
