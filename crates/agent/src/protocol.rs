//! The engine's only interface to agents.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use towline_core::{
    AgentEvent, AttemptId, End, LaunchProblem, MessageNo, MicroUsd, Reply, SessionId, SessionPlan, ToolCall,
    TurnEnd, TurnStop, Usage, Words,
};

use crate::abilities::Abilities;
use crate::environment::{Environment, Extra, environment};
use crate::own_files::OwnFiles;
use crate::settings::{AgentSettings, Permission};
use crate::sign_in::SignIn;
use crate::text;
use crate::version::{TestedVersions, Version};

/// The usual [`Agent::exit_patience`].
pub(crate) const EXIT_PATIENCE: Duration = Duration::from_secs(6);

/// A kind of agent: how to start it and how to read its output.
pub trait Agent: Send + Sync {
    /// The process to start.
    fn plan(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> LaunchPlan {
        let mut env = self.environment(settings, context.environment);
        env.extend(context.towline.clone());
        LaunchPlan { argv: self.argv(settings, context), env, stdio: self.stdio(settings) }
    }

    /// Program and arguments, for fresh and resumed sessions alike. The prompt is not among them, unless the settings
    /// require it.
    fn argv(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String>;

    /// Whether the session that a person opens has the MCP servers of the settings.
    fn interactive_has_mcp(&self) -> bool {
        false
    }

    /// The command that opens a conversation for a person at a terminal; `None` if the agent has no screen of its own, or
    /// does not find its conversations there.
    fn interactive(
        &self,
        _settings: &AgentSettings,
        _session: &SessionId,
        _model: Option<&str>,
    ) -> Option<Vec<String>> {
        None
    }

    /// How its standard streams are connected.
    fn stdio(&self, _settings: &AgentSettings) -> Stdio {
        Stdio::Pipes
    }

    /// The conversation with that process.
    fn protocol(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol>;

    /// The command that signs a person in, for when the credentials are refused.
    fn sign_in_hint(&self, settings: &AgentSettings) -> String;

    /// What shows that it is signed in, given this environment. By default no sign-in is needed.
    fn sign_in(&self, _settings: &AgentSettings, _environment: &Environment) -> SignIn {
        SignIn::NotNeeded
    }

    /// The directories in which it keeps files of its user, with this environment. By default none is known.
    fn own_files(&self, _settings: &AgentSettings, _environment: &Environment) -> Vec<OwnFiles> {
        Vec::new()
    }

    /// Its environment, selected from Towline's own, before Towline adds its variables. By default what every program
    /// needs.
    fn environment(&self, settings: &AgentSettings, inherited: &Environment) -> Environment {
        environment(settings, inherited, &Extra::default())
    }

    /// The address of its model API for messages: scheme, host and port alone. `None` if unknown.
    fn provider(&self, _settings: &AgentSettings, _environment: &Environment) -> Option<String> {
        None
    }

    /// The fix if it refuses to start as root; `None` if it does not refuse.
    fn refuses_root(&self, _settings: &AgentSettings, _environment: &Environment) -> Option<&'static str> {
        None
    }

    /// How long it may print nothing before it is ended, once its turn is over and its input is closed.
    fn exit_patience(&self, _settings: &AgentSettings) -> Duration {
        EXIT_PATIENCE
    }

    /// The command that prints its version; `None` if it is part of Towline, or any program.
    fn version_command(&self, _settings: &AgentSettings) -> Option<Vec<String>> {
        None
    }

    /// The version in the output of that command.
    fn version(&self, _output: &str) -> Option<Version> {
        None
    }

    /// The versions that Towline is tested with; `None` if that does not matter.
    fn tested(&self, _settings: &AgentSettings) -> Option<TestedVersions> {
        None
    }

    /// How to install the program, for people; `None` if there is nothing to install.
    fn install_hint(&self, _settings: &AgentSettings) -> Option<&'static str> {
        None
    }

    /// Its abilities with these settings, for people; the program is not run for that. By default the least that any
    /// agent can do.
    fn abilities(&self, settings: &AgentSettings) -> Abilities {
        Abilities::least(self.resuming(settings))
    }

    /// Whether a conversation can be resumed in another process. Prompts depend on it: one that contains only what is
    /// new is useless in a new conversation.
    fn resuming(&self, _settings: &AgentSettings) -> Resuming {
        Resuming::Possible
    }

    /// Whether the prompt must be in its file before the process starts ([`LaunchContext::prompt_file`]).
    fn reads_prompt_file(&self, _settings: &AgentSettings) -> bool {
        false
    }

    /// Whether it is started by a command from the settings; otherwise it is part of Towline.
    fn needs_command(&self) -> bool {
        true
    }

    /// Settings that only agents of this kind have.
    fn own_settings(&self) -> &'static [&'static str] {
        &[]
    }

