//! The model's text: pieces as they arrive, and the whole when it is complete.
//!
//! When an answer of the model breaks off, the CLI waits for a second or more, asks again, and writes the new answer
//! right after the old one. So a message is stored in stretches, separated where the CLI paused: a stretch that
//! begins like the message itself replaces it.

use jiff::Timestamp;
use towline_core::{AgentEvent, Role};

use crate::protocol::Action;

/// It pauses for a second before the first retry, and longer after that.
const PAUSE_MS: i128 = 900;

/// This many equal characters at their beginnings are no coincidence.
const ALIKE: usize = 16;

/// The message that is being written.
#[derive(Debug, Default)]
pub(super) struct GeminiSpeech {
    /// All stretches but the last, without replaced ones.
    settled: String,
    /// The text since the last pause.
    stretch: String,
    last_piece: Option<Timestamp>,
    /// The last complete message of the turn.
    last: String,
}

impl GeminiSpeech {
    /// A piece of a message. Only new text is reported live.
    pub(super) fn message_piece(&mut self, piece: &str, at: Option<Timestamp>, actions: &mut Vec<Action>) {
        if self.is_pause(at) {
            self.settle();
        }
        self.last_piece = at.or(self.last_piece);
        let known = self.stretch.len();
        self.stretch.push_str(piece);
        let text = if self.settled.starts_with(&self.stretch) {
            ""
        } else if self.stretch.starts_with(&self.settled) {
            &self.stretch[known.max(self.settled.len())..]
        } else {
            piece
        };
        if !text.is_empty() {
            actions.push(Action::emit(AgentEvent::MessageDelta { text: text.to_owned() }));
        }
    }

    /// Completes the message that is being written.
    pub(super) fn over(&mut self, actions: &mut Vec<Action>) {
        self.settle();
        self.last_piece = None;
        let text = std::mem::take(&mut self.settled);
        if !text.trim().is_empty() {
            self.last.clone_from(&text);
            actions.push(Action::emit(AgentEvent::Message { role: Role::Assistant, text }));
        }
    }

    /// Takes the last message of a turn that is over.
    pub(super) fn take_last(&mut self) -> String {
        std::mem::take(&mut self.last)
    }

    fn is_pause(&self, at: Option<Timestamp>) -> bool {
        let (Some(before), Some(at)) = (self.last_piece, at) else { return false };
        at.as_nanosecond() - before.as_nanosecond() >= PAUSE_MS * 1_000_000
    }

    fn settle(&mut self) {
        let stretch = std::mem::take(&mut self.stretch);
        if self.settled.is_empty() || begins_anew(&self.settled, &stretch) {
            self.settled = stretch;
        } else {
            self.settled.push_str(&stretch);
        }
    }
}

/// Whether two texts begin alike: one is a prefix of the other, or they share a long enough prefix.
fn begins_anew(before: &str, after: &str) -> bool {
    let alike = before.chars().zip(after.chars()).take_while(|(one, other)| one == other).count();
    let shorter = before.chars().count().min(after.chars().count());
    shorter > 0 && (alike == shorter || alike >= ALIKE)
}
