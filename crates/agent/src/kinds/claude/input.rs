//! What is said to the model: the prompt, and the operator's words while it works.
//!
//! Each message has an id of its own, made from the attempt's: the CLI shows it again when the model gets it, and
//! takes no id twice. A message that comes too late for the turn at work begins a turn of its own.

use std::collections::BTreeSet;

use serde_json::json;
use towline_core::{AgentEvent, AttemptId, MessageNo};

use super::protocol::ClaudeProtocol;
use crate::protocol::Action;

/// Up to this number an operator's message is known by its id alone, to whoever reads the conversation again.
const KNOWN_BY_ID: u32 = 1_000;

/// Where an id says how it was made, and what it says there when it was made from a name, as ours are.
const VERSION_AT: usize = 14;
const FROM_NAME: u8 = b'5';

/// The operator's words.
#[derive(Debug)]
pub(super) struct Tells {
    attempt: AttemptId,
    said: BTreeSet<MessageNo>,
    heard: BTreeSet<MessageNo>,
    /// What the prompt goes before.
    held: Vec<(MessageNo, String)>,
}

impl Tells {
    pub(super) const fn new(attempt: AttemptId) -> Self {
        Self { attempt, said: BTreeSet::new(), heard: BTreeSet::new(), held: Vec::new() }
    }

    /// Which of the operator's messages has this id.
    fn number(&self, id: &str) -> Option<MessageNo> {
        if id.as_bytes().get(VERSION_AT) != Some(&FROM_NAME) {
            return None;
        }
        let is_it = |message: &MessageNo| self.attempt.message(&name(*message)) == id;
        let said = self.said.iter().copied().find(is_it);
        said.or_else(|| (1..=KNOWN_BY_ID).map(MessageNo).find(is_it))
    }
}

impl ClaudeProtocol {
    /// Sends the prompt, and after it what had to wait for it.
    pub(super) fn send_prompt(&mut self) -> Vec<Action> {
        self.prompts_waiting += 1;
        let mut actions: Vec<_> = self.say("prompt", &self.prompt).into_iter().collect();
        for (message, text) in std::mem::take(&mut self.tells.held) {
            actions.extend(self.say(&name(message), &text));
        }
        actions
    }

    /// Says something to the model, as long as it listens.
    pub(super) fn say(&self, name: &str, text: &str) -> Option<Action> {
        self.write(&json!({
            "type": "user",
            "message": {"role": "user", "content": [{"type": "text", "text": text}]},
            "uuid": self.tells.attempt.message(name),
        }))
    }

    pub(super) fn on_tell(&mut self, message: MessageNo, text: String) -> Vec<Action> {
        if self.tells.heard.contains(&message) || !self.tells.said.insert(message) {
            return Vec::new();
        }
        if self.compaction.is_some() {
            self.tells.held.push((message, text));
            return Vec::new();
        }
        self.say(&name(message), &text).into_iter().collect()
    }

    /// The model got the message with this id.
    pub(super) fn on_echo(&mut self, id: &str) -> Vec<Action> {
        if id == self.tells.attempt.message("prompt") {
            return Vec::new();
        }
        let Some(message) = self.tells.number(id) else { return Vec::new() };
        if !self.tells.heard.insert(message) {
            return Vec::new();
        }
        let mut actions = self.start_turn();
        actions.push(Action::emit(AgentEvent::Heard { message }));
        actions
    }

    /// Tells that a turn has begun, once for each.
    pub(super) fn start_turn(&mut self) -> Vec<Action> {
        let is_told = std::mem::replace(&mut self.turn_is_told, true);
        if is_told { Vec::new() } else { vec![Action::emit(AgentEvent::TurnStarted)] }
    }
}

fn name(message: MessageNo) -> String {
    format!("tell {message}")
}
