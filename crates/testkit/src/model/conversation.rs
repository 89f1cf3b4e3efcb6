//! A conversation, independent of the wire format.

use super::ToolResult;

/// A message, or the run of messages, of one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConversationMessage {
    pub(super) by: Speaker,
    pub(super) parts: Vec<Part>,
}

/// The sender of a message. System prompts are not part of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Model,
}

/// One piece of a message that tests can look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    ToolResult(ToolResult),
}

impl ConversationMessage {
    /// Joins messages of the same side that follow each other: formats that make a message of every tool result, or
    /// of every reminder, have no other "last user message".
    pub(super) fn join(messages: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut joined: Vec<Self> = Vec::new();
        for message in messages {
            match joined.last_mut() {
                Some(last) if last.by == message.by => last.parts.extend(message.parts),
                _ => joined.push(message),
            }
        }
        joined
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::ToolResult(_) => None,
        })
    }

    pub(super) fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::ToolResult(result) => Some(result),
        })
    }

    /// All its text, that of tool results too.
    pub(super) fn all_texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::ToolResult(result) => result.text.as_str(),
        })
    }
}
