//! `session/update`: what the agent says and does. While a conversation is loaded, its past is shown again as updates:
//! only what follows our prompt is news.

use serde_json::value::RawValue;
use towline_core::{AgentEvent, PlanEntry};

use super::protocol::{AcpProtocol, Reading, Stage, Unknown, notice};
use super::wire::{self, read};
use crate::protocol::Action;

impl AcpProtocol {
    pub(super) fn on_update(&mut self, params: &RawValue) -> Reading {
        let unknown = || Unknown("session/update".to_owned());
        let notification: wire::Notification<'_> = read(params).ok_or_else(unknown)?;
        let kind: wire::UpdateKind = read(notification.update).ok_or_else(unknown)?;
        let kind = kind.session_update.as_str();
        if self.session.as_ref().is_some_and(|session| session.as_str() != notification.session_id) {
            return Err(Unknown("session/update of another session".to_owned()));
        }
        let shape = || Unknown(format!("session/update/{kind}"));
        match kind {
            "available_commands_update" => {
                let update: wire::Commands = read(notification.update).ok_or_else(shape)?;
                self.commands = update.available_commands.into_iter().map(|command| command.name).collect();
                Ok(Vec::new())
            }
            "usage_update" => {
                let update: wire::UsageUpdate = read(notification.update).ok_or_else(shape)?;
                Ok(self.usage.updated(&update).map(Action::emit).into_iter().collect())
            }
            // The operator's settings are what counts; these only repeat or name them.
            "config_option_update" | "session_info_update" | "user_message_chunk" => Ok(Vec::new()),
            "agent_message_chunk"
            | "agent_thought_chunk"
            | "tool_call"
            | "tool_call_update"
            | "plan"
            | "current_mode_update" => {
                if self.stage == Stage::Prompted {
                    self.on_news(kind, notification.update)
                } else {
                    Ok(Vec::new())
                }
            }
            unknown => Err(Unknown(format!("session/update/{unknown}"))),
        }
    }

    fn on_news(&mut self, kind: &str, update: &RawValue) -> Reading {
        let shape = || Unknown(format!("session/update/{kind}"));
        match kind {
            "agent_message_chunk" | "agent_thought_chunk" => {
                let chunk: wire::Chunk = read(update).ok_or_else(shape)?;
                self.on_chunk(kind, chunk)
            }
            "tool_call" | "tool_call_update" => {
                let call: wire::ToolCall = read(update).ok_or_else(shape)?;
                Ok(self.on_tool_call(call))
            }
            "plan" => {
                let plan: wire::Plan = read(update).ok_or_else(shape)?;
                let mut actions = self.work_is_seen();
                let entry = |entry: wire::PlanEntry| PlanEntry {
                    done: entry.status == "completed",
                    text: entry.content,
                };
                let entries = plan.entries.into_iter().map(entry).collect();
                actions.push(Action::emit(AgentEvent::Plan { entries }));
                Ok(actions)
            }
            _ => {
                let mode: wire::CurrentMode = read(update).ok_or_else(shape)?;
                let told =
                    mode.current_mode_id.map(|mode| notice(format!("the agent is now in mode `{mode}`")));
                Ok(told.into_iter().collect())
            }
        }
    }

    fn on_chunk(&mut self, kind: &str, chunk: wire::Chunk) -> Reading {
        let text = match chunk.content.kind.as_str() {
            "text" => chunk.content.text,
            "resource_link" => chunk.content.uri.unwrap_or_default(),
            other => return Err(Unknown(format!("session/update/{kind}/{other}"))),
        };
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let mut actions = self.work_is_seen();
        let events = if kind == "agent_message_chunk" {
            self.speech.said(chunk.message_id, text)
        } else {
            self.speech.thought(chunk.message_id, &text)
        };
        actions.extend(events.into_iter().map(Action::emit));
        Ok(actions)
    }

    fn on_tool_call(&mut self, news: wire::ToolCall) -> Vec<Action> {
        let id = news.tool_call_id.clone();
        let mut actions = self.work_is_seen();
        actions.extend(self.speech.over().into_iter().map(Action::emit));
        let had_input = self.calls.get(&id).is_some_and(|call| call.plan().is_some());
        let call = self.calls.entry(id.clone()).or_default();
        call.learn(&id, self.preset, news);
        if !had_input {
            actions.extend(call.plan().map(Action::emit));
        }
        actions.extend(self.tell_call(&id));
        if self.calls.get(&id).is_some_and(super::tools::Call::is_over) {
            self.forget_requests_of(&id);
        }
        actions
    }

    /// Tells of a call, when there is news.
    pub(super) fn tell_call(&mut self, id: &str) -> Option<Action> {
        let call = self.calls.get_mut(id)?;
        let tool = call.ruled(self.preset, &self.servers).tool;
        call.event(id, &tool, self.denied.contains(id)).map(Action::emit)
    }
}
