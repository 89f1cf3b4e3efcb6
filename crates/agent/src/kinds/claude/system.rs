//! `system`: the session itself, retries, compaction, background tasks.

use serde_json::value::RawValue;
use towline_core::{AgentEvent, Decision, Outcome, SessionId, SessionStarted, Tokens};

use super::protocol::ClaudeProtocol;
use super::wire::{self, Subtype, SystemLine};
use crate::lines::{Reading, Unknown, decode};
use crate::protocol::Action;
use crate::text;

/// The CLI's name for a failed request without a status: no connection, or a lost one.
const UNNAMED: &str = "unknown";

/// The id of the request to end a turn when the provider cannot be reached.
const GIVING_UP: &str = "towline-not-reached";

impl ClaudeProtocol {
    pub(super) fn on_system_line(&mut self, line: &str) -> Reading {
        let mut read: Result<SystemLine<'_>, _> = decode(line, "system");
        if let Some(subtype) = read.as_mut().ok().and_then(|line| line.subtype.take()) {
            return self.on_system(&subtype, read);
        }
        let Subtype { subtype } = decode(line, "system")?;
        let what = format!("system/{}", wire::text(&subtype));
        self.on_system(wire::text(&subtype), read.map_err(|_| Unknown(what)))
    }

    /// Handles a frame of this subtype, if it could be read.
    fn on_system(&mut self, subtype: &str, line: Result<SystemLine<'_>, Unknown>) -> Reading {
        match subtype {
            "init" => Ok(self.on_init(line?)),
            "api_retry" => Ok(self.on_retry(line?)),
            "compact_boundary" => Ok(vec![self.on_compaction(&line?)]),
            "status" => Ok(self.on_status(line?)),
            "task_started" | "task_updated" | "task_notification" => {
                self.on_task(subtype, line?);
                Ok(Vec::new())
            }
            "permission_denied" => {
                let denial = line?;
                Ok(self
                    .on_denial(wire::text(&denial.tool_name), wire::text(&denial.tool_use_id))
                    .into_iter()
                    .collect())
            }
            "informational" => Ok(loud(line?).into_iter().collect()),
            "model_fallback"
            | "model_refusal_fallback"
            | "model_consent_fallback"
            | "local_command_output" => Ok(content(line?).into_iter().collect()),
            _ if UNINTERESTING.contains(&subtype) => Ok(Vec::new()),
            unknown => Err(Unknown(format!("system/{unknown}"))),
        }
    }

    /// Comes with each turn. The first one starts the session.
    fn on_init(&mut self, init: SystemLine<'_>) -> Vec<Action> {
        let mut actions = Vec::new();
        let id = SessionId::new(wire::text(&init.session_id));
        self.directory = wire::owned(init.cwd).or(self.directory.take());
        self.model = wire::owned(init.model).or(self.model.take());
        self.evidence.in_turn = true;
        let was_reported_early = self
            .compaction
            .as_mut()
            .is_some_and(|compaction| std::mem::take(&mut compaction.session_was_reported));
        if was_reported_early || self.session.as_ref() != Some(&id) {
            actions.extend(self.on_session(id, wire::owned(init.claude_code_version)));
            actions.extend(failed_servers(init.mcp_servers));
        }
        if self.prompts_waiting > 0 {
            self.prompts_waiting -= 1;
            actions.extend(self.start_turn());
        }
        actions
    }

    /// Reports the session, again when more is known about it.
    pub(super) fn on_session(&mut self, id: SessionId, agent_version: Option<String>) -> Vec<Action> {
        let known = self.session.replace(id.clone());
        let is_first = known.as_ref().is_none_or(|known| *known == id);
        self.evidence.session_started = true;
        let asked = self.asked.as_ref();
        let resumed = is_first && asked == Some(&id);
        let is_other = |_: &&SessionId| known.is_none() && !resumed;
        let fresh_instead = asked.filter(is_other).map(|asked| Action::not_resumed(asked, &id));
        let started = SessionStarted { native_id: id, resumed, model: self.model.clone(), agent_version };
        [Action::emit(AgentEvent::SessionStarted(started))].into_iter().chain(fresh_instead).collect()
    }

