//! The scripted agent inside the binary: it is told the prompt in one line and answers in the words of the core.
//!
//! Neighbours: the builtin crate holds the agent itself. It has no model and no permissions, so of the settings it
//! takes `command`, `args`, `env` and `pass_env`, and the engine the clocks.

use std::collections::BTreeMap;

use serde_json::json;
use towline_core::{AgentEvent, End, SessionPlan, TurnStop};

use crate::environment::{Extra, environment};
use crate::protocol::{Action, Agent, Frame, LaunchContext, LaunchPlan, ProcessEnd, Protocol, Stdio, Steer};
use crate::settings::AgentSettings;
use crate::unrecognised::Unrecognised;

/// The scripted agent.
pub(crate) struct Script;

impl Agent for Script {
    fn plan(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> LaunchPlan {
        let (flag, session) = match context.session {
            SessionPlan::Fresh(id) => ("--session", id),
            SessionPlan::Resume(id) => ("--resume", id),
        };
        let session = [flag.to_owned(), session.to_string()];
        let argv =
            settings.command.iter().cloned().chain(session).chain(settings.args.iter().cloned()).collect();
        let mut env = self.environment(settings, context.environment);
        env.extend(context.towline.clone());
        LaunchPlan { argv, env, stdio: Stdio::Pipes }
    }

    fn protocol(&self, _settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol> {
        Box::new(ScriptProtocol {
            prompt: context.prompt.to_owned(),
            turn: Turn::None,
            unrecognised: Unrecognised::default(),
        })
    }

    fn sign_in_hint(&self, _settings: &AgentSettings) -> String {
        "the scripted agent needs no sign-in".to_owned()
    }

    fn environment(
        &self,
        settings: &AgentSettings,
        inherited: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        environment(settings, inherited, &Extra::default())
    }
}

struct ScriptProtocol {
    prompt: String,
    turn: Turn,
    unrecognised: Unrecognised,
}

/// How far the agent's last turn came.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Turn {
    None,
    Running,
    Ended(TurnStop),
}

impl Protocol for ScriptProtocol {
    fn start(&mut self) -> Vec<Action> {
        let line = format!("{}\n", json!({"prompt": self.prompt}));
        vec![Action::Write(line.into_bytes()), Action::CloseStdin]
    }

    fn on_frame(&mut self, frame: Frame<'_>) -> Vec<Action> {
        let line = match frame.text() {
            Ok(line) => line,
            Err(raw) => return self.unrecognised.note("too long".to_owned(), &raw).into_iter().collect(),
        };
        if line.is_empty() {
            return Vec::new();
        }
        let Ok(event) = serde_json::from_str(&line) else {
            return self.unrecognised.note("not an event".to_owned(), &line).into_iter().collect();
        };
        match &event {
            AgentEvent::TurnStarted => self.turn = Turn::Running,
            AgentEvent::TurnEnded(end) => self.turn = Turn::Ended(end.stop.clone()),
            _ => {}
        }
        vec![Action::emit(event)]
    }

    /// It does not listen once it has its prompt.
    fn on_steer(&mut self, steer: Steer) -> Vec<Action> {
        match steer {
            Steer::Interrupt | Steer::Tell { .. } | Steer::Answer { .. } => Vec::new(),
        }
    }

    fn on_exit(&mut self, exit: &ProcessEnd) -> (Vec<Action>, End) {
        (self.unrecognised.rest(), self.end(exit))
    }
}

impl ScriptProtocol {
    fn end(&self, exit: &ProcessEnd) -> End {
        if let Some(problem) = &exit.spawn {
            return End::SpawnFailed { problem: problem.clone() };
        }
        let how = exit.how();
        let message = match &self.turn {
            Turn::Ended(TurnStop::Done) if exit.code == Some(0) && exit.signal.is_none() => {
                return End::Completed;
            }
            Turn::Ended(TurnStop::Done) => format!("{how} after its turn"),
            Turn::Ended(TurnStop::Interrupted) => format!("interrupted; {how}"),
            Turn::Ended(TurnStop::Failed { reason, .. }) => format!("{reason}; {how}"),
            Turn::Running => format!("{how} in the middle of a turn"),
            Turn::None => format!("{how} before any turn"),
        };
        let stderr = exit.stderr_tail.trim();
        End::Crashed { message: if stderr.is_empty() { message } else { format!("{message}: {stderr}") } }
    }
}

#[cfg(test)]
mod tests;
