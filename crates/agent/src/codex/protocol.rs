//! The conversation: what to write, and which module reads which frame.
//!
//! The app server lives until its input is closed, and takes down with it whatever still works. So the input is closed
//! after the turn that answers the prompt, when no request waits for a person and no subagent is at work any more.
//!
//! Whoever reads a conversation again from its log has what the app server wrote, not what the operator said in between:
//! what is told of must follow from the frames alone, and so must the ids of our requests.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use towline_core::{AgentEvent, End, SessionPlan};

use super::approvals::Pending;
use super::classify::{Evidence, classify};
use super::input::Tells;
use super::items::{self, Open};
use super::opening::{Compaction, Purpose, Stage};
use super::usage::UsageLedger;
use super::wire::{Item, ItemNews};
use super::{plan, wire};
use crate::json;
use crate::jsonrpc::{Incoming, Peer, params_of_news};
use crate::permission::Rules;
use crate::protocol::{Action, Frame, LaunchContext, ProcessEnd, Protocol, Steer};
use crate::settings::AgentSettings;
use crate::unrecognised::Unrecognised;

/// A frame that this version does not understand, by the name to count it under.
pub(super) struct Unknown(pub(super) String);

/// What a frame asks for, unless it is not understood.
pub(super) type Reading = Result<Vec<Action>, Unknown>;