    fn on_retry(&mut self, retry: SystemLine<'_>) -> Vec<Action> {
        self.evidence.retries.add(retry.error_status);
        let error = retry.error.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let mut error = error.unwrap_or_default();
        let is_unanswered = retry.error_status.is_none() && error == UNNAMED;
        self.evidence.unanswered = if is_unanswered { self.evidence.unanswered + 1 } else { 0 };
        if is_unanswered {
            error = self.evidence.unreached();
        }
        let mut actions = vec![Action::emit(AgentEvent::Retrying {
            status: retry.error_status,
            attempt: retry.attempt.unwrap_or_default(),
            // A cast from a float saturates, and turns NaN into zero.
            delay_ms: retry.retry_delay_ms.unwrap_or_default() as u64,
            error,
        })];
        if self.evidence.is_cut_off() {
            actions.extend(self.interrupt(GIVING_UP));
            actions.extend(self.lines.close());
        }
        actions
    }

    fn on_compaction(&mut self, line: &SystemLine<'_>) -> Action {
        let metadata = line.compact_metadata.as_ref();
        let before = metadata.and_then(|metadata| metadata.pre_tokens).map(Tokens);
        let after = metadata.and_then(|metadata| metadata.post_tokens).map(Tokens);
        // Earlier messages are no longer in the context.
        self.usage.context_used = after;
        self.on_compacted();
        Action::emit(AgentEvent::Compacted { before, after })
    }

    fn on_task(&mut self, subtype: &str, task: SystemLine<'_>) {
        let id = String::from(wire::text(&task.task_id));
        let status = task.patch.and_then(|patch| wire::owned(patch.status));
        let is_over = matches!(status.as_deref(), Some("completed" | "failed" | "killed" | "stopped"));
        if subtype == "task_started" {
            self.background.insert(id, text::one_line(wire::text(&task.description)));
        } else if subtype == "task_notification" || is_over {
            self.background.remove(&id);
        }
    }

    /// The CLI denied a call without asking us. Reported once, however often it is mentioned.
    pub(super) fn on_denial(&mut self, tool: &str, call: &str) -> Option<Action> {
        let is_news = !self.put_to_person.contains(call) && self.denied.insert(call.to_owned());
        is_news.then(|| {
            let rule = self.calls.get(call).and_then(|call| call.forbidden_by.clone());
            let by = if rule.is_some() { "rule" } else { "agent" }.to_owned();
            let decision = Decision { tool: tool.to_owned(), outcome: Outcome::Deny, by, rule };
            Action::emit(AgentEvent::Decided(decision))
        })
    }
}

/// Known frames that are ignored: they are not needed, or other frames report the same better.
const UNINTERESTING: [&str; 25] = [
    "agents_killed",
    "api_error",
    "away_summary",
    "background_tasks_changed",
    "commands_changed",
    "elicitation_complete",
    "file_snapshot",
    "files_persisted",
    "hook_progress",
    "hook_response",
    "hook_started",
    "memory_recall",
    "memory_saved",
    "mirror_error",
    "model_refusal_no_fallback",
    "notification",
    "permission_retry",
    "plugin_install",
    "post_turn_summary",
    "session_state_changed",
    "stop_hook_summary",
    "task_progress",
    "task_summary",
    "thinking_tokens",
    "turn_duration",
];

fn loud(line: SystemLine<'_>) -> Option<Action> {
    matches!(wire::text(&line.level), "notice" | "warning").then(|| content(line)).flatten()
}

fn content(line: SystemLine<'_>) -> Option<Action> {
    line.content.map(String::from).filter(|content| !content.trim().is_empty()).map(Action::notice)
}

fn failed_servers(servers: Option<&RawValue>) -> Vec<Action> {
    let servers = servers.and_then(|raw| serde_json::from_str::<Vec<wire::McpStatus<'_>>>(raw.get()).ok());
    let failed = servers.into_iter().flatten().filter(|server| server.status.as_str() == "failed");
    failed
        .map(|server| {
            Action::notice(format!("the MCP server `{}` could not be started", server.name.as_str()))
        })
        .collect()
}
