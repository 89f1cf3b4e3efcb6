//! The conversation: what to write, and which module reads which line.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use towline_core::{End, MicroUsd, SessionId, Usage, Words};

use super::builtin;
use super::classify::{Evidence, Failed, Outcome, classify};
use super::input::{AcpOperatorMessages, CANCEL};
use super::opening::{Preparation, Way};
use super::preset::{Mode, Preset};
use super::requests::PendingRequest;
use super::speech::Speech;
use super::tools::AcpCall;
use super::turn::Turn;
use super::usage::AcpUsageLedger;
use super::{updates, wire};
use crate::environment::Environment;
use crate::jsonrpc::{self, Message, Peer, RpcError};
use crate::lines::{Conversation, Lines, Reading, Unknown};
use crate::mcp::McpServer;
use crate::permission::Rules;
use crate::protocol::{Action, Frame, LaunchContext, ProcessEnd, Protocol, Steer};
use crate::settings::AgentSettings;

/// What a request of ours was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Initialize,
    Session(Way),
    Prepared(Preparation),
    Compact,
    /// The prompt, or a message of the operator.
    Prompt,
}

/// The stage of the conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Messages are not ours yet: the session is being opened, or its past is replayed.
    #[default]
    Opening,
    /// The conversation is being summarised.
    Compacting,
    /// The prompt was sent.
    Prompted,
}

/// The state of one conversation.
#[derive(Default)]
pub(super) struct AcpProtocol {
    pub(super) preset: Preset,
    /// The earlier session to resume.
    pub(super) asked: Option<SessionId>,
    pub(super) directory: String,
    pub(super) prompt: String,
    pub(super) compact: Option<String>,
    /// Goes to a new session before its prompt.
    pub(super) system_append: Option<String>,
    pub(super) wanted_model: Option<String>,
    pub(super) mode: Option<Mode>,
    /// The MCP servers for the agent, and their names.
    pub(super) mcp_servers: Value,
    pub(super) servers: Vec<String>,
    /// A server that is reached over HTTP, which not every agent can.
    pub(super) http_server: Option<String>,
    /// Warnings about settings that cannot be passed on.
    pub(super) warnings: Vec<String>,
    pub(super) rules: Rules,
    pub(super) peer: Peer<Purpose>,
    pub(super) stage: Stage,
    pub(super) agent_version: Option<String>,
    pub(super) session: Option<SessionId>,
    pub(super) model: Option<String>,
    /// The agent's id of the option that selects the model, if there is one.
    pub(super) model_option: Option<String>,
    pub(super) preparations: VecDeque<Preparation>,
    /// Whether the agent has a slash command that summarises the conversation.
    pub(super) has_compact_command: bool,
    pub(super) operator_messages: AcpOperatorMessages,
    pub(super) turn: Turn,
    pub(super) speech: Speech,
    /// Tool calls of this turn, by id.
    pub(super) calls: HashMap<String, AcpCall>,
    /// Ids of tool calls that were denied.
    pub(super) denied: HashSet<String>,
    /// Requests that wait for a person, by id.
    pub(super) pending: BTreeMap<String, PendingRequest>,
    /// Requests that were answered before the conversation was read again, with their answers, by id.
    pub(super) answered: HashMap<String, Value>,
    /// Whether the agent was asked to end its turn before the conversation was read again.
    pub(super) was_interrupted: bool,
    /// The cost of the session before this attempt, if known.
    pub(super) cost_before: Option<MicroUsd>,
    pub(super) usage: AcpUsageLedger,
    pub(super) evidence: Evidence,
    pub(super) lines: Lines,
}

impl AcpProtocol {
    pub(super) fn new(settings: &AgentSettings, context: &LaunchContext<'_>) -> Self {
        let preset = Preset::of(settings);
        Self {
            preset,
            asked: context.resumed().cloned(),
            directory: context.directory.to_owned(),
            prompt: context.prompt.to_owned(),
            compact: context.compact.map(str::to_owned),
            system_append: settings.system_append.clone(),
            wanted_model: context.model.map(str::to_owned).or_else(|| settings.model.clone()),
            mode: preset.mode(settings),
            mcp_servers: settings.mcp.keys().map(|name| server(name, settings, context)).collect(),
            servers: settings.mcp.keys().cloned().collect(),
            http_server: settings
                .mcp
                .iter()
                .find(|(_, server)| server.url.is_some())
                .map(|(name, _)| name.clone()),
            warnings: match preset {
                Preset::Builtin => builtin::warnings(settings, context),
                Preset::Gemini | Preset::Opencode | Preset::Plain => unused(settings, preset),
            },
            rules: Rules::of(settings, context.permitted),
            ..Self::default()
        }
    }

    fn on_reply(&mut self, purpose: Purpose, result: Result<&RawValue, RpcError>) -> Vec<Action> {
        fn read<'a, T: Deserialize<'a> + Default>(raw: &'a RawValue) -> T {
            wire::read(raw).unwrap_or_default()
        }
        match purpose {
            Purpose::Initialize => self.on_initialized(result.map(read)),
            Purpose::Session(way) => self.on_session(way, result.map(read)),
            Purpose::Prepared(what) => self.on_prepared(what, result.map(|_| ())),
            Purpose::Compact => self.on_compacted(result.map(read)),
            Purpose::Prompt => self.on_prompted(result.map(read)),
        }
    }

