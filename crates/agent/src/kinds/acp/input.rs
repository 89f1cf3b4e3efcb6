//! What is said to the model: the prompt, and the operator's words.
//!
//! The protocol has no way to say something to a model at work: a second prompt ends the first for some agents and
//! loses it for others. So the operator's words wait for the end of the turn and are the next prompt of the same
//! process. They have reached the model when it works on them.

use std::collections::{BTreeSet, VecDeque};

use serde::Deserialize;
use towline_core::{AgentEvent, MessageNo};

use super::protocol::{AcpProtocol, Purpose, Stage};
use super::sent::{self, Block};
use super::turn::Whose;
use crate::protocol::Action;

/// What asks an agent to end its turn.
pub(super) const CANCEL: &str = "session/cancel";

/// The operator's words.
#[derive(Debug, Default)]
pub(super) struct Tells {
    said: BTreeSet<MessageNo>,
    waiting: VecDeque<(MessageNo, String)>,
}

impl Tells {
    /// Whether all of them were sent.
    pub(super) fn are_sent(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl AcpProtocol {
    pub(super) fn on_tell(&mut self, message: MessageNo, text: String) {
        if self.lines.listens() && self.tells.said.insert(message) {
            self.tells.waiting.push_back((message, text));
        }
    }

    /// Sends the prompt.
    pub(super) fn send_prompt(&mut self) -> Vec<Action> {
        let text = std::mem::take(&mut self.prompt);
        self.stage = Stage::Prompted;
        let more = self.system_append.take();
        let blocks: Vec<Block<'_>> = more.iter().chain([&text]).map(|text| Block::text(text)).collect();
        self.begin_turn(Whose::Prompt);
        let mut actions = vec![Action::emit(AgentEvent::TurnStarted)];
        actions.extend(self.say("prompt", Purpose::Prompt, &blocks));
        actions
    }

    /// Sends the operator's next words, when there are some and somebody to hear them.
    pub(super) fn send_next_tell(&mut self) -> Option<Action> {
        if !self.lines.listens() {
            return None;
        }
        let (message, text) = self.tells.waiting.pop_front()?;
        self.begin_turn(Whose::Tell(message));
        self.say(&name(message), Purpose::Tell(message), &[Block::text(&text)])
    }

    /// Says something to the model.
    pub(super) fn say(&mut self, id: &str, purpose: Purpose, blocks: &[Block<'_>]) -> Option<Action> {
        let session = self.session.clone()?;
        let params = sent::Prompt { prompt: blocks, session_id: session.as_str() };
        self.request(id, purpose, "session/prompt", params)
    }

    /// What the agent was sent before: the operator's words among it are to be sent again in their place, where
    /// whoever writes sees that they were; requests that have their answer among it wait for none.
    pub(super) fn recall(&mut self, line: &[u8]) {
        let Ok(sent) = serde_json::from_slice::<Sent<'_>>(line) else { return };
        let Some(id) = sent.id else {
            self.was_interrupted |= sent.method.as_deref() == Some(CANCEL);
            return;
        };
        if sent.method.is_none() {
            self.answered.insert(id.get().to_owned(), sent.result.unwrap_or_default());
            return;
        }
        let number = serde_json::from_str::<String>(id.get()).ok();
        let number = number.as_deref().and_then(|id| id.strip_prefix("tell-")?.parse().ok());
        let text = sent.params.and_then(|params| params.prompt.into_iter().next()).map(|block| block.text);
        if let (Some(number), Some(text)) = (number, text) {
            self.on_tell(MessageNo(number), text);
        }
    }
}

#[derive(Deserialize)]
struct Sent<'a> {
    #[serde(borrow)]
    id: Option<&'a serde_json::value::RawValue>,
    method: Option<String>,
    result: Option<serde_json::Value>,
    params: Option<SentParams>,
}

#[derive(Deserialize)]
struct SentParams {
    #[serde(default)]
    prompt: Vec<SentBlock>,
}

#[derive(Deserialize)]
struct SentBlock {
    #[serde(default)]
    text: String,
}

fn name(message: MessageNo) -> String {
    format!("tell-{message}")
}
