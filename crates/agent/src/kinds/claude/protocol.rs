//! The conversation: what to write, and which module reads which frame.
//!
//! The process outlives each result and ends when its input is closed. So the input is closed after the first result
//! that answers the prompt, unless a request still waits for a person. The CLI then ends its background work by
//! itself, within its own limits and the engine's timeouts. Frames after that are still read, and may be another
//! turn.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::de::IgnoredAny;
use serde_json::json;
use towline_core::{End, Outcome, SessionId, Usage};

use super::classify::{Evidence, classify};
use super::compaction::Compaction;
use super::control::PendingControl;
use super::input::ClaudeOperatorMessages;
use super::tools::ClaudeCall;
use super::usage::ClaudeUsageLedger;
use super::wire;
use crate::lines::{Conversation, Lines, Reading, Unknown, decode, frame_type, line};
use crate::permission::Rules;
use crate::protocol::{Action, Frame, LaunchContext, ProcessEnd, Protocol, Steer};
use crate::settings::AgentSettings;

/// The state of one conversation.
pub(super) struct ClaudeProtocol {
    pub(super) prompt: String,
    /// The summary before the prompt, until it is over.
    pub(super) compaction: Option<Compaction>,
    pub(super) operator_messages: ClaudeOperatorMessages,
    /// The earlier session to resume.
    pub(super) asked: Option<SessionId>,
    pub(super) rules: Rules,
    pub(super) session: Option<SessionId>,
    /// The agent's directory and model, as it reports them.
    pub(super) directory: Option<String>,
    pub(super) model: Option<String>,
    /// Prompts that were sent and that the CLI has not begun to process.
    pub(super) prompts_waiting: u32,
    /// Whether the start of the current turn has been reported.
    pub(super) turn_is_reported: bool,
    interrupts: u32,
    /// Running tool calls, by id.
    pub(super) calls: HashMap<String, ClaudeCall>,
    /// Ids of tool calls that were denied.
    pub(super) denied: HashSet<String>,
    /// Requests that a person answered before the conversation was read again, with the outcome, by id.
    pub(super) answered: HashMap<String, Outcome>,
    /// Requests that wait for a person, by id.
    pub(super) pending: BTreeMap<String, PendingControl>,
    /// Ids of tool calls that a person decides about. The agent's own report of such a decision is ignored.
    pub(super) put_to_person: HashSet<String>,
    /// Running background tasks: descriptions by id.
    pub(super) background: BTreeMap<String, String>,
    pub(super) usage: ClaudeUsageLedger,
    pub(super) evidence: Evidence,
    pub(super) lines: Lines,
}

impl ClaudeProtocol {
    pub(super) fn new(settings: &AgentSettings, context: &LaunchContext<'_>) -> Self {
        Self {
            prompt: context.prompt.to_owned(),
            compaction: context.compact.map(Compaction::new),
            operator_messages: ClaudeOperatorMessages::new(context.attempt),
            asked: context.resumed().cloned(),
            rules: Rules::of(settings, context.permitted),
            session: None,
            directory: None,
            model: None,
            prompts_waiting: 0,
            turn_is_reported: false,
            interrupts: 0,
            calls: HashMap::new(),
            denied: HashSet::new(),
            answered: HashMap::new(),
            pending: BTreeMap::new(),
            put_to_person: HashSet::new(),
            background: BTreeMap::new(),
            usage: ClaudeUsageLedger::default(),
            evidence: Evidence {
                provider: context.provider.map(str::to_owned),
                asked_to_resume: context.resumed().is_some(),
                ..Evidence::default()
            },
            lines: Lines::default(),
        }
    }

    /// Closes the agent's input when its last request has an answer: the CLI treats a closed input as a refusal.
    pub(super) fn close_if_due(&mut self) -> Option<Action> {
        self.lines.close_if_due(self.pending.is_empty())
    }

