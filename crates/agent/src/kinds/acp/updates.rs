//! `session/update`: messages and actions of the agent. While a conversation is loaded, its past is replayed as
//! updates; only what follows our prompt is new.

use towline_core::{AgentEvent, PlanEntry};

use super::protocol::{AcpProtocol, Stage};
use super::wire::{self, read};
use crate::lines::{Reading, Unknown};
use crate::protocol::Action;

pub(super) const METHOD: &str = "session/update";

impl AcpProtocol {
    /// Borrowed, because an update is large.
    pub(super) fn on_update(&mut self, notification: &mut wire::Notification<'_>) -> Reading {
        let unknown = || Unknown(METHOD.to_owned());
        let session = notification.session_id.as_ref().ok_or_else(unknown)?;
        let update = notification.update.as_mut().ok_or_else(unknown)?;
        let kind = update.session_update.take().ok_or_else(unknown)?;
        if self.session.as_ref().is_some_and(|known| known.as_str() != session.as_str()) {
            return Err(Unknown("session/update of another session".to_owned()));
        }
        match kind.as_str() {
            "available_commands_update" => {
                // Needed only while a summary is still to be requested.
                if self.compact.is_some() {
                    let commands: Option<Vec<wire::Command<'_>>> = update.available_commands.and_then(read);
                    self.has_compact_command =
                        commands.into_iter().flatten().any(|command| command.name.as_str() == "compact");
                }
                Ok(Vec::new())
            }
            "usage_update" => Ok(self.usage.updated(update).map(Action::emit).into_iter().collect()),
            // These only repeat the settings or name the session.
            "config_option_update" | "session_info_update" | "user_message_chunk" => Ok(Vec::new()),
            "agent_message_chunk"
            | "agent_thought_chunk"
            | "tool_call"
            | "tool_call_update"
            | "plan"
            | "current_mode_update"
                if self.stage != Stage::Prompted =>
            {
                Ok(Vec::new())
            }
            "agent_message_chunk" | "agent_thought_chunk" => self.on_chunk(&kind, update),
            "tool_call" | "tool_call_update" => Ok(self.on_tool_call(update)),
            "plan" => {
                let plan: Vec<wire::PlanEntry<'_>> = update.entries.and_then(read).unwrap_or_default();
                let mut actions = self.work_is_seen();
                let entry = |entry: wire::PlanEntry<'_>| PlanEntry {
                    done: entry.status.as_str() == "completed",
                    text: entry.content.into(),
                };
                let entries = plan.into_iter().map(entry).collect();
                actions.push(Action::emit(AgentEvent::Plan { entries }));
                Ok(actions)
            }
            "current_mode_update" => {
                let mode = update.current_mode_id.as_ref();
                let reported =
                    mode.map(|mode| Action::notice(format!("the agent is now in mode `{}`", mode.as_str())));
                Ok(reported.into_iter().collect())
            }
            unknown => Err(Unknown(format!("session/update/{unknown}"))),
        }
    }

    fn on_chunk(&mut self, kind: &str, update: &wire::Update<'_>) -> Reading {
        let content: wire::Content<'_> = update.content.and_then(read).unwrap_or_default();
        let text = match content.kind.as_str() {
            "text" => content.text.as_str(),
            "resource_link" => wire::text(&content.uri),
            other => return Err(Unknown(format!("session/update/{kind}/{other}"))),
        };
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let mut actions = self.work_is_seen();
        let message = update.message_id.as_deref();
        if kind == "agent_message_chunk" {
            self.speech.message_piece(message, text, &mut actions);
        } else {
            self.speech.thought_piece(message, text, &mut actions);
        }
        Ok(actions)
    }

    fn on_tool_call(&mut self, news: &mut wire::Update<'_>) -> Vec<Action> {
        let id = std::mem::take(&mut news.tool_call_id);
        let mut actions = self.work_is_seen();
        self.speech.over(&mut actions);
        let call = match self.calls.get_mut(id.as_str()) {
            Some(known) => known,
            None => self.calls.entry(id.as_str().to_owned()).or_default(),
        };
        let had_plan = call.has_plan();
        call.learn(&id, self.preset, news);
        if !had_plan {
            actions.extend(call.plan().map(Action::emit));
        }
        let denied = self.denied.contains(id.as_str());
        actions.extend(call.event(&id, &self.servers, denied).map(Action::emit));
        if call.is_over() {
            self.forget_requests_of(&id);
        }
        actions
    }
}
