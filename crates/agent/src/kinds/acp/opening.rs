//! The beginning of a conversation: capabilities of both sides, the session, its model and mode, then the prompt.

use serde::de::IgnoredAny;
use serde_json::json;
use towline_core::{AgentEvent, MicroUsd, SessionId, SessionStarted};

use super::classify::Failed;
use super::preset::Preset;
use super::protocol::{AcpProtocol, Purpose, Stage};
use super::wire;
use crate::jsonrpc::RpcError;
use crate::protocol::{Action, Resuming};

/// The supported version of the protocol.
const VERSION: u64 = 1;

/// How a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    New,
    /// An earlier one, which the agent replays.
    Load,
    /// An earlier one, without a replay.
    Resume,
}

/// What must be set before the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preparation {
    Model,
    Mode,
}

impl AcpProtocol {
    /// The first request. We offer no files and no terminals: agents have their own.
    pub(super) fn hello(&mut self) -> Option<Action> {
        let params = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": {
                "fs": {"readTextFile": false, "writeTextFile": false},
                "terminal": false,
                "elicitation": {"form": {}},
            },
            "clientInfo": {"name": "towline", "title": "Towline", "version": env!("CARGO_PKG_VERSION")},
        });
        self.request("initialize", Purpose::Initialize, "initialize", params)
    }

    pub(super) fn on_initialized(&mut self, answer: Result<wire::Initialized<'_>, RpcError>) -> Vec<Action> {
        let hello = match answer {
            Ok(hello) => hello,
            Err(error) => return self.give_up(Failed::Opening { what: "initialize", error }),
        };
        if hello.protocol_version != VERSION {
            let message = format!(
                "the agent speaks version {} of the protocol, and Towline version {VERSION}; \
                 use a version of the agent that speaks it, too",
                hello.protocol_version
            );
            let error = RpcError { message, ..RpcError::default() };
            return self.give_up(Failed::Opening { what: "initialize", error });
        }
        self.agent_version = wire::owned(hello.agent_info.version);
        let capabilities = hello.agent_capabilities;
        if let Some(name) = self.http_server.take_if(|_| !capabilities.mcp_capabilities.http) {
            let message = format!(
                "the agent takes no MCP servers over HTTP, and `{name}` is one; give it as a `command`, or leave it out"
            );
            let error = RpcError { message, ..RpcError::default() };
            return self.give_up(Failed::Opening { what: "initialize", error });
        }
        let can_resume = self.preset.resuming() == Resuming::Possible;
        let resumes = capabilities.session_capabilities.resume.is_some();
        let way = match self.asked {
            Some(_) if can_resume && resumes => Way::Resume,
            Some(_) if can_resume && capabilities.load_session => Way::Load,
            // The prompt continues a session. A new one would not know what it is about.
            Some(_) if can_resume => {
                let message = "the agent cannot continue a session".to_owned();
                let error = RpcError { message, ..RpcError::default() };
                return self.give_up(Failed::Session { way: Way::Load, error });
            }
            _ => Way::New,
        };
        self.open_session(way).into_iter().collect()
    }

    fn open_session(&mut self, way: Way) -> Option<Action> {
        let (method, session_id) = match (way, &self.asked) {
            (Way::Load, Some(id)) => ("session/load", Some(id.as_str())),
            (Way::Resume, Some(id)) => ("session/resume", Some(id.as_str())),
            _ => ("session/new", None),
        };
        let mut params = json!({"cwd": self.directory, "mcpServers": self.mcp_servers});
        if let Some(id) = session_id {
            params["sessionId"] = id.into();
        }
        self.request("session", Purpose::Session(way), method, params)
    }

    pub(super) fn on_session(
        &mut self,
        way: Way,
        answer: Result<wire::Session<'_>, RpcError>,
    ) -> Vec<Action> {
        let session = match answer {
            Ok(session) => session,
            Err(error) => return self.give_up(Failed::Session { way, error }),
        };
        let asked = self.asked.clone();
        let id = match (way, &session.session_id, &asked) {
            (Way::Load | Way::Resume, None, Some(asked)) => asked.clone(),
            (Way::Load | Way::Resume, Some(id), Some(asked)) if id.as_str() != asked.as_str() => {
                let message = format!("the agent opened session {} instead", id.as_str());
                let error = RpcError { message, ..RpcError::default() };
                return self.give_up(Failed::Session { way, error });
            }
            (_, Some(id), _) => SessionId::new(id.as_str()),
            (_, None, _) => {
                let error = RpcError { message: "the session has no id".to_owned(), ..RpcError::default() };
                return self.give_up(Failed::Session { way: Way::New, error });
            }
        };
        let resumed = way != Way::New && asked.as_ref() == Some(&id);
        self.usage.counted = if resumed { self.cost_before } else { Some(MicroUsd(0)) };
        if resumed {
            self.system_append = None;
        }
        self.session = Some(id.clone());
        let chosen = model_option(&session).and_then(|option| option.current_value.clone());
        let model = wire::owned(session.models.current_model_id.clone().or(chosen));
        self.model.clone_from(&model);
        let started = SessionStarted {
            native_id: id.clone(),
            resumed,
            model,
            agent_version: self.agent_version.take(),
        };
        let mut actions = vec![Action::emit(AgentEvent::SessionStarted(started))];
        if let Some(asked) = asked.filter(|_| !resumed) {
            actions.push(Action::not_resumed(&asked, &id));
        }
        actions.extend(std::mem::take(&mut self.warnings).into_iter().map(Action::notice));
        if self.preset == Preset::Opencode && knows_no_model(&session) {
            actions.extend(self.give_up(Failed::NoModel));
            return actions;
        }
        self.prepare(&session);
        actions.extend(self.next_preparation());
        actions
    }

    /// Collects what differs from the settings.
    fn prepare(&mut self, session: &wire::Session<'_>) {
        self.model_option = model_option(session).map(|option| option.id.clone().into());
        let wants_model = self.wanted_model.is_some() && self.wanted_model != self.model;
        let is_in_mode =
            self.mode.is_none_or(|mode| session.modes.current_mode_id.as_deref() == Some(mode.id));
        let is_set_already = matches!(self.preset, Preset::Gemini | Preset::Builtin);
        if wants_model && !is_set_already {
            self.preparations.push_back(Preparation::Model);
        }
        if !is_in_mode {
            self.preparations.push_back(Preparation::Mode);
        }
    }

    fn next_preparation(&mut self) -> Vec<Action> {
        let Some(session) = self.session.clone() else { return Vec::new() };
        let session = session.as_str();
        let request = match self.preparations.pop_front() {
            None => return self.compact_or_prompt(),
            Some(Preparation::Model) => {
                let model = self.wanted_model.clone().unwrap_or_default();
                let mut params = json!({"sessionId": session, "modelId": model});
                let mut method = "session/set_model";
                if let Some(option) = &self.model_option {
                    params = json!({"sessionId": session, "configId": option, "value": model});
                    method = "session/set_config_option";
                }
                self.request("model", Purpose::Prepared(Preparation::Model), method, params)
            }
            Some(Preparation::Mode) => {
                let mode = self.mode.map(|mode| mode.id).unwrap_or_default();
                let params = json!({"modeId": mode, "sessionId": session});
                self.request("mode", Purpose::Prepared(Preparation::Mode), "session/set_mode", params)
            }
        };
        request.into_iter().collect()
    }

    pub(super) fn on_prepared(&mut self, what: Preparation, answer: Result<(), RpcError>) -> Vec<Action> {
        match (what, answer) {
            (Preparation::Model, Ok(_)) => {
                self.model.clone_from(&self.wanted_model);
                self.next_preparation()
            }
            (Preparation::Mode, Ok(_)) => self.next_preparation(),
            (Preparation::Mode, Err(error)) if self.mode.is_some_and(|mode| !mode.is_required) => {
                let words = format!("the agent refused its mode: {}", error.message);
                [Action::notice(words)].into_iter().chain(self.next_preparation()).collect()
            }
            (Preparation::Mode, Err(error)) => {
                self.give_up(Failed::Opening { what: "session/set_mode", error })
            }
            (Preparation::Model, Err(error)) => {
                self.give_up(Failed::Opening { what: "the choice of the model", error })
            }
        }
    }

    fn compact_or_prompt(&mut self) -> Vec<Action> {
        let Some(focus) = self.compact.take() else { return self.send_prompt() };
        let known = self.preset == Preset::Opencode || self.has_compact_command;
        if !known {
            let reason = "the agent has no command that summarises its conversation".to_owned();
            let reported = Action::emit(AgentEvent::NotCompacted { reason });
            return [reported].into_iter().chain(self.send_prompt()).collect();
        }
        self.stage = Stage::Compacting;
        let command = format!("/compact {focus}");
        self.send_message("compact", Purpose::Compact, &[command.trim_end()]).into_iter().collect()
    }

    /// The turn for the summary is over; the prompt follows.
    pub(super) fn on_compacted(&mut self, answer: Result<wire::Prompted<'_>, RpcError>) -> Vec<Action> {
        let event = match answer {
            Ok(done) if done.stop_reason.as_deref() == Some("end_turn") => {
                AgentEvent::Compacted { before: None, after: self.usage.context_used }
            }
            Ok(done) => {
                let reason =
                    wire::owned(done.stop_reason).unwrap_or_else(|| "it ended without a reason".to_owned());
                AgentEvent::NotCompacted { reason }
            }
            Err(error) => AgentEvent::NotCompacted { reason: error.message },
        };
        [Action::emit(event)].into_iter().chain(self.send_prompt()).collect()
    }
}

fn model_option<'s>(session: &'s wire::Session<'s>) -> Option<&'s wire::ConfigOption<'s>> {
    session.config_options.iter().find(|option| option.category.as_deref() == Some("model"))
}

/// Whether there is a choice of models without any model: the agent is signed in to no provider.
fn knows_no_model(session: &wire::Session<'_>) -> bool {
    let options = model_option(session).and_then(|option| option.options);
    options.is_some_and(|options| {
        serde_json::from_str::<Vec<IgnoredAny>>(options.get()).is_ok_and(|options| options.is_empty())
    })
}