    /// Asks the agent to end its turn.
    pub(super) fn interrupt(&self, id: &str) -> Option<Action> {
        self.write(&json!({
            "type": "control_request",
            "request_id": id,
            "request": {"subtype": "interrupt"},
        }))
    }

    /// Writes a message, as long as the agent accepts input.
    pub(super) fn write(&self, message: &impl serde::Serialize) -> Option<Action> {
        self.lines.write(line(message))
    }
}

impl Conversation for ClaudeProtocol {
    fn lines(&mut self) -> &mut Lines {
        &mut self.lines
    }

    fn read(&mut self, line: &str) -> Reading {
        let kind = frame_type(line)?;
        match kind.as_str() {
            "stream_event" => self.on_stream_event(decode(line, "stream_event")?),
            "assistant" => self.on_assistant(decode(line, "assistant")?),
            "user" => self.on_user(decode(line, "user")?),
            "system" => self.on_system_line(line),
            "result" => match decode(line, "result") {
                Ok(result) => self.on_result(result),
                // Even if it cannot be read, the turn is over and the process waits for us.
                Err(Unknown(what)) if what == "result" => {
                    let counted = self.lines.unknown(what, line);
                    let next = match self.compaction {
                        Some(_) => self.on_compaction_over("its end was not understood"),
                        None => self.lines.close().into_iter().collect(),
                    };
                    Ok(counted.into_iter().chain(next).collect())
                }
                Err(unknown) => Err(unknown),
            },
            "rate_limit_event" => self.on_rate_limit(decode(line, "rate_limit_event")?),
            "control_request" => self.on_control_request(decode(line, "control_request")?),
            "control_response" => self.on_control_answer(decode(line, "control_response")?),
            "auth_status" => Ok(on_auth_status(decode(line, "auth_status")?)),
            "control_cancel_request" => self.on_cancel(decode(line, "control_cancel_request")?),
            // The progress of a message that we sent. The message itself is reported by other frames.
            "command_lifecycle" | "keep_alive" | "tool_progress" | "tool_use_summary"
            | "prompt_suggestion" | "transcript_mirror" => {
                decode::<IgnoredAny>(line, &kind).map(|_| Vec::new())
            }
            unknown => Err(Unknown::frame(line, unknown)),
        }
    }
}

impl Protocol for ClaudeProtocol {
    fn used_before(&mut self, used: Usage) {
        self.usage.before = used;
    }

    fn recall(&mut self, sent: &[u8]) {
        self.recall_answer(sent);
        self.recall_message(sent);
    }

    fn start(&mut self) -> Vec<Action> {
        let hello = json!({
            "type": "control_request",
            "request_id": "towline-initialize",
            // Otherwise the text of subagents is not sent, and could not be counted while they write.
            "request": {"subtype": "initialize", "hooks": null, "forwardSubagentText": true},
        });
        self.write(&hello).into_iter().chain(self.send_opening()).collect()
    }

    fn on_frame(&mut self, frame: Frame<'_>) -> Vec<Action> {
        self.read_frame(frame)
    }

    fn on_steer(&mut self, steer: Steer) -> Vec<Action> {
        match steer {
            Steer::Interrupt => {
                self.interrupts += 1;
                self.interrupt(&format!("towline-interrupt-{}", self.interrupts)).into_iter().collect()
            }
            Steer::Tell { message, text } => self.on_operator_message(message, text),
            Steer::Answer { request, reply } => self.on_answer(&request, reply),
        }
    }

    fn on_exit(&mut self, exit: &ProcessEnd) -> (Vec<Action>, End) {
        self.evidence.exit = exit.clone();
        let end = classify(&self.evidence);
        (self.lines.finish(exit, &end), end)
    }
}

fn on_auth_status(line: wire::AuthStatusLine<'_>) -> Vec<Action> {
    line.error.map(|error| Action::notice(format!("signing in: {}", error.as_str()))).into_iter().collect()
}
