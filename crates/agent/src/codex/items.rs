//! What a turn is made of: messages, thoughts, tool calls, summaries.

use towline_core::{AgentEvent, Role, Tokens, ToolStatus, ToolUse};

use super::protocol::{CodexProtocol, Reading, Unknown};
use super::tools;
use super::wire::{self, Item, ItemNews};
use crate::protocol::Action;

/// A tool call at work.
#[derive(Debug)]
pub(super) struct Open {
    /// The conversation it belongs to.
    pub(super) thread: String,
    pub(super) tool: ToolUse,
    /// What it changes, when it changes files.
    pub(super) changes: Vec<wire::FileChange>,
    /// The MCP server it calls.
    pub(super) server: Option<String>,
}

impl CodexProtocol {
    pub(super) fn on_item_started(&mut self, news: &ItemNews<'_>) -> Reading {
        let item = read(news)?;
        let ours = self.is_ours(&news.thread_id);
        if ours && !matches!(item, Item::UserMessage { .. } | Item::ContextCompaction {}) {
            self.request_worked();
        }
        match &item {
            Item::UserMessage { client_id: Some(id) } if ours => {
                return Ok(self.on_echo(id).into_iter().collect());
            }
            Item::ContextCompaction {} if ours => self.usage.compacting(),
            _ => {}
        }
        let Some(tool) = tools::tool_use(&item) else { return Ok(Vec::new()) };
        let event = AgentEvent::Tool(ToolUse { output: None, exit_code: None, ..tool.clone() });
        if !tool.status.is_over() {
            let (changes, server) = match item {
                Item::FileChange { changes, .. } => (changes, None),
                Item::McpToolCall(call) => (Vec::new(), Some(call.server)),
                _ => (Vec::new(), None),
            };
            let open = Open { thread: news.thread_id.clone(), tool: tool.clone(), changes, server };
            self.calls.insert(tool.id, open);
        }
        Ok(vec![self.within(&news.thread_id, event)])
    }

    pub(super) fn on_item_completed(&mut self, news: &ItemNews<'_>) -> Reading {
        let item = read(news)?;
        let thread = news.thread_id.as_str();
        let ours = self.is_ours(thread);
        if let Some(mut tool) = tools::tool_use(&item) {
            self.calls.remove(&tool.id);
            if let Item::CollabAgentToolCall(call) = &item {
                let spawned = call.receiver_thread_ids.iter().map(|id| (id.clone(), call.id.clone()));
                self.spawned.extend(spawned);
            }
            if !tool.status.is_over() {
                tool.status = ToolStatus::Ok;
            }
            tool.input = None;
            return Ok(vec![self.within(thread, AgentEvent::Tool(tool))]);
        }
        Ok(match item {
            Item::UserMessage { client_id: Some(id) } if ours => self.on_echo(&id).into_iter().collect(),
            Item::AgentMessage { text } | Item::Plan { text } if !text.is_empty() => {
                if ours {
                    self.last_message.clone_from(&text);
                }
                vec![self.within(thread, AgentEvent::Message { role: Role::Assistant, text })]
            }
            Item::Reasoning { summary, content } => {
                let text = summary.into_iter().chain(content).collect::<Vec<_>>().join("\n\n");
                let event = (!text.trim().is_empty()).then_some(AgentEvent::Thought { text });
                event.map(|event| self.within(thread, event)).into_iter().collect()
            }
            Item::ContextCompaction {} if ours => {
                let before: Option<Tokens> = self.usage.before_compaction();
                vec![self.on_compacted(before)]
            }
            _ => Vec::new(),
        })
    }

    pub(super) fn on_delta(&mut self, news: wire::Delta) -> Vec<Action> {
        if self.is_ours(&news.thread_id) {
            self.request_worked();
        }
        let event = (!news.delta.is_empty()).then_some(AgentEvent::MessageDelta { text: news.delta });
        event.map(|event| self.within(&news.thread_id, event)).into_iter().collect()
    }
}

fn read(news: &ItemNews<'_>) -> Result<Item, Unknown> {
    let unknown = || {
        let head: Option<wire::ItemHead> = serde_json::from_str(news.item.get()).ok();
        Unknown(head.map_or_else(|| "item".to_owned(), |head| format!("item/{}", head.r#type)))
    };
    match serde_json::from_str(news.item.get()) {
        Ok(Item::Unknown) | Err(_) => Err(unknown()),
        Ok(item) => Ok(item),
    }
}
