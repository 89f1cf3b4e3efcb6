//! The items of a turn: messages, thoughts, tool calls, summaries.

use serde_json::value::RawValue;
use towline_core::{AgentEvent, Role, ToolStatus, ToolUse};

use super::protocol::CodexProtocol;
use super::tools;
use super::wire::{self, Item, ItemNews};
use crate::lines::{Reading, Unknown};
use crate::protocol::Action;

/// A running tool call.
#[derive(Debug)]
pub(super) struct Open {
    /// The conversation it belongs to.
    pub(super) thread: String,
    pub(super) tool: ToolUse,
    /// Its file changes, if it has any.
    pub(super) changes: Vec<wire::FileChange>,
    /// The MCP server that it calls.
    pub(super) server: Option<String>,
}

impl CodexProtocol {
    pub(super) fn on_item_started(&mut self, news: ItemNews<'_, Item<'_>>) -> Reading {
        let ItemNews { thread_id, item } = news;
        let ours = self.is_ours(&thread_id);
        if ours && !matches!(item, Item::UserMessage(_) | Item::ContextCompaction) {
            self.request_worked();
        }
        match &item {
            Item::UserMessage(wire::UserItem { client_id: Some(id) }) if ours => {
                return Ok(self.on_echo(id).into_iter().collect());
            }
            Item::ContextCompaction if ours => self.usage.before_compaction = self.usage.context_used,
            _ => {}
        }
        let Some(tool) = tools::tool_use(&item) else { return Ok(Vec::new()) };
        let tool = ToolUse { input: tools::input(&item), ..tool };
        let event = AgentEvent::Tool(ToolUse { output: None, exit_code: None, ..tool.clone() });
        if !tool.status.is_over() {
            let (changes, server) = match item {
                Item::FileChange(item) => (item.changes, None),
                Item::McpToolCall(call) => (Vec::new(), Some(call.server.into())),
                _ => (Vec::new(), None),
            };
            let thread = thread_id.as_str().to_owned();
            self.calls.insert(tool.id.clone(), Open { thread, tool, changes, server });
        }
        Ok(vec![self.within(&thread_id, event)])
    }

    pub(super) fn on_item_completed(&mut self, news: ItemNews<'_, Item<'_>>) -> Reading {
        let ItemNews { thread_id, item } = news;
        let thread = thread_id.as_str();
        let ours = self.is_ours(thread);
        if let Some(mut tool) = tools::tool_use(&item) {
            self.calls.remove(&tool.id);
            if let Item::CollabAgentToolCall(call) = &item {
                let spawned = call.receiver_thread_ids.iter();
                self.spawned.extend(spawned.map(|id| (id.clone(), call.id.as_str().to_owned())));
            }
            if !tool.status.is_over() {
                tool.status = ToolStatus::Ok;
            }
            return Ok(vec![self.within(thread, AgentEvent::Tool(tool))]);
        }
        Ok(match item {
            Item::UserMessage(wire::UserItem { client_id: Some(id) }) if ours => {
                self.on_echo(&id).into_iter().collect()
            }
            Item::AgentMessage(wire::TextItem { text }) | Item::Plan(wire::TextItem { text })
                if !text.is_empty() =>
            {
                let text = String::from(text);
                if ours {
                    self.last_message.clone_from(&text);
                }
                vec![self.within(thread, AgentEvent::Message { role: Role::Assistant, text })]
            }
            Item::Reasoning(wire::ReasoningItem { summary, content }) => {
                let parts = summary.iter().chain(&content).map(wire::Text::as_str);
                let text = parts.collect::<Vec<_>>().join("\n\n");
                let event = (!text.trim().is_empty()).then_some(AgentEvent::Thought { text });
                event.map(|event| self.within(thread, event)).into_iter().collect()
            }
            Item::ContextCompaction if ours => {
                let before = self.usage.before_compaction.take();
                vec![self.on_compacted(before)]
            }
            _ => Vec::new(),
        })
    }

    pub(super) fn on_delta(&mut self, news: wire::Delta<'_>) -> Vec<Action> {
        if self.is_ours(&news.thread_id) {
            self.request_worked();
        }
        let event = (!news.delta.is_empty()).then(|| AgentEvent::MessageDelta { text: news.delta.into() });
        event.map(|event| self.within(&news.thread_id, event)).into_iter().collect()
    }
}

/// Reads an item whose type may be anywhere. One that is not understood is counted under its type.
pub(super) fn read<'a>(news: ItemNews<'a, &'a RawValue>) -> Result<ItemNews<'a, Item<'a>>, Unknown> {
    let Ok(head) = serde_json::from_str::<wire::ItemHead<'a>>(news.item.get()) else {
        return Err(Unknown("item".to_owned()));
    };
    let kind = head.r#type.as_str();
    let item = Item::read(kind, news.item).ok_or_else(|| Unknown(format!("item/{kind}")))?;
    Ok(ItemNews { thread_id: news.thread_id, item })
}
