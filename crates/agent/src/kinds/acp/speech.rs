//! What the agent says and thinks: pieces as they come, and the whole when it is complete.
//!
//! Nothing marks the end of a message. It is over when another one begins, when the agent does something else, or at
//! the end of the turn. What there is to tell is added to a list: most pieces are one event, and only some are more.

use towline_core::{AgentEvent, Role};

use crate::protocol::Action;

/// The message and the reasoning that are being written.
#[derive(Debug, Default)]
pub(super) struct Speech {
    message: Piece,
    thought: Piece,
    /// The last whole message of the turn.
    last: String,
}

#[derive(Debug, Default)]
struct Piece {
    id: Option<String>,
    text: String,
}

impl Speech {
    /// A piece of a message.
    pub(super) fn said(&mut self, id: Option<&str>, text: &str, told: &mut Vec<Action>) {
        self.thought_over(told);
        if self.message.id.as_deref() != id {
            self.message_over(told);
            self.message.id = id.map(str::to_owned);
        }
        self.message.text.push_str(text);
        told.push(Action::emit(AgentEvent::MessageDelta { text: text.to_owned() }));
    }

    /// A piece of the reasoning.
    pub(super) fn thought(&mut self, id: Option<&str>, text: &str, told: &mut Vec<Action>) {
        self.message_over(told);
        if self.thought.id.as_deref() != id {
            self.thought_over(told);
            self.thought.id = id.map(str::to_owned);
        }
        self.thought.text.push_str(text);
    }

    /// What is being written is complete.
    pub(super) fn over(&mut self, told: &mut Vec<Action>) {
        self.thought_over(told);
        self.message_over(told);
    }

    /// The last message of the turn, which is over.
    pub(super) fn take_last(&mut self) -> String {
        std::mem::take(&mut self.last)
    }

    fn message_over(&mut self, told: &mut Vec<Action>) {
        let text = std::mem::take(&mut self.message).text;
        if !text.trim().is_empty() {
            self.last.clone_from(&text);
            told.push(Action::emit(AgentEvent::Message { role: Role::Assistant, text }));
        }
    }

    fn thought_over(&mut self, told: &mut Vec<Action>) {
        let text = std::mem::take(&mut self.thought).text;
        if !text.trim().is_empty() {
            told.push(Action::emit(AgentEvent::Thought { text }));
        }
    }
}