    /// Settings that have no effect on agents of this kind, and are therefore refused.
    fn refused_settings(&self) -> &'static [RefusedSettings] {
        &[]
    }

    /// What to do instead if this kind cannot enforce a permission; `None` if it can.
    fn refuses_permission(&self, _permission: Permission) -> Option<&'static str> {
        None
    }

    /// How a person can restrict what it may do.
    fn restriction(&self) -> Restriction {
        Restriction::BySettings
    }

    /// Whether it reports an unknown price of its model by itself.
    fn reports_unknown_price(&self) -> bool {
        false
    }

    /// Why it cannot be started with this prompt.
    fn refuses(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Option<LaunchProblem> {
        let (server, name) = settings.missing_variable(context.environment)?;
        let message = format!(
            "the MCP server `{server}` needs the variable {name}, which is not set; set it, and retry"
        );
        Some(LaunchProblem::Other { message })
    }

    /// Whether it can be given MCP servers that are reached over HTTP.
    fn takes_http_servers(&self) -> bool {
        true
    }
}

/// Settings that a kind refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedSettings {
    pub keys: &'static [&'static str],
    /// What to do instead.
    pub fix: &'static str,
}

/// How an agent is restricted to less than its user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restriction {
    /// By `permission`, `allow` and `deny`.
    BySettings,
    /// Not by Towline; the text explains what can be done instead.
    Otherwise(&'static str),
    /// It does only what its user wrote down.
    NotNeeded,
}

/// Whether conversations outlive the agent's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resuming {
    /// Possible, as far as is known before the agent runs.
    Possible,
    /// Each process begins a new conversation.
    Never,
}

/// What one attempt needs beyond the agent's settings.
#[derive(Debug, Clone)]
pub struct LaunchContext<'a> {
    /// The conversation to start or to resume.
    pub session: &'a SessionPlan,
    /// Where the agent works.
    pub directory: &'a str,
    /// The attempt's id, from which the ids of messages are derived.
    pub attempt: AttemptId,
    /// Summarise the conversation with this focus before the prompt.
    pub compact: Option<&'a str>,
    /// The first prompt.
    pub prompt: &'a str,
    /// The file of the first prompt, for agents that read it from a file.
    pub prompt_file: &'a str,
    /// Calls that a person has permitted.
    pub permitted: &'a [ToolCall],
    /// The model, if the goal names one.
    pub model: Option<&'a str>,
    /// [`Agent::provider`] when the attempt began.
    pub provider: Option<&'a str>,
    /// Towline's own environment, from which the agent gets the allowed variables.
    pub environment: &'a Environment,
    /// Towline's own variables for this attempt (`TOWLINE_GOAL` and the like).
    pub towline: &'a Environment,
}

impl<'a> LaunchContext<'a> {
    /// The earlier conversation to resume.
    pub(crate) fn resumed(&self) -> Option<&'a SessionId> {
        match self.session {
            SessionPlan::Resume(id) => Some(id),
            SessionPlan::Fresh(_) => None,
        }
    }

    /// The arguments that name the conversation, with this option for a new one.
    pub(crate) fn session_option(&self, new: &str) -> [String; 2] {
        match self.session {
            SessionPlan::Fresh(id) => [new.to_owned(), id.to_string()],
            SessionPlan::Resume(id) => ["--resume".to_owned(), id.to_string()],
        }
    }
}

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchPlan {
    /// Program and arguments; never a secret, and never the prompt unless the settings require it.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Environment,
    /// What its standard streams are.
    pub stdio: Stdio,
}

/// How a process is connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stdio {
    /// A pipe for each standard stream.
    #[default]
    Pipes,
    /// Pipes, except standard output, which goes to a file: for programs that lose the end of their output in a pipe
    /// when they exit.
    OutputFile,
    /// A terminal, in which all output is standard output.
    Terminal(WindowSize),
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    pub columns: u16,
    pub rows: u16,
}

impl WindowSize {
    /// The default size.
    pub const USUAL: Self = Self { columns: 120, rows: 40 };
}

/// A conversation with a running agent.
pub trait Protocol: Send {
    /// Reads a line that the agent was sent before the log is read again. Called in order, before [`Self::start`],
    /// because the log of output has neither the operator's messages nor the answers.
    fn recall(&mut self, _sent: &[u8]) {}

