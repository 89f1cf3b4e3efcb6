//! The conversation: what to write, and which module reads which frame.
//!
//! The app server runs until its input is closed, and then ends everything that still works. So the input is closed
//! after the turn that answers the prompt, when no request waits for a person and all subagents have ended.
//!
//! The log of a conversation has the lines of the app server, not the operator's messages between them. So events and
//! the ids of our requests must follow from the frames alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use serde_json::value::RawValue;
use towline_core::{AgentEvent, End, SessionId};

use super::approvals::PendingApproval;
use super::classify::{Evidence, classify};
use super::input::CodexOperatorMessages;
use super::items::{self, Open};
use super::opening::{CodexCompaction, CodexPurpose, CodexStage};
use super::usage::CodexUsageLedger;
use super::{plan, wire};
use crate::jsonrpc::{self, Message, Peer};
use crate::lines::{Conversation, Lines, Reading, Unknown, decode};
use crate::permission::Rules;
use crate::protocol::{Action, Frame, LaunchContext, ProcessEnd, Protocol, Steer};
use crate::settings::AgentSettings;

/// The state of one conversation.
#[derive(Default)]
pub(super) struct CodexProtocol {
    pub(super) prompt: String,
    /// The request that opens the conversation.
    pub(super) opening: (&'static str, Value),
    /// The summary before the prompt, until it is over.
    pub(super) compaction: Option<CodexCompaction>,
    /// The earlier conversation to resume.
    pub(super) asked: Option<SessionId>,
    pub(super) rules: Rules,
    pub(super) directory: String,
    /// Warnings about settings that this agent ignores.
    pub(super) unused: Vec<String>,
    pub(super) peer: Peer<CodexPurpose>,
    pub(super) stage: CodexStage,
    /// Our conversation. Subagents have their own.
    pub(super) thread: Option<String>,
    pub(super) model: Option<String>,
    /// The current turn in it.
    pub(super) turn: Option<String>,
    /// Whether the start of that turn has been reported.
    pub(super) turn_is_reported: bool,
    pub(super) operator_messages: CodexOperatorMessages,
    /// Running tool calls, by id.
    pub(super) calls: BTreeMap<String, Open>,
    /// The tool call that started a subagent's conversation.
    pub(super) spawned: HashMap<String, String>,
    /// Conversations of subagents in the middle of a turn.
    pub(super) subagents_at_work: BTreeSet<String>,
    /// Requests that wait for a person, by id.
    pub(super) pending: BTreeMap<String, PendingApproval>,
    pub(super) usage: CodexUsageLedger,
    /// Texts of earlier notices, because some warnings come with every turn.
    noticed: BTreeSet<String>,
    pub(super) last_limits: Option<(Option<wire::Window>, Option<wire::Window>)>,
    pub(super) last_message: String,
    pub(super) evidence: Evidence,
    pub(super) lines: Lines,
}

impl CodexProtocol {
    pub(super) fn new(settings: &AgentSettings, context: &LaunchContext<'_>) -> Self {
        let resumes = context.resumed().is_some();
        let unused =
            settings.max_turns.map(|_| "Codex has no cap of its own on turns: `max_turns` is not used");
        Self {
            prompt: context.prompt.to_owned(),
            opening: plan::thread(settings, context),
            compaction: context.compact.map(|_| CodexCompaction::default()),
            asked: context.resumed().cloned(),
            rules: Rules::of(settings, context.permitted),
            directory: context.directory.to_owned(),
            unused: unused.map(str::to_owned).into_iter().collect(),
            evidence: Evidence { asked_to_resume: resumes, ..Evidence::default() },
            ..Self::default()
        }
    }

    fn on_news(&mut self, method: &str, params: &RawValue) -> Reading {
        match method {
            "turn/started" => self.on_turn_started(decode(params.get(), method)?),
            "turn/completed" => match decode(params.get(), method) {
                Ok(news) => self.on_turn_completed(news),
                // Even if it cannot be read, a turn is over and the process may wait for us.
                Err(unknown) => self.on_odd_end(unknown, params.get()),
            },
            "error" => self.on_error(decode(params.get(), method)?),
            "item/started" => self.on_item_started(items::read(decode(params.get(), method)?)?),
            "item/completed" => self.on_item_completed(items::read(decode(params.get(), method)?)?),
            "item/agentMessage/delta" => Ok(self.on_delta(decode(params.get(), method)?)),
            "turn/plan/updated" => Ok(on_plan(decode(params.get(), method)?)),
            "thread/tokenUsage/updated" => Ok(self.on_usage(&decode(params.get(), method)?)),
            "account/rateLimits/updated" => Ok(self.on_limits(&decode(params.get(), method)?)),
            "serverRequest/resolved" => Ok(self.on_resolved(&decode(params.get(), method)?)),
            "warning" | "guardianWarning" => {
                let warning: wire::Message = decode(params.get(), method)?;
                Ok(self.notice(warning.message))
            }
            "configWarning" => {
                let warning: wire::ConfigWarning = decode(params.get(), method)?;
                Ok(self.notice(warning.summary))
            }
            "mcpServer/startupStatus/updated" => Ok(self.on_server_status(decode(params.get(), method)?)),
            "model/rerouted" => {
                let news: wire::Rerouted = decode(params.get(), method)?;
                Ok(self.notice(format!(
                    "the provider answers with model {} instead of {}",
                    news.to_model, news.from_model
                )))
            }
            _ if UNINTERESTING.binary_search(&method).is_ok() => Ok(Vec::new()),
            unknown => Err(Unknown(unknown.to_owned())),
        }
    }