    /// Ends the conversation without a turn.
    pub(super) fn give_up(&mut self, failed: Failed) -> Vec<Action> {
        self.evidence.outcome = Some(Outcome::Failed(failed));
        self.lines.close().into_iter().collect()
    }

    /// Sends a request, as long as the agent accepts input. A line in the log of sent lines is not sent again, so the same
    /// request must always be the same bytes; the fields of a `Value` are in the order of their names.
    pub(super) fn request(
        &mut self,
        id: &str,
        purpose: Purpose,
        method: &str,
        params: Value,
    ) -> Option<Action> {
        self.lines.listens().then(|| Action::Write(self.peer.request(id, purpose, method, params)))
    }

    /// Asks the agent to end its turn. An agent without a turn gets none.
    fn interrupt(&mut self) -> Vec<Action> {
        if !self.evidence.in_turn {
            return self.lines.close().into_iter().collect();
        }
        self.turn.is_interrupted = true;
        let session = self.session.as_ref().map(SessionId::as_str).unwrap_or_default();
        let cancel = jsonrpc::notification(CANCEL, json!({"sessionId": session}));
        self.lines.write(cancel).into_iter().chain(self.cancel_requests()).collect()
    }
}

impl Conversation for AcpProtocol {
    fn lines(&mut self) -> &mut Lines {
        &mut self.lines
    }

    fn read(&mut self, line: &str) -> Reading {
        match jsonrpc::read(line) {
            Some(Message::Answer { id, result }) => match self.peer.answered(id) {
                Some(purpose) => Ok(self.on_reply(purpose, result)),
                None => Err(Unknown("an answer to nothing".to_owned())),
            },
            Some(Message::Request(request)) => self.on_request(&request),
            Some(Message::Notification { method: updates::METHOD, params }) => {
                self.on_update(&mut wire::read(params).unwrap_or_default())
            }
            Some(Message::Notification { method: "$/cancel_request", params }) => {
                self.on_cancelled_request(params)
            }
            Some(Message::Notification { method: "elicitation/complete", .. }) => Ok(Vec::new()),
            Some(Message::Notification { method, params }) if self.preset == Preset::Builtin => {
                self.on_own_notification(method, params)
            }
            Some(Message::Notification { method, .. }) => Err(Unknown(method.to_owned())),
            None => Err(Unknown::line(line)),
        }
    }
}

impl Protocol for AcpProtocol {
    fn recall(&mut self, sent: &[u8]) {
        Self::recall(self, sent);
    }

    fn used_before(&mut self, used: Usage) {
        self.cost_before = Some(used.cost);
    }

    fn start(&mut self) -> Vec<Action> {
        self.hello().into_iter().collect()
    }

    fn on_frame(&mut self, frame: Frame<'_>) -> Vec<Action> {
        self.read_frame(frame)
    }

    fn on_steer(&mut self, steer: Steer) -> Vec<Action> {
        match steer {
            Steer::Interrupt => self.interrupt(),
            Steer::Tell { message, text } => {
                self.on_operator_message(message, text);
                Vec::new()
            }
            Steer::Answer { request, reply } => self.on_answer(&request, reply),
        }
    }

    /// An answer to a permission request is one of the agent's own options and has no text.
    fn refusal_words(&self) -> Words {
        Words::Dropped
    }

    fn on_exit(&mut self, exit: &ProcessEnd) -> (Vec<Action>, End) {
        self.evidence.exit = exit.clone();
        let mut actions = Vec::new();
        self.speech.over(&mut actions);
        let end = classify(&self.evidence);
        actions.extend(self.lines.finish(exit, &end));
        (actions, end)
    }
}

/// A server as it is handed over. Some agents keep variables that look like secrets from the servers they start, so
/// Towline's own is given what it needs by name.
fn server(name: &str, settings: &AgentSettings, context: &LaunchContext<'_>) -> Value {
    let server = &settings.mcp[name];
    let pair = |(name, value): (&String, String)| json!({"name": name, "value": value});
    let filled = |values: &Environment| -> Vec<Value> {
        values.iter().map(|(name, value)| pair((name, settings.filled(value, context.environment)))).collect()
    };
    if let Some(url) = &server.url {
        return json!({"type": "http", "name": name, "url": url, "headers": filled(&server.headers)});
    }
    let (program, args) = server.words();
    let own = context.towline.iter().filter(|_| name == McpServer::TOWLINE);
    let mut env = filled(&server.env);
    env.extend(own.map(|(name, value)| pair((name, value.clone()))));
    json!({"name": name, "command": program, "args": args, "env": env})
}

/// Settings that neither the protocol nor the program's arguments can express.
fn unused(settings: &AgentSettings, preset: Preset) -> Vec<String> {
    let mut unused = Vec::new();
    if settings.max_turns.is_some() {
        unused.push("max_turns");
    }
    if !settings.dirs.is_empty() && preset != Preset::Gemini {
        unused.push("dirs");
    }
    let words = |name| format!("this agent cannot be given `{name}`: it is set, but has no effect");
    let permission = settings.permission;
    let partly = (preset == Preset::Plain && permission.forbids_commands()).then(|| {
        format!(
            "`permission = {:?}` holds for what this agent asks about; whether it asks is up to it",
            permission.name()
        )
    });
    unused.into_iter().map(words).chain(partly).collect()
}