/// The state of one conversation.
pub(super) struct CodexProtocol {
    pub(super) prompt: String,
    /// The request that begins the conversation.
    pub(super) opening: (&'static str, Value),
    /// The summary that goes before the prompt, until it is over.
    pub(super) compaction: Option<Compaction>,
    pub(super) asked: SessionPlan,
    pub(super) rules: Rules,
    pub(super) directory: String,
    /// Settings that this agent has no use for, in words.
    pub(super) unused: Vec<String>,
    pub(super) peer: Peer<Purpose>,
    pub(super) stage: Stage,
    stdin: Stdin,
    /// Our conversation; subagents have conversations of their own.
    pub(super) thread: Option<String>,
    pub(super) model: Option<String>,
    /// The turn at work in it.
    pub(super) turn: Option<String>,
    /// Whether that turn has been told of.
    pub(super) turn_is_told: bool,
    pub(super) tells: Tells,
    /// Tool calls at work, by id.
    pub(super) calls: BTreeMap<String, Open>,
    /// Which tool call a subagent's conversation comes from.
    pub(super) spawned: HashMap<String, String>,
    /// Conversations of subagents in the middle of a turn.
    pub(super) subagents_at_work: BTreeSet<String>,
    /// Requests that wait for a person, by id.
    pub(super) pending: BTreeMap<String, Pending>,
    pub(super) usage: UsageLedger,
    /// What was told as a notice: some warnings come with every turn.
    noticed: BTreeSet<String>,
    pub(super) last_limits: Option<(Option<wire::Window>, Option<wire::Window>)>,
    pub(super) last_message: String,
    pub(super) evidence: Evidence,
    unrecognised: Unrecognised,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stdin {
    Open,
    /// To be closed when nobody is waited for any more.
    Closing,
    Closed,
}

impl CodexProtocol {
    pub(super) fn new(settings: &AgentSettings, context: &LaunchContext<'_>) -> Self {
        let resumes = matches!(context.session, SessionPlan::Resume(_));
        let unused =
            settings.max_turns.map(|_| "Codex has no cap of its own on turns: `max_turns` is not used");
        Self {
            prompt: context.prompt.to_owned(),
            opening: plan::thread(settings, context),
            compaction: context.compact.map(|_| Compaction::default()),
            asked: context.session.clone(),
            rules: Rules::of(settings, context.permitted),
            directory: context.directory.to_owned(),
            unused: unused.map(str::to_owned).into_iter().collect(),
            peer: Peer::default(),
            stage: Stage::Opening,
            stdin: Stdin::Open,
            thread: None,
            model: None,
            turn: None,
            turn_is_told: false,
            tells: Tells::default(),
            calls: BTreeMap::new(),
            spawned: HashMap::new(),
            subagents_at_work: BTreeSet::new(),
            pending: BTreeMap::new(),
            usage: UsageLedger::new(resumes),
            noticed: BTreeSet::new(),
            last_limits: None,
            last_message: String::new(),
            evidence: Evidence { asked_to_resume: resumes, ..Evidence::default() },
            unrecognised: Unrecognised::default(),
        }
    }

    fn read(&mut self, line: &str) -> Reading {
        // Nearly all lines are news: they are read in one go.
        if let Some(method) = json::leading("method", line)
            && let Ok(actions) = self.on_news(method, News::Line(line))
        {
            return Ok(actions);
        }
        if let Some(reading) = self.on_usual_answer(line) {
            return reading;
        }
        match self.peer.read(line) {
            Some(Incoming::Answer { purpose, result }) => self.on_answer_to(purpose, result),
            // Answers to what the operator wanted, when the conversation is read again.
            Some(Incoming::StrayAnswer) => Ok(Vec::new()),
            Some(Incoming::Request(request)) => self.on_request(&request),
            Some(Incoming::Notification { method, params }) => self.on_news(method, News::Params(params)),
            None => {
                let is_json = serde_json::from_str::<IgnoredAny>(line).is_ok();
                Err(Unknown(if is_json { "JSON of another shape" } else { "not JSON" }.to_owned()))
            }
        }
    }

    fn on_news(&mut self, method: &str, params: News<'_>) -> Reading {
        match method {
            "turn/started" => self.on_turn_started(decode_news(params, method)?),
            "turn/completed" => match (decode_news(params, method), params) {
                (Ok(news), _) => self.on_turn_completed(news),
                // Whatever it says, a turn is over and the process may wait for us.
                (Err(unknown), News::Params(params)) => self.on_odd_end(unknown, params.get()),
                (Err(unknown), News::Line(_)) => Err(unknown),
            },
            "error" => self.on_error(decode_news(params, method)?),
            "item/started" => self.on_item_started(decode_item(params, method)?),
            "item/completed" => self.on_item_completed(decode_item(params, method)?),
            "item/agentMessage/delta" => Ok(self.on_delta(decode_news(params, method)?)),
            "turn/plan/updated" => Ok(on_plan(decode_news(params, method)?)),
            "thread/tokenUsage/updated" => Ok(self.on_usage(&decode_news(params, method)?)),
            "account/rateLimits/updated" => Ok(self.on_limits(&decode_news(params, method)?)),
            "serverRequest/resolved" => Ok(self.on_resolved(&decode_news(params, method)?)),
            "warning" | "guardianWarning" => {
                let warning: wire::Message = decode_news(params, method)?;
                Ok(self.notice(warning.message))
            }
            "configWarning" => {
                let warning: wire::ConfigWarning = decode_news(params, method)?;
                Ok(self.notice(warning.summary))
            }
            "mcpServer/startupStatus/updated" => Ok(self.on_server_status(decode_news(params, method)?)),
            "model/rerouted" => {
                let news: wire::Rerouted = decode_news(params, method)?;
                Ok(self.notice(format!(
                    "the provider answers with model {} instead of {}",
                    news.to_model, news.from_model
                )))
            }
            _ if UNINTERESTING.binary_search(&method).is_ok() => {
                decode_news::<IgnoredAny>(params, method).map(|_| Vec::new())
            }
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

    /// Something worth telling, once.
    pub(super) fn notice(&mut self, text: String) -> Vec<Action> {
        if text.trim().is_empty() || self.noticed.contains(&text) {
            return Vec::new();
        }
        self.noticed.insert(text.clone());
        vec![Action::emit(AgentEvent::Notice { text })]
    }

    /// Takes note of what is not understood.
    pub(super) fn unknown(&mut self, what: String, raw: &str) -> Vec<Action> {
        self.unrecognised.note(what, raw).into_iter().collect()
    }

    /// Whether this is our conversation, not a subagent's.
    pub(super) fn is_ours(&self, thread: &str) -> bool {
        self.thread.as_deref() == Some(thread)
    }

    /// Something that happened in this conversation.
    pub(super) fn within(&self, thread: &str, event: AgentEvent) -> Action {
        let parent = (!self.is_ours(thread)).then(|| {
            let call = self.spawned.get(thread);
            call.cloned().unwrap_or_else(|| thread.to_owned())
        });
        Action::Emit { event, parent }
    }

    /// Closes the agent's input, once.
    pub(super) fn close_stdin(&mut self) -> Option<Action> {
        let was = std::mem::replace(&mut self.stdin, Stdin::Closed);
        (was != Stdin::Closed).then_some(Action::CloseStdin)
    }

    /// Closes the agent's input, or sees to it that it is closed when nobody is waited for any more.
    pub(super) fn close_stdin_in_time(&mut self) -> Option<Action> {
        if self.listens() {
            self.stdin = Stdin::Closing;
        }
        self.close_if_due()
    }

    /// Closes the agent's input when that was only put off.
    pub(super) fn close_if_due(&mut self) -> Option<Action> {
        let is_idle = self.pending.is_empty() && self.subagents_at_work.is_empty();
        (self.stdin == Stdin::Closing && is_idle).then(|| self.close_stdin()).flatten()
    }

    /// The agent has begun to work again: its input stays open.
    pub(super) fn keep_stdin_open(&mut self) {
        if self.listens() {
            self.stdin = Stdin::Open;
        }
    }

    /// Whether what we write reaches the agent.
    pub(super) fn listens(&self) -> bool {
        self.stdin != Stdin::Closed
    }

    /// Writes a line, as long as the agent listens.
    pub(super) fn write(&self, line: Vec<u8>) -> Option<Action> {
        self.listens().then_some(Action::Write(line))
    }

    /// Asks something of the agent, as long as it listens.
    pub(super) fn ask_of_agent(
        &mut self,
        id: &str,
        purpose: Purpose,
        method: &str,
        params: Value,
    ) -> Option<Action> {
        let listens = self.listens();
        listens.then(|| Action::Write(self.peer.request(id, purpose, method, params)))
    }
}

impl Protocol for CodexProtocol {
    fn start(&mut self) -> Vec<Action> {
        self.send_hello().into_iter().collect()
    }

    fn on_frame(&mut self, frame: Frame<'_>) -> Vec<Action> {
        let line = match frame.text() {
            Ok(line) => line,
            Err(raw) => return self.unknown("too long".to_owned(), &raw),
        };
        if line.is_empty() {
            return Vec::new();
        }
        self.read(&line).unwrap_or_else(|Unknown(what)| self.unknown(what, &line))
    }

    fn on_steer(&mut self, steer: Steer) -> Vec<Action> {
        match steer {
            Steer::Interrupt => self.on_interrupt().into_iter().collect(),
            Steer::Tell { message, text } => self.on_tell(message, text),
            Steer::Answer { request, reply } => self.on_answer(&request, reply),
        }
    }

    fn on_exit(&mut self, exit: &ProcessEnd) -> (Vec<Action>, End) {
        self.evidence.exit = exit.clone();
        self.stdin = Stdin::Closed;
        let end = classify(&self.evidence);
        let notice = exit.oddity_after(&end).map_or_else(Vec::new, |text| self.notice(text));
        (self.unrecognised.rest().into_iter().chain(notice).collect(), end)
    }
}

/// The parameters of news, or the whole line that they are in.
#[derive(Debug, Clone, Copy)]
enum News<'a> {
    Line(&'a str),
    Params(&'a RawValue),
}

/// Reads news of a known method; that of an unknown shape is counted under it.
fn decode_news<'a, T: Deserialize<'a>>(news: News<'a>, method: &str) -> Result<T, Unknown> {
    match news {
        News::Line(line) => params_of_news(line).ok_or_else(|| Unknown(method.to_owned())),
        News::Params(params) => decode(params, method),
    }
}

/// Reads news of an item.
fn decode_item<'a>(news: News<'a>, method: &str) -> Result<ItemNews<'a, Item<'a>>, Unknown> {
    match news {
        News::Line(_) => decode_news(news, method),
        News::Params(params) => items::read(decode(params, method)?),
    }
}

/// Reads the parameters of a known method; those of an unknown shape are counted under it.
pub(super) fn decode<'a, T: Deserialize<'a>>(params: &'a RawValue, method: &str) -> Result<T, Unknown> {
    serde_json::from_str(params.get()).map_err(|_| Unknown(method.to_owned()))
}

fn on_plan(news: wire::PlanNews) -> Vec<Action> {
    let entry =
        |step: wire::PlanStep| towline_core::PlanEntry { text: step.step, done: step.status == "completed" };
    vec![Action::emit(AgentEvent::Plan { entries: news.plan.into_iter().map(entry).collect() })]
}

/// News that is known and says nothing that other frames do not say better, or nothing to us; in order.
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
    fn what_is_not_interesting_is_in_order() {
        assert!(UNINTERESTING.is_sorted());
    }
}