    fn on_server_status(&mut self, server: wire::ServerStatus<'_>) -> Vec<Action> {
        if server.status.as_str() != "failed" {
            return Vec::new();
        }
        let why = server.error.map(|error| format!(": {}", &*error)).unwrap_or_default();
        self.notice(format!("the MCP server `{}` could not be started{why}", &*server.name))
    }

    /// A notice, unless the same was shown before.
    pub(super) fn notice(&mut self, text: String) -> Vec<Action> {
        if text.trim().is_empty() || self.noticed.contains(&text) {
            return Vec::new();
        }
        self.noticed.insert(text.clone());
        vec![Action::notice(text)]
    }

    /// Whether this is our conversation, not a subagent's.
    pub(super) fn is_ours(&self, thread: &str) -> bool {
        self.thread.as_deref() == Some(thread)
    }

    /// An event in this conversation.
    pub(super) fn within(&self, thread: &str, event: AgentEvent) -> Action {
        let parent = (!self.is_ours(thread)).then(|| {
            let call = self.spawned.get(thread);
            call.cloned().unwrap_or_else(|| thread.to_owned())
        });
        Action::Emit { event, parent }
    }

    /// Whether no answer and no subagent is outstanding.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.subagents_at_work.is_empty()
    }

    /// Closes the agent's input if that was postponed.
    pub(super) fn close_if_due(&mut self) -> Option<Action> {
        self.lines.close_if_due(self.is_idle())
    }

    /// Sends a request, as long as the agent accepts input.
    pub(super) fn ask_of_agent(
        &mut self,
        id: &str,
        purpose: CodexPurpose,
        method: &str,
        params: Value,
    ) -> Option<Action> {
        let listens = self.lines.listens();
        listens.then(|| Action::Write(self.peer.request(id, purpose, method, params)))
    }
}

impl Conversation for CodexProtocol {
    fn lines(&mut self) -> &mut Lines {
        &mut self.lines
    }

    fn read(&mut self, line: &str) -> Reading {
        match jsonrpc::read(line) {
            Some(Message::Answer { id, result }) => match self.peer.answered(id) {
                Some(purpose) => Ok(self.on_answer_to(purpose, result)),
                // Answers to the operator's requests, when the conversation is read again.
                None => Ok(Vec::new()),
            },
            Some(Message::Request(request)) => self.on_request(&request),
            Some(Message::Notification { method, params }) => self.on_news(method, params),
            None => Err(Unknown::line(line)),
        }
    }
}

impl Protocol for CodexProtocol {
    fn start(&mut self) -> Vec<Action> {
        self.send_hello().into_iter().collect()
    }

    fn on_frame(&mut self, frame: Frame<'_>) -> Vec<Action> {
        self.read_frame(frame)
    }

    fn on_steer(&mut self, steer: Steer) -> Vec<Action> {
        match steer {
            Steer::Interrupt => self.on_interrupt().into_iter().collect(),
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

fn on_plan(news: wire::PlanNews) -> Vec<Action> {
    let entry =
        |step: wire::PlanStep| towline_core::PlanEntry { text: step.step, done: step.status == "completed" };
    vec![Action::emit(AgentEvent::Plan { entries: news.plan.into_iter().map(entry).collect() })]
}

/// Known notifications that are ignored: they are not needed, or other frames report the same better. Sorted.
const UNINTERESTING: [&str; 70] = [
    "account/gatewayOAuth/changed",
    "account/login/completed",
    "account/updated",
    "app/list/updated",
    "autoApprovalReview/strictReviewRequired",
    "command/exec/outputDelta",
    "deprecationNotice",
    "externalAgentConfig/import/completed",
    "externalAgentConfig/import/progress",
    "fs/changed",
    "fuzzyFileSearch/sessionCompleted",
    "fuzzyFileSearch/sessionUpdated",
    "hook/completed",
    "hook/started",
    "item/autoApprovalReview/completed",
    "item/autoApprovalReview/started",
    "item/commandExecution/outputDelta",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "item/plan/delta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "mcpServer/event/stream/notification",
    "mcpServer/oauthLogin/completed",
    "model/safetyBuffering/updated",
    "model/verification",
    "modelProvider/authRecoveryCompleted",
    "modelProvider/authRecoveryStarted",
    "process/exited",
    "process/outputDelta",
    "project/changed",
    "remoteControl/status/changed",
    "skills/changed",
    "thread/archived",
    "thread/attachment/updated",
    "thread/closed",
    "thread/compacted",
    "thread/deleted",
    "thread/environment/connected",
    "thread/environment/disconnected",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/name/updated",
    "thread/prediction/updated",
    "thread/project/updated",
    "thread/queue/changed",
    "thread/readState/changed",
    "thread/realtime/closed",
    "thread/realtime/error",
    "thread/realtime/item/completed",
    "thread/realtime/item/started",
    "thread/realtime/item/transcript/delta",
    "thread/realtime/itemAdded",
    "thread/realtime/outputAudio/delta",
    "thread/realtime/sdp",
    "thread/realtime/started",
    "thread/realtime/transcript/delta",
    "thread/realtime/transcript/done",
    "thread/reverted",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
    "thread/unarchived",
    "turn/diff/updated",
    "turn/moderationMetadata",
    "windows/worldWritableWarning",
    "windowsSandbox/setupCompleted",
];

#[cfg(test)]
mod tests {
    use super::UNINTERESTING;

    #[test]
    fn uninteresting_notifications_are_sorted() {
        assert!(UNINTERESTING.is_sorted());
    }
}
