//! Messages to the model: the prompt, and those of the operator.
//!
//! The protocol cannot send a message to a model at work: a second prompt ends the first for some agents and is lost
//! for others. So the operator's messages wait for the end of the turn and become the next prompt of the same
//! process. A message has reached the model when the model works on it.

use std::collections::{BTreeSet, VecDeque};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use towline_core::{AgentEvent, MessageNo};

use super::protocol::{AcpProtocol, Purpose, Stage};
use crate::protocol::Action;

/// Asks an agent to end its turn.
pub(super) const CANCEL: &str = "session/cancel";

/// The operator's messages.
#[derive(Debug, Default)]
pub(super) struct AcpOperatorMessages {
    received: BTreeSet<MessageNo>,
    /// Those that are not sent yet.
    pub(super) waiting: VecDeque<(MessageNo, String)>,
}

impl AcpProtocol {
    pub(super) fn on_operator_message(&mut self, message: MessageNo, text: String) {
        if self.lines.listens() && self.operator_messages.received.insert(message) {
            self.operator_messages.waiting.push_back((message, text));
        }
    }

    /// Sends the prompt.
    pub(super) fn send_prompt(&mut self) -> Vec<Action> {
        let text = std::mem::take(&mut self.prompt);
        self.stage = Stage::Prompted;
        let more = self.system_append.take();
        let texts: Vec<_> = more.iter().chain([&text]).map(String::as_str).collect();
        self.begin_turn(None);
        let mut actions = vec![Action::emit(AgentEvent::TurnStarted)];
        actions.extend(self.send_message("prompt", Purpose::Prompt, &texts));
        actions
    }

    /// Sends the operator's next message, if there is one and the agent accepts it.
    pub(super) fn send_next_message(&mut self) -> Option<Action> {
        if !self.lines.listens() {
            return None;
        }
        let (message, text) = self.operator_messages.waiting.pop_front()?;
        self.begin_turn(Some(message));
        self.send_message(&format!("tell-{message}"), Purpose::Prompt, &[&text])
    }

    /// Sends a message to the model.
    pub(super) fn send_message(&mut self, id: &str, purpose: Purpose, texts: &[&str]) -> Option<Action> {
        let session = self.session.as_ref()?.as_str();
        let blocks: Vec<_> = texts.iter().map(|text| json!({"text": text, "type": "text"})).collect();
        let params = json!({"prompt": blocks, "sessionId": session});
        self.request(id, purpose, "session/prompt", params)
    }

    /// Reads a line that the agent was sent before. Operator's messages are sent again at the same place, where the
    /// writer recognises them as sent. Requests with an answer in the log do not wait for one.
    pub(super) fn recall(&mut self, line: &[u8]) {
        let Ok(sent) = serde_json::from_slice::<Sent<'_>>(line) else { return };
        let Some(id) = sent.id else {
            self.was_interrupted |= sent.method.as_deref() == Some(CANCEL);
            return;
        };
        if sent.method.is_none() {
            self.answered.insert(id.get().to_owned(), sent.result);
            return;
        }
        let number = serde_json::from_str::<String>(id.get()).ok();
        let number = number.as_deref().and_then(|id| id.strip_prefix("tell-")?.parse().ok());
        let text = sent.params.pointer("/prompt/0/text").and_then(Value::as_str);
        if let (Some(number), Some(text)) = (number, text) {
            self.on_operator_message(MessageNo(number), text.to_owned());
        }
    }
}

#[derive(Deserialize)]
struct Sent<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    params: Value,
}
