//! The scripted agent inside the binary: it gets the prompt in one line and prints events of the core.
//!
//! Neighbours: the builtin crate has the agent itself. It has no model and no permissions, so it uses only the
//! settings `command`, `args`, `env` and `pass_env`; the engine applies the timeouts.

use serde_json::json;
use towline_core::{AgentEvent, End, TurnStop};

use crate::abilities::{Abilities, Ability};
use crate::lines::{Conversation, Lines, Reading, Unknown, line};
use crate::protocol::{Action, Agent, Frame, LaunchContext, ProcessEnd, Protocol, Restriction};
use crate::settings::{AgentSettings, Permission};

pub(crate) struct Script;

impl Agent for Script {
    fn argv(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String> {
        let session = context.session_option("--session");
        settings.command.iter().cloned().chain(session).chain(settings.args.iter().cloned()).collect()
    }

    fn protocol(&self, _settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol> {
        Box::new(ScriptProtocol {
            prompt: context.prompt.to_owned(),
            turn: ScriptTurn::None,
            lines: Lines::default(),
        })
    }

    fn sign_in_hint(&self, _settings: &AgentSettings) -> String {
        "the scripted agent needs no sign-in".to_owned()
    }

    fn abilities(&self, settings: &AgentSettings) -> Abilities {
        let as_written = Ability::Yes("as its script has it");
        Abilities { tokens: as_written, cost: as_written, ..Abilities::least(self.resuming(settings)) }
    }

    fn refuses_permission(&self, permission: Permission) -> Option<&'static str> {
        permission.forbids_commands().then_some("it follows its script: leave `permission` out")
    }

    fn restriction(&self) -> Restriction {
        Restriction::NotNeeded
    }
}

struct ScriptProtocol {
    prompt: String,
    turn: ScriptTurn,
    lines: Lines,
}

/// How far the agent's last turn got.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ScriptTurn {
    None,
    Running,
    Ended(TurnStop),
}

impl Conversation for ScriptProtocol {
    fn lines(&mut self) -> &mut Lines {
        &mut self.lines
    }

    fn read(&mut self, line: &str) -> Reading {
        let event = serde_json::from_str(line).map_err(|_| Unknown("not an event".to_owned()))?;
        match &event {
            AgentEvent::TurnStarted => self.turn = ScriptTurn::Running,
            AgentEvent::TurnEnded(end) => self.turn = ScriptTurn::Ended(end.stop.clone()),
            _ => {}
        }
        Ok(vec![Action::emit(event)])
    }
}

impl Protocol for ScriptProtocol {
    fn start(&mut self) -> Vec<Action> {
        vec![Action::Write(line(&json!({"prompt": self.prompt}))), Action::CloseStdin]
    }

    fn on_frame(&mut self, frame: Frame<'_>) -> Vec<Action> {
        self.read_frame(frame)
    }

    fn on_exit(&mut self, exit: &ProcessEnd) -> (Vec<Action>, End) {
        (self.lines.rest(), self.end(exit))
    }
}

impl ScriptProtocol {
    fn end(&self, exit: &ProcessEnd) -> End {
        let how = exit.how();
        let message = match &self.turn {
            ScriptTurn::Ended(TurnStop::Done) if exit.code == Some(0) && exit.signal.is_none() => {
                return End::Completed;
            }
            ScriptTurn::Ended(TurnStop::Done) => format!("{how} after its turn"),
            ScriptTurn::Ended(TurnStop::Interrupted) => format!("interrupted; {how}"),
            ScriptTurn::Ended(TurnStop::Failed { reason, .. }) => format!("{reason}; {how}"),
            ScriptTurn::Running => format!("{how} in the middle of a turn"),
            ScriptTurn::None => format!("{how} before any turn"),
        };
        let stderr = exit.stderr_tail.trim();
        End::Crashed { message: if stderr.is_empty() { message } else { format!("{message}: {stderr}") } }
    }
}
