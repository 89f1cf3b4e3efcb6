//! The operator's messages and interrupts while the agent works.
//!
//! The agent takes messages into the current turn and echoes them, with our id, when the model gets them. It refuses
//! messages that come too late, and they are not heard.

use std::collections::BTreeSet;

use serde_json::json;
use towline_core::{AgentEvent, MessageNo};

use super::opening::{CodexPurpose, CodexStage, text_input};
use super::protocol::CodexProtocol;
use crate::protocol::Action;

/// The operator's messages.
#[derive(Debug, Default)]
pub(super) struct CodexOperatorMessages {
    received: BTreeSet<MessageNo>,
    heard: BTreeSet<MessageNo>,
    /// Messages that wait for the turn to begin.
    held: Vec<(MessageNo, String)>,
    interrupts: u32,
}

const ID_PREFIX: &str = "tell-";

impl CodexProtocol {
    pub(super) fn on_operator_message(&mut self, message: MessageNo, text: String) -> Vec<Action> {
        if self.operator_messages.heard.contains(&message) || !self.operator_messages.received.insert(message)
        {
            return Vec::new();
        }
        self.operator_messages.held.push((message, text));
        self.send_held_messages()
    }

    /// Sends the messages that waited for the turn of the prompt.
    pub(super) fn send_held_messages(&mut self) -> Vec<Action> {
        if self.stage != CodexStage::Prompted || !self.turn_is_reported {
            return Vec::new();
        }
        let held = std::mem::take(&mut self.operator_messages.held);
        held.into_iter()
            .filter_map(|(message, text)| self.send_message(&format!("{ID_PREFIX}{message}"), &text))
            .collect()
    }

    /// Sends a message into the current turn.
    pub(super) fn send_message(&mut self, id: &str, text: &str) -> Option<Action> {
        let (thread, turn) = (self.thread.clone()?, self.turn.clone()?);
        let params = json!({
            "threadId": thread,
            "expectedTurnId": turn,
            "clientUserMessageId": id,
            "input": [text_input(text)],
        });
        self.ask_of_agent(id, CodexPurpose::Steer, "turn/steer", params)
    }

    /// The model got the message with this id.
    pub(super) fn on_echo(&mut self, id: &str) -> Option<Action> {
        let message = id.strip_prefix(ID_PREFIX)?.parse().ok().map(MessageNo)?;
        self.operator_messages.heard.insert(message).then(|| Action::emit(AgentEvent::Heard { message }))
    }

    /// Without a running turn there is nothing to interrupt, and nothing to wait for.
    pub(super) fn on_interrupt(&mut self) -> Option<Action> {
        let (Some(thread), Some(turn)) = (self.thread.clone(), self.turn.clone()) else {
            return self.lines.close();
        };
        self.operator_messages.interrupts += 1;
        let id = format!("interrupt-{}", self.operator_messages.interrupts);
        let params = json!({"threadId": thread, "turnId": turn});
        self.ask_of_agent(&id, CodexPurpose::Steer, "turn/interrupt", params)
    }
}
