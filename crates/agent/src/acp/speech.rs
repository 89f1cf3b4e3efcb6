//! What the agent says and thinks: pieces as they come, and the whole when it is complete.
//!
//! Nothing marks the end of a message. It is over when another one begins, when the agent does something else, or at
//! the end of the turn.

use towline_core::{AgentEvent, Role};

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
    pub(super) fn said(
        &mut self,
        id: Option<&str>,
        text: String,
    ) -> impl Iterator<Item = AgentEvent> + use<> {
        let thought = self.thought_over();
        let before = (self.message.id.as_deref() != id).then(|| {
            let before = self.message_over();
            self.message.id = id.map(str::to_owned);
            before
        });
        self.message.text.push_str(&text);
        thought.into_iter().chain(before.flatten()).chain([AgentEvent::MessageDelta { text }])
    }

    /// A piece of the reasoning.
    pub(super) fn thought(
        &mut self,
        id: Option<&str>,
        text: &str,
    ) -> impl Iterator<Item = AgentEvent> + use<> {
        let message = self.message_over();
        let before = (self.thought.id.as_deref() != id).then(|| {
            let before = self.thought_over();
            self.thought.id = id.map(str::to_owned);
            before
        });
        self.thought.text.push_str(text);
        message.into_iter().chain(before.flatten())
    }

    /// What is being written is complete.
    pub(super) fn over(&mut self) -> impl Iterator<Item = AgentEvent> + use<> {
        self.thought_over().into_iter().chain(self.message_over())
    }

    /// The last message of the turn, which is over.
    pub(super) fn take_last(&mut self) -> String {
        std::mem::take(&mut self.last)
    }

    fn message_over(&mut self) -> Option<AgentEvent> {
        let text = std::mem::take(&mut self.message).text;
        if text.trim().is_empty() {
            return None;
        }
        self.last.clone_from(&text);
        Some(AgentEvent::Message { role: Role::Assistant, text })
    }

    fn thought_over(&mut self) -> Option<AgentEvent> {
        let text = std::mem::take(&mut self.thought).text;
        (!text.trim().is_empty()).then_some(AgentEvent::Thought { text })
    }
}
