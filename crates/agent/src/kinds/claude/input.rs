//! Messages to the model: the prompt, and those of the operator while it works.
//!
//! Each message has an id, derived from the attempt's. The CLI echoes it when the model gets the message, and accepts
//! no id twice. A message that is too late for the current turn begins another turn.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::json;
use towline_core::{AgentEvent, AttemptId, MessageNo};

use super::protocol::ClaudeProtocol;
use crate::protocol::Action;

/// Up to this number, an operator's message is recognised by its id alone when the conversation is read again.
const KNOWN_BY_ID: u32 = 1_000;

/// The operator's messages.
#[derive(Debug)]
pub(super) struct ClaudeOperatorMessages {
    attempt: AttemptId,
    received: BTreeSet<MessageNo>,
    heard: BTreeSet<MessageNo>,
    /// Messages that wait until the prompt was sent.
    held: Vec<(MessageNo, String)>,
    /// The ids of messages that were sent before the conversation is read again.
    recalled: BTreeSet<String>,
}

/// A message that was sent to the CLI.
#[derive(Deserialize)]
struct SentMessage {
    uuid: String,
}

impl ClaudeOperatorMessages {
    pub(super) const fn new(attempt: AttemptId) -> Self {
        Self {
            attempt,
            received: BTreeSet::new(),
            heard: BTreeSet::new(),
            held: Vec::new(),
            recalled: BTreeSet::new(),
        }
    }

    /// The operator's message with this id.
    fn number(&self, id: &str) -> Option<MessageNo> {
        let is_it = |message: &MessageNo| self.attempt.message(&name(*message)) == id;
        let received = self.received.iter().copied().find(is_it);
        let is_recalled = self.recalled.contains(id);
        received.or_else(|| is_recalled.then(|| (1..=KNOWN_BY_ID).map(MessageNo).find(is_it)).flatten())
    }
}

impl ClaudeProtocol {
    /// Sends the prompt, then the messages that waited for it.
    pub(super) fn send_prompt(&mut self) -> Vec<Action> {
        self.prompts_waiting += 1;
        let mut actions: Vec<_> = self.send_message("prompt", &self.prompt).into_iter().collect();
        for (message, text) in std::mem::take(&mut self.operator_messages.held) {
            actions.extend(self.send_message(&name(message), &text));
        }
        actions
    }

    /// Sends a message to the model, as long as the CLI accepts input.
    pub(super) fn send_message(&self, name: &str, text: &str) -> Option<Action> {
        self.write(&json!({
            "type": "user",
            "message": {"role": "user", "content": [{"type": "text", "text": text}]},
            "uuid": self.operator_messages.attempt.message(name),
        }))
    }

    pub(super) fn on_operator_message(&mut self, message: MessageNo, text: String) -> Vec<Action> {
        if self.operator_messages.heard.contains(&message) || !self.operator_messages.received.insert(message)
        {
            return Vec::new();
        }
        if self.compaction.is_some() {
            self.operator_messages.held.push((message, text));
            return Vec::new();
        }
        self.send_message(&name(message), &text).into_iter().collect()
    }

    pub(super) fn recall_message(&mut self, sent: &[u8]) {
        if let Ok(SentMessage { uuid }) = serde_json::from_slice(sent) {
            self.operator_messages.recalled.insert(uuid);
        }
    }

    /// The model got the message with this id.
    pub(super) fn on_echo(&mut self, id: &str) -> Vec<Action> {
        if id == self.operator_messages.attempt.message("prompt") {
            return Vec::new();
        }
        let Some(message) = self.operator_messages.number(id) else { return Vec::new() };
        if !self.operator_messages.heard.insert(message) {
            return Vec::new();
        }
        let mut actions = self.start_turn();
        actions.push(Action::emit(AgentEvent::Heard { message }));
        actions
    }

    /// Reports the start of a turn, once per turn.
    pub(super) fn start_turn(&mut self) -> Vec<Action> {
        let is_reported = std::mem::replace(&mut self.turn_is_reported, true);
        if is_reported { Vec::new() } else { vec![Action::emit(AgentEvent::TurnStarted)] }
    }
}

fn name(message: MessageNo) -> String {
    format!("tell {message}")
}
