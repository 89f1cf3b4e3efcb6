//! The conversation: what to write, and which module reads which frame.
//!
//! The process lives on after each result and ends when its input is closed. So the input is closed after the
//! first one that answers the prompt, unless a request still waits for a person: what runs in the background is then
//! brought to its end by the CLI itself, within bounds of its own and under the engine's clocks. What it says
//! afterwards is read all the same, and may be a further turn.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::json;
use towline_core::{AgentEvent, End, Outcome, SessionId, SessionPlan, Usage};

use super::classify::{Evidence, classify};
use super::compaction::Compaction;
use super::control::Pending;
use super::input::Tells;
use super::tools::Call;
use super::usage::UsageLedger;
use super::wire;
use crate::json;
use crate::permission::Rules;
use crate::protocol::{Action, Frame, LaunchContext, ProcessEnd, Protocol, Steer};
use crate::settings::AgentSettings;
use crate::unrecognised::Unrecognised;

/// A frame that this version does not understand, by the name to count it under.
pub(super) struct Unknown(pub(super) String);

/// What a frame asks for, unless it is not understood.
pub(super) type Reading = Result<Vec<Action>, Unknown>;

/// The state of one conversation.
pub(super) struct ClaudeProtocol {
    pub(super) prompt: String,
    /// The summary that goes before the prompt, until it is over.
    pub(super) compaction: Option<Compaction>,
    pub(super) tells: Tells,
    pub(super) asked: SessionPlan,
    pub(super) rules: Rules,
    pub(super) session: Option<SessionId>,
    /// Where the agent works and on which model, as it says itself.
    pub(super) directory: Option<String>,
    pub(super) model: Option<String>,
    /// Prompts that were sent and not yet taken up.
    pub(super) prompts_waiting: u32,
    /// Whether the turn at work has been told of.
    pub(super) turn_is_told: bool,
    interrupts: u32,
    stdin: Stdin,
    /// Tool calls at work, by id.
    pub(super) calls: HashMap<String, Call>,
    /// Ids of tool calls that were denied.
    pub(super) denied: HashSet<String>,
    /// Requests that a person answered before this reading of the conversation began, by id, and how.
    pub(super) answered: HashMap<String, Outcome>,
    /// Requests that wait for a person, by id.
    pub(super) pending: BTreeMap<String, Pending>,
    /// Ids of tool calls that a person decides about: their decisions are not the agent's to tell.
    pub(super) put_to_person: HashSet<String>,
    /// Background tasks that have not ended: what they are about, by id.
    pub(super) background: BTreeMap<String, String>,
    pub(super) usage: UsageLedger,
    pub(super) evidence: Evidence,
    unrecognised: Unrecognised,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stdin {
    Open,
    /// To be closed when no request waits for a person any more.
    Closing,
    Closed,
}

impl ClaudeProtocol {
    pub(super) fn new(settings: &AgentSettings, context: &LaunchContext<'_>) -> Self {
        let asked_to_resume = matches!(context.session, SessionPlan::Resume(_));
        Self {
            prompt: context.prompt.to_owned(),
            compaction: context.compact.map(Compaction::new),
            tells: Tells::new(context.attempt),
            asked: context.session.clone(),
            rules: Rules::of(settings, context.permitted),
            session: None,
            directory: None,
            model: None,
            prompts_waiting: 0,
            turn_is_told: false,
            interrupts: 0,
            stdin: Stdin::Open,
            calls: HashMap::new(),
            denied: HashSet::new(),
            answered: HashMap::new(),
            pending: BTreeMap::new(),
            put_to_person: HashSet::new(),
            background: BTreeMap::new(),
            usage: UsageLedger::default(),
            evidence: Evidence {
                provider: context.provider.map(str::to_owned),
                asked_to_resume,
                ..Evidence::default()
            },
            unrecognised: Unrecognised::default(),
        }
    }

    fn read(&mut self, line: &str) -> Reading {
        if let Some(reading) = json::leading("type", line).and_then(|kind| self.read_at_once(kind, line)) {
            return reading;
        }
        let Ok(envelope) = serde_json::from_str::<wire::Envelope<'_>>(line) else {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok();
            return Err(Unknown(if is_json { "JSON of another shape" } else { "not JSON" }.to_owned()));
        };
        match envelope.kind.as_str() {
            "stream_event" => self.on_stream_event(decode(line, "stream_event")?),
            "assistant" => self.on_assistant(decode(line, "assistant")?),
            "user" => self.on_user(decode(line, "user")?),
            "system" => {
                let subtype = wire::text(&envelope.subtype);
                self.on_system(subtype, decode(line, &format!("system/{subtype}")))
            }
            "result" => match decode(line, "result") {
                Ok(result) => self.on_result(result),
                // Whatever it says, the turn is over and the process waits for us.
                Err(Unknown(what)) => {
                    let told = self.unknown(what, line);
                    let next = match self.compaction {
                        Some(_) => self.on_compaction_over("its end was not understood"),
                        None => self.close_stdin().into_iter().collect(),
                    };
                    Ok(told.into_iter().chain(next).collect())
                }
            },
            "rate_limit_event" => self.on_rate_limit(decode(line, "rate_limit_event")?),
            "control_request" => self.on_control_request(decode(line, "control_request")?),
            "control_response" => self.on_control_answer(decode(line, "control_response")?),
            "auth_status" => Ok(on_auth_status(decode(line, "auth_status")?)),
            "control_cancel_request" => self.on_cancel(decode(line, "control_cancel_request")?),
            // The progress of a message that we sent. The message itself is reported by other frames.
            "command_lifecycle" => Ok(Vec::new()),
            "keep_alive" | "tool_progress" | "tool_use_summary" | "prompt_suggestion"
            | "transcript_mirror" => Ok(Vec::new()),
            unknown => Err(Unknown(unknown.to_owned())),
        }
    }

