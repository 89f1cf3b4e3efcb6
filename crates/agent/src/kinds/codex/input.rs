//! What the operator wants of the agent while it works: words, and that it stops.
//!
//! The agent takes words up within its turn and shows them again, with the id we gave them, when the model gets them.
//! Words that come too late are refused by it, and not heard.

use std::collections::BTreeSet;

use serde_json::json;
use towline_core::{AgentEvent, MessageNo};

use super::opening::{Purpose, Stage, text_input};
use super::protocol::CodexProtocol;
use crate::protocol::Action;

/// The operator's words.
#[derive(Debug, Default)]
pub(super) struct Tells {
    said: BTreeSet<MessageNo>,
    heard: BTreeSet<MessageNo>,
    /// What waits for the turn to begin.
    held: Vec<(MessageNo, String)>,
    interrupts: u32,
}

const TELL: &str = "tell-";

impl CodexProtocol {
    pub(super) fn on_tell(&mut self, message: MessageNo, text: String) -> Vec<Action> {
        if self.tells.heard.contains(&message) || !self.tells.said.insert(message) {
            return Vec::new();
        }
        self.tells.held.push((message, text));
        self.say_what_was_held()
    }

    /// Says what had to wait for the turn that answers the prompt.
    pub(super) fn say_what_was_held(&mut self) -> Vec<Action> {
        if self.stage != Stage::Prompted || !self.turn_is_told {
            return Vec::new();
        }
        let held = std::mem::take(&mut self.tells.held);
        held.into_iter().filter_map(|(message, text)| self.say(&format!("{TELL}{message}"), &text)).collect()
    }

    /// Says something within the turn at work.
    pub(super) fn say(&mut self, id: &str, text: &str) -> Option<Action> {
        let (thread, turn) = (self.thread.clone()?, self.turn.clone()?);
        let params = json!({
            "threadId": thread,
            "expectedTurnId": turn,
            "clientUserMessageId": id,
            "input": [text_input(text)],
        });
        self.ask_of_agent(id, Purpose::Steer, "turn/steer", params)
    }

    /// The model got a message with this id.
    pub(super) fn on_echo(&mut self, id: &str) -> Option<Action> {
        let message = id.strip_prefix(TELL)?.parse().ok().map(MessageNo)?;
        self.tells.heard.insert(message).then(|| Action::emit(AgentEvent::Heard { message }))
    }

    /// Where no turn is at work, there is nothing to interrupt, and nothing to wait for either.
    pub(super) fn on_interrupt(&mut self) -> Option<Action> {
        let (Some(thread), Some(turn)) = (self.thread.clone(), self.turn.clone()) else {
            return self.lines.close();
        };
        self.tells.interrupts += 1;
        let id = format!("interrupt-{}", self.tells.interrupts);
        let params = json!({"threadId": thread, "turnId": turn});
        self.ask_of_agent(&id, Purpose::Steer, "turn/interrupt", params)
    }
}
