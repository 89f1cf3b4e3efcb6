//! `assistant` and `user` frames: the model's messages, its tool calls, and their results.

use serde_json::Value;
use serde_json::value::RawValue;
use towline_core::{AgentEvent, Role, ToolStatus};

use super::protocol::ClaudeProtocol;
use super::tools::{self, ClaudeCall};
use super::wire::{self, Block, Content, MessageLine};
use crate::lines::{Reading, Unknown};
use crate::protocol::Action;

/// The model's name on messages that the CLI writes itself.
const SYNTHETIC: &str = "<synthetic>";

/// Replaces a structured result when an interrupt removed the tool.
const TAKEN_AWAY: &str = "\"User rejected tool use\"";

/// In the result of a tool call for which no permission could be requested.
const NOT_GRANTED: &str = "but you haven't granted it yet";

/// The tags around the output of a slash command.
const COMMAND_OUTPUT: [&str; 2] = ["local-command-stdout", "local-command-stderr"];

impl ClaudeProtocol {
    pub(super) fn on_assistant(&mut self, line: MessageLine<'_>) -> Reading {
        let parent = line.parent_tool_use_id.as_ref().map(wire::Text::as_str);
        let is_synthetic = wire::text(&line.message.model) == SYNTHETIC;
        // A message that the CLI writes instead of a summary is the reason why there is none.
        if is_synthetic && self.compaction.is_some() {
            return Ok(Vec::new());
        }
        let mut events = Vec::new();
        if parent.is_none() && !is_synthetic {
            self.request_worked();
        }
        if !is_synthetic {
            events.extend(self.usage.saw(parent, &line.message));
        }
        if let Some(error) = line.error {
            self.evidence.assistant_error = Some(error.into());
        }
        let content = Content::read(line.message.content).ok_or_else(|| Unknown("assistant".to_owned()))?;
        let mut actions: Vec<Action> = events.into_iter().map(|event| below(parent, event)).collect();
        match content {
            Content::Text(text) => actions.push(below(parent, message(text))),
            Content::Blocks(blocks) => {
                for raw in blocks {
                    actions.extend(self.on_assistant_block(parent, raw));
                }
            }
        }
        Ok(actions)
    }