    /// Reads a line that says first which one it is in one go, as nearly all do; none when it is not as it should be.
    fn read_at_once(&mut self, kind: &str, line: &str) -> Option<Reading> {
        fn part<'a, T: serde::Deserialize<'a>>(line: &'a str) -> Option<T> {
            serde_json::from_str(line).ok()
        }
        match kind {
            "stream_event" => part(line).map(|line| self.on_stream_event(line)),
            "assistant" => part(line).map(|line| self.on_assistant(line)),
            "user" => part(line).map(|line| self.on_user(line)),
            "system" => {
                let mut line: wire::SystemLine<'_> = part(line)?;
                let subtype = line.subtype.take()?;
                Some(self.on_system(&subtype, Ok(line)))
            }
            "result" => part(line).map(|line| self.on_result(line)),
            "control_response" => part(line).map(|line| self.on_control_answer(line)),
            _ => None,
        }
    }

    /// Takes note of what is not understood.
    pub(super) fn unknown(&mut self, what: String, raw: &str) -> Vec<Action> {
        self.unrecognised.note(what, raw).into_iter().collect()
    }

    /// Closes the agent's input, once.
    pub(super) fn close_stdin(&mut self) -> Option<Action> {
        let was = std::mem::replace(&mut self.stdin, Stdin::Closed);
        (was != Stdin::Closed).then_some(Action::CloseStdin)
    }

    /// Closes the agent's input, or sees to it that it is closed when the last request has its answer: the CLI takes
    /// a closed input for a refusal.
    pub(super) fn close_stdin_in_time(&mut self) -> Option<Action> {
        if self.listens() {
            self.stdin = Stdin::Closing;
        }
        self.close_if_due()
    }

    /// Closes the agent's input when that was only put off.
    pub(super) fn close_if_due(&mut self) -> Option<Action> {
        let is_due = self.stdin == Stdin::Closing && self.pending.is_empty();
        is_due.then(|| self.close_stdin()).flatten()
    }

    /// Whether what we write reaches the agent.
    pub(super) fn listens(&self) -> bool {
        self.stdin != Stdin::Closed
    }

    /// Has the agent end its turn.
    pub(super) fn interrupt(&self, id: &str) -> Option<Action> {
        self.write(&json!({
            "type": "control_request",
            "request_id": id,
            "request": {"subtype": "interrupt"},
        }))
    }

    /// Answers the agent, as long as it listens.
    pub(super) fn write(&self, message: &impl serde::Serialize) -> Option<Action> {
        let mut line = serde_json::to_vec(message).ok()?;
        line.push(b'\n');
        self.listens().then_some(Action::Write(line))
    }
}

impl Protocol for ClaudeProtocol {
    fn used_before(&mut self, used: Usage) {
        self.usage.used_before(used);
    }

    fn recall(&mut self, sent: &[u8]) {
        self.recall_answer(sent);
    }

    fn start(&mut self) -> Vec<Action> {
        let hello = json!({
            "type": "control_request",
            "request_id": "towline-initialize",
            "request": {"subtype": "initialize", "hooks": null},
        });
        self.write(&hello).into_iter().chain(self.send_opening()).collect()
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
            Steer::Interrupt => {
                self.interrupts += 1;
                self.interrupt(&format!("towline-interrupt-{}", self.interrupts)).into_iter().collect()
            }
            Steer::Tell { message, text } => self.on_tell(message, text),
            Steer::Answer { request, reply } => self.on_answer(&request, reply),
        }
    }

    fn on_exit(&mut self, exit: &ProcessEnd) -> (Vec<Action>, End) {
        self.evidence.exit = exit.clone();
        self.stdin = Stdin::Closed;
        let end = classify(&self.evidence);
        let notice = exit.oddity_after(&end).map(notice);
        (self.unrecognised.rest().into_iter().chain(notice).collect(), end)
    }
}

/// Reads a frame of a known type; one of an unknown shape is counted under its type.
pub(super) fn decode<'a, T: serde::Deserialize<'a>>(line: &'a str, what: &str) -> Result<T, Unknown> {
    serde_json::from_str(line).map_err(|_| Unknown(what.to_owned()))
}

/// Something worth telling.
pub(super) fn notice(text: impl Into<Cow<'static, str>>) -> Action {
    Action::emit(AgentEvent::Notice { text: text.into().into_owned() })
}

fn on_auth_status(line: wire::AuthStatusLine<'_>) -> Vec<Action> {
    line.error.map(|error| notice(format!("signing in: {}", error.as_str()))).into_iter().collect()
}