    /// Sets the usage of a resumed conversation in all earlier attempts. Called before [`Self::start`], for agents
    /// that report only the sum.
    fn used_before(&mut self, _used: Usage) {}

    /// The actions as soon as the process runs.
    fn start(&mut self) -> Vec<Action>;

    /// Handles a line of its standard output.
    fn on_frame(&mut self, frame: Frame<'_>) -> Vec<Action>;

    /// Handles a request of the operator. By default nothing happens.
    fn on_steer(&mut self, _steer: Steer) -> Vec<Action> {
        Vec::new()
    }

    /// Whether the message of a refused permission reaches the agent together with the refusal.
    fn refusal_words(&self) -> Words {
        Words::Sent
    }

    /// The last actions and the classified end.
    fn on_exit(&mut self, exit: &ProcessEnd) -> (Vec<Action>, End);
}

/// A piece of the agent's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line without its line end.
    Line(&'a [u8]),
    /// A line above the limit: stored on disk, not read.
    TooLong {
        /// Its length in bytes.
        length: u64,
    },
}

impl<'a> Frame<'a> {
    /// The line as text, with invalid UTF-8 replaced. The error describes a line above the limit.
    pub(crate) fn text(self) -> Result<Cow<'a, str>, String> {
        match self {
            Self::Line(bytes) => {
                let bytes = bytes.trim_ascii();
                // Validating is much faster than replacing, and nearly always enough.
                Ok(str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed))
            }
            Self::TooLong { length } => Err(format!("a line of {length} bytes")),
        }
    }
}

/// What a protocol requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Record an event.
    Emit {
        event: AgentEvent,
        /// The tool call of the subagent that it belongs to.
        parent: Option<String>,
    },
    /// Write this to the agent's standard input.
    Write(Vec<u8>),
    /// Close the agent's standard input.
    CloseStdin,
}

impl Action {
    /// Records an event of the agent itself.
    pub const fn emit(event: AgentEvent) -> Self {
        Self::Emit { event, parent: None }
    }

    /// Records the end of a turn; `cost` is the total of the session, if the agent reports it.
    pub(crate) const fn turn_ended(stop: TurnStop, text: String, cost: Option<MicroUsd>) -> Self {
        Self::emit(AgentEvent::TurnEnded(TurnEnd {
            stop,
            text,
            structured: None,
            inner_turns: None,
            reported_cost: cost,
        }))
    }

    /// Records a notice.
    pub(crate) fn notice(text: impl Into<String>) -> Self {
        Self::emit(AgentEvent::Notice { text: text.into() })
    }

    /// Records that a new session was started instead of a resumed one.
    pub(crate) fn not_resumed(asked: &SessionId, started: &SessionId) -> Self {
        Self::notice(format!(
            "the agent did not resume session {asked}: it started session {started} instead"
        ))
    }
}

/// What the operator requests of a running agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steer {
    /// End the current turn.
    Interrupt,
    /// Send a message while the agent works. Nothing is written if the agent no longer accepts it.
    /// [`AgentEvent::Heard`] reports that it reached the model.
    Tell { message: MessageNo, text: String },
    /// The answer to a pending request ([`AgentEvent::Asked`]). Nothing is written if the agent no longer waits.
    Answer {
        /// The agent's own id of the request.
        request: String,
        reply: Reply,
    },
}

/// How the agent's process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessEnd {
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The end of its stderr.
    pub stderr_tail: String,
}

impl ProcessEnd {
    /// How the process ended, for people.
    pub(crate) fn how(&self) -> String {
        match (self.code, self.signal) {
            (_, Some(signal)) => format!("ended by signal {signal}"),
            (Some(code), None) => format!("exit code {code}"),
            (None, None) => "ended in an unknown way".to_owned(),
        }
    }

    /// How the process ended, what was missing, and the end of its stderr.
    pub(crate) fn without(&self, what: &str) -> String {
        let message = format!("{} without {what}", self.how());
        let words = self.last_words();
        if words.is_empty() { message } else { format!("{message}: {words}") }
    }

    /// The end of stderr, as much as a message quotes.
    pub(crate) fn last_words(&self) -> &str {
        text::tail(self.stderr_tail.trim(), text::STDERR_QUOTE)
    }

    /// A notice about an odd exit after the work was completed.
    pub(crate) fn oddity_after(&self, end: &End) -> Option<String> {
        let how = match (self.code, self.signal) {
            (Some(0), None) => return None,
            (Some(code), None) => format!("exited with code {code}"),
            _ => self.how(),
        };
        let text = format!("the agent finished its turn and then {how}; its result counts");
        (*end == End::Completed).then_some(text)
    }
}