    fn on_assistant_block(&mut self, parent: Option<&str>, raw: &RawValue) -> Vec<Action> {
        let Ok(block) = serde_json::from_str::<Block<'_>>(raw.get()) else {
            return self.lines.unknown("assistant block".to_owned(), raw.get());
        };
        let events = match block.kind.as_str() {
            "text" => block.text.map(message).into_iter().collect(),
            "thinking" => thought(block.thinking).into_iter().collect(),
            "tool_use" => self.on_tool_use(&block),
            // Hidden reasoning, and tools that run at the provider: the text has all that is worth showing.
            "redacted_thinking" | "server_tool_use" | "web_search_tool_result" | "web_fetch_tool_result" => {
                Vec::new()
            }
            unknown => return self.lines.unknown(format!("assistant/{unknown}"), raw.get()),
        };
        events.into_iter().map(|event| below(parent, event)).collect()
    }

    fn on_tool_use(&mut self, block: &Block<'_>) -> Vec<AgentEvent> {
        let (id, name) = (wire::text(&block.id), wire::text(&block.name));
        let input = block.input.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or(Value::Null);
        let forbidden_by = self.rules.denying(name, &input, self.directory.as_deref());
        let call = ClaudeCall::new(id, name, &input, forbidden_by);
        let plan = tools::plan(name, &input);
        let begun = call.begun(input);
        self.calls.insert(id.to_owned(), call);
        [begun].into_iter().chain(plan).collect()
    }

    pub(super) fn on_user(&mut self, line: MessageLine<'_>) -> Reading {
        let parent = line.parent_tool_use_id.as_ref().map(wire::Text::as_str);
        let content = Content::read(line.message.content).ok_or_else(|| Unknown("user".to_owned()))?;
        if let (Some(true), Content::Blocks(_)) = (line.is_replay, &content) {
            return Ok(self.on_echo(wire::text(&line.uuid)));
        }
        let blocks = match content {
            Content::Text(text) => {
                return Ok(command_output(text.as_str()).map(Action::notice).into_iter().collect());
            }
            Content::Blocks(blocks) => blocks,
        };
        let mut actions = Vec::new();
        for raw in blocks {
            let Ok(block) = serde_json::from_str::<Block<'_>>(raw.get()) else {
                actions.extend(self.lines.unknown("user block".to_owned(), raw.get()));
                continue;
            };
            match block.kind.as_str() {
                "tool_result" => {
                    actions.push(below(parent, self.on_tool_result(&block, line.tool_use_result)));
                    self.forget_request(wire::text(&block.tool_use_id));
                    actions.extend(self.close_if_due());
                }
                // The task of a subagent. In the main thread it is an echo of our message, or the CLI's remark on an
                // interrupt, which the end of the turn reports better.
                "text" if parent.is_some() => {
                    actions.extend(block.text.map(|text| below(parent, asked(text))))
                }
                "text" | "image" | "document" => {}
                unknown => actions.extend(self.lines.unknown(format!("user/{unknown}"), raw.get())),
            }
        }
        Ok(actions)
    }

    fn on_tool_result(&mut self, block: &Block<'_>, structured: Option<&RawValue>) -> AgentEvent {
        let id = wire::text(&block.tool_use_id);
        // Its beginning may not have been seen.
        let unknown = || ClaudeCall::new(id, "unknown", &Value::Null, None);
        let call = self.calls.remove(id).unwrap_or_else(unknown);
        let output = plain_text(block.content);
        let status =
            if self.denied.contains(id) || (block.is_error == Some(true) && output.contains(NOT_GRANTED)) {
                ToolStatus::Denied
            } else if was_taken_away(structured) {
                ToolStatus::Cancelled
            } else if block.is_error == Some(true) {
                ToolStatus::Failed
            } else {
                self.usage.finished(Some(id));
                ToolStatus::Ok
            };
        call.ended(status, &output)
    }
}

fn below(parent: Option<&str>, event: AgentEvent) -> Action {
    Action::Emit { event, parent: parent.map(str::to_owned) }
}

fn message(text: wire::Text<'_>) -> AgentEvent {
    AgentEvent::Message { role: Role::Assistant, text: text.into() }
}

fn asked(text: wire::Text<'_>) -> AgentEvent {
    AgentEvent::Message { role: Role::User, text: text.into() }
}

fn thought(text: Option<wire::Text<'_>>) -> Option<AgentEvent> {
    let text = wire::owned(text)?;
    (!text.trim().is_empty()).then_some(AgentEvent::Thought { text })
}

/// The output of a slash command, if the text is that.
fn command_output(text: &str) -> Option<String> {
    COMMAND_OUTPUT.iter().find_map(|tag| {
        let inner = text.strip_prefix(&format!("<{tag}>"))?.strip_suffix(&format!("</{tag}>"))?.trim();
        // The compaction itself is an event.
        (!inner.is_empty() && inner != "Compacted").then(|| inner.to_owned())
    })
}

fn was_taken_away(structured: Option<&RawValue>) -> bool {
    structured.is_some_and(|raw| {
        raw.get() == TAKEN_AWAY
            || serde_json::from_str::<wire::ToolUseResult>(raw.get())
                .is_ok_and(|result| result.interrupted == Some(true))
    })
}

/// The text of a tool's result. Images and the like have none.
fn plain_text(content: Option<&RawValue>) -> String {
    match Content::read(content) {
        Some(Content::Text(text)) => text.into(),
        Some(Content::Blocks(blocks)) => {
            let texts =
                blocks.iter().filter_map(|raw| serde_json::from_str::<Block<'_>>(raw.get()).ok()?.text);
            texts.map(String::from).collect::<Vec<_>>().join("\n")
        }
        None => String::new(),
    }
}
