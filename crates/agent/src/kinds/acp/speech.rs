//! The text and the thoughts of the agent: pieces as they arrive, and the whole when it is complete.
//!
//! Nothing marks the end of a message. It is complete when another one begins, when the agent does something else, or
//! at the end of the turn. Events are added to a list, because some pieces lead to more than one.

use towline_core::{AgentEvent, Role};

use crate::protocol::Action;

/// The message and the thought that are being written.
#[derive(Debug, Default)]
pub(super) struct Speech {
    message: Piece,
    thought: Piece,
    /// The last complete message of the turn.
    last: String,
}

#[derive(Debug, Default)]
struct Piece {
    id: Option<String>,
    text: String,
}

impl Speech {
    /// A piece of a message.
    pub(super) fn message_piece(&mut self, id: Option<&str>, text: &str, actions: &mut Vec<Action>) {
        self.thought_over(actions);
        if self.message.id.as_deref() != id {
            self.message_over(actions);
            self.message.id = id.map(str::to_owned);
        }
        self.message.text.push_str(text);
        actions.push(Action::emit(AgentEvent::MessageDelta { text: text.to_owned() }));
    }

    /// A piece of a thought.
    pub(super) fn thought_piece(&mut self, id: Option<&str>, text: &str, actions: &mut Vec<Action>) {
        self.message_over(actions);
        if self.thought.id.as_deref() != id {
            self.thought_over(actions);
            self.thought.id = id.map(str::to_owned);
        }
        self.thought.text.push_str(text);
    }

    /// Completes what is being written.
    pub(super) fn over(&mut self, actions: &mut Vec<Action>) {
        self.thought_over(actions);
        self.message_over(actions);
    }

    /// Takes the last message of a turn that is over.
    pub(super) fn take_last(&mut self) -> String {
        std::mem::take(&mut self.last)
    }

    fn message_over(&mut self, actions: &mut Vec<Action>) {
        let text = std::mem::take(&mut self.message).text;
        if !text.trim().is_empty() {
            self.last.clone_from(&text);
            actions.push(Action::emit(AgentEvent::Message { role: Role::Assistant, text }));
        }
    }

    fn thought_over(&mut self, actions: &mut Vec<Action>) {
        let text = std::mem::take(&mut self.thought).text;
        if !text.trim().is_empty() {
            actions.push(Action::emit(AgentEvent::Thought { text }));
        }
    }
}
