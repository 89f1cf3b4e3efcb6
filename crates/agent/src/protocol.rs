//! The one way in which the engine sees agents.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use towline_core::{
    AgentEvent, AttemptId, End, LaunchProblem, MessageNo, Reply, SessionId, SessionPlan, ToolCall, Usage,
    Words,
};

use crate::abilities::Abilities;
use crate::environment::{Extra, environment};
use crate::settings::{AgentSettings, Permission};
use crate::sign_in::SignIn;
use crate::text;
use crate::version::{TestedVersions, Version};

/// The usual [`Agent::exit_patience`].
pub(crate) const EXIT_PATIENCE: Duration = Duration::from_secs(6);

/// A kind of agent: how it is started and how it is understood.
pub trait Agent: Send + Sync {
    /// The process to start.
    fn plan(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> LaunchPlan {
        let mut env = self.environment(settings, context.environment);
        env.extend(context.towline.clone());
        LaunchPlan { argv: self.argv(settings, context), env, stdio: self.stdio(settings) }
    }

    /// Program and arguments: the same builder for fresh and resumed sessions. The prompt is not among them, unless the
    /// settings want it there.
    fn argv(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String>;

    /// What its standard streams are.
    fn stdio(&self, _settings: &AgentSettings) -> Stdio {
        Stdio::Pipes
    }

    /// The conversation with that process.
    fn protocol(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol>;

    /// The command that signs a person in, for when the credentials are refused.
    fn sign_in_hint(&self, settings: &AgentSettings) -> String;

    /// What would show that it is signed in, when it is given this environment. Unless a kind knows, it need not be.
    fn sign_in(&self, _settings: &AgentSettings, _environment: &BTreeMap<String, String>) -> SignIn {
        SignIn::NotNeeded
    }

    /// The environment it is given of the one that Towline was started with, before Towline adds its own variables. Unless
    /// a kind needs more, what every program needs.
    fn environment(
        &self,
        settings: &AgentSettings,
        inherited: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        environment(settings, inherited, &Extra::default())
    }

    /// Where it asks the model, for messages: scheme, host and port alone. None if that is not known.
    fn provider(&self, _settings: &AgentSettings, _environment: &BTreeMap<String, String>) -> Option<String> {
        None
    }

    /// The fix where it refuses to start as root; none if it does not refuse.
    fn refuses_root(
        &self,
        _settings: &AgentSettings,
        _environment: &BTreeMap<String, String>,
    ) -> Option<&'static str> {
        None
    }

    /// How long it may say nothing before it is ended, once its turn is over and its input is closed.
    fn exit_patience(&self, _settings: &AgentSettings) -> Duration {
        EXIT_PATIENCE
    }

    /// The command that prints its version; none if it is part of Towline, or may be any program.
    fn version_command(&self, _settings: &AgentSettings) -> Option<Vec<String>> {
        None
    }

    /// The version in what that command printed.
    fn version(&self, _output: &str) -> Option<Version> {
        None
    }

    /// The versions that Towline is tested with; none if that does not matter.
    fn tested(&self, _settings: &AgentSettings) -> Option<TestedVersions> {
        None
    }

    /// How to get the program when it is not there, for people; none if there is nothing to install.
    fn install_hint(&self, _settings: &AgentSettings) -> Option<&'static str> {
        None
    }

    /// What it can do with these settings, for people; nothing is asked of it for that. Unless a kind knows more, as
    /// little as any agent can.
    fn abilities(&self, settings: &AgentSettings) -> Abilities {
        Abilities::least(self.resuming(settings))
    }

    /// Whether a conversation can be gone on with in another process. Whoever composes a prompt has to know: one that
    /// only says what is new is of no use to a new conversation.
    fn resuming(&self, _settings: &AgentSettings) -> Resuming {
        Resuming::Possible
    }

    /// Whether the prompt is to be in its file before the process starts ([`LaunchContext::prompt_file`]).
    fn reads_prompt_file(&self, _settings: &AgentSettings) -> bool {
        false
    }

    /// Whether it is started by a command that the settings name; otherwise it is part of Towline.
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

    /// The way out where agents of this kind cannot be held to a permission; none if they can.
    fn refuses_permission(&self, _permission: Permission) -> Option<&'static str> {
        None
    }

    /// How a person can keep it from doing all that they may do themselves.
    fn restriction(&self) -> Restriction {
        Restriction::BySettings
    }

    /// Whether it reports by itself that the price of its model is unknown.
    fn reports_unknown_price(&self) -> bool {
        false
    }

    /// Why it cannot be started with this prompt.
    fn refuses(&self, _settings: &AgentSettings, _context: &LaunchContext<'_>) -> Option<LaunchProblem> {
        None
    }
}

/// Settings that a kind refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedSettings {
    /// Their keys.
    pub keys: &'static [&'static str],
    /// The way out.
    pub fix: &'static str,
}

/// How an agent is kept from doing all that its user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restriction {
    /// By `permission`, `allow` and `deny`.
    BySettings,
    /// Not by Towline; the words say what can be done instead.
    Otherwise(&'static str),
    /// It does nothing that its user did not write down.
    NotNeeded,
}

/// Whether conversations outlive the agent's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resuming {
    /// As far as is known before it has been asked.
    Possible,
    /// Each process begins anew.
    Never,
}

/// What one attempt needs beyond the agent's settings.
#[derive(Debug, Clone)]
pub struct LaunchContext<'a> {
    /// The conversation to start or to go on with.
    pub session: &'a SessionPlan,
    /// Where the agent works.
    pub directory: &'a str,
    /// The attempt's id, from which ids of single messages are made.
    pub attempt: AttemptId,
    /// Before the prompt, the conversation is to be summarised with this in mind.
    pub compact: Option<&'a str>,
    /// The first prompt.
    pub prompt: &'a str,
    /// Where the first prompt is for agents that read it from a file.
    pub prompt_file: &'a str,
    /// Calls that a person has permitted.
    pub permitted: &'a [ToolCall],
    /// The model, when the goal names one.
    pub model: Option<&'a str>,
    /// [`Agent::provider`] when the attempt began.
    pub provider: Option<&'a str>,
    /// The environment Towline itself was started with; the agent gets what it is allowed of it.
    pub environment: &'a BTreeMap<String, String>,
    /// Towline's own variables for this attempt (`TOWLINE_GOAL` and the like).
    pub towline: &'a BTreeMap<String, String>,
}

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchPlan {
    /// Program and arguments; never a secret, and never the prompt unless the settings want it there.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: BTreeMap<String, String>,
    /// What its standard streams are.
    pub stdio: Stdio,
}

/// How a process is connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stdio {
    /// By a pipe for each of its standard streams.
    #[default]
    Pipes,
    /// By pipes, but for its standard output, which goes straight to a file: for programs that lose the end of what they
    /// print to a pipe when they exit.
    OutputFile,
    /// By a terminal, in which everything that it prints is its standard output.
    Terminal(WindowSize),
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    /// Its width.
    pub columns: u16,
    /// Its height.
    pub rows: u16,
}

impl WindowSize {
    /// The size that is taken when none is said.
    pub const USUAL: Self = Self { columns: 120, rows: 40 };
}

/// A conversation with a running agent.
pub trait Protocol: Send {
    /// A line that the agent was sent before this reading of its output began, in the order of then. Told before the
    /// [start](Self::start): what the operator said, and which answers were given, is nowhere else.
    fn recall(&mut self, _sent: &[u8]) {}

    /// What a conversation that is resumed had used in all of its attempts before. Told before the
    /// [start](Self::start), for agents that report only the sum.
    fn used_before(&mut self, _used: Usage) {}

    /// What to write as soon as the process runs.
    fn start(&mut self) -> Vec<Action>;

    /// What a line of its standard output means.
    fn on_frame(&mut self, frame: Frame<'_>) -> Vec<Action>;

    /// How to pass on what the operator wants. Unless a protocol listens once it has its prompt, not at all.
    fn on_steer(&mut self, _steer: Steer) -> Vec<Action> {
        Vec::new()
    }

    /// Whether the words of a refused permission reach the agent together with the refusal.
    fn refusal_words(&self) -> Words {
        Words::Sent
    }

    /// What its end means: last events, and the classified end.
    fn on_exit(&mut self, exit: &ProcessEnd) -> (Vec<Action>, End);
}

/// A piece of the agent's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line without its line end.
    Line(&'a [u8]),
    /// A line beyond the cap: kept on disk, not read.
    TooLong {
        /// Its length in bytes.
        length: u64,
    },
}

impl<'a> Frame<'a> {
    /// The line as text, with what is none replaced; of a line beyond the cap, words for it.
    pub(crate) fn text(self) -> Result<Cow<'a, str>, String> {
        match self {
            Self::Line(bytes) => {
                let bytes = bytes.trim_ascii();
                // To check a text is much faster than to mend it, and nearly always enough.
                Ok(str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed))
            }
            Self::TooLong { length } => Err(format!("a line of {length} bytes")),
        }
    }
}

/// What a protocol wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Record this.
    Emit {
        /// What happened.
        event: AgentEvent,
        /// The tool call of a subagent that it happened below.
        parent: Option<String>,
    },
    /// Write this to the agent's standard input.
    Write(Vec<u8>),
    /// Close the agent's standard input.
    CloseStdin,
}

impl Action {
    /// Records what the agent itself did.
    pub const fn emit(event: AgentEvent) -> Self {
        Self::Emit { event, parent: None }
    }

    /// Records something worth knowing.
    pub(crate) fn notice(text: impl Into<String>) -> Self {
        Self::emit(AgentEvent::Notice { text: text.into() })
    }

    /// Records that a new session was started in the place of one that was to be resumed.
    pub(crate) fn not_resumed(asked: &SessionId, started: &SessionId) -> Self {
        Self::notice(format!(
            "the agent did not resume session {asked}: it started session {started} instead"
        ))
    }
}

/// What the operator wants of a running agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steer {
    /// Stop what you are doing.
    Interrupt,
    /// Hear this while you work. Nothing is written when the agent cannot hear it any more; that it was heard is an
    /// event ([`AgentEvent::Heard`]).
    Tell {
        /// Which of the operator's messages.
        message: MessageNo,
        /// The words.
        text: String,
    },
    /// The answer to a request that the agent waits for ([`AgentEvent::Asked`]). Nothing is written when it does not
    /// wait any more.
    Answer {
        /// The agent's own id of the request.
        request: String,
        /// The answer.
        reply: Reply,
    },
}

/// How the agent's process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessEnd {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The end of what it printed to stderr.
    pub stderr_tail: String,
    /// Why it could not even be started.
    pub spawn: Option<LaunchProblem>,
}

impl ProcessEnd {
    /// How the process ended, in words.
    pub(crate) fn how(&self) -> String {
        match (self.code, self.signal) {
            (_, Some(signal)) => format!("ended by signal {signal}"),
            (Some(code), None) => format!("exit code {code}"),
            (None, None) => "ended in an unknown way".to_owned(),
        }
    }

    /// How the process ended, what was missing then, and its last words on stderr.
    pub(crate) fn without(&self, what: &str) -> String {
        let message = format!("{} without {what}", self.how());
        let words = self.last_words();
        if words.is_empty() { message } else { format!("{message}: {words}") }
    }

    /// Its last words on stderr, as many as a message quotes.
    pub(crate) fn last_words(&self) -> &str {
        text::tail(self.stderr_tail.trim(), text::STDERR_QUOTE)
    }

    /// What is to be told of a process that ended oddly although its work had come to a good end.
    pub(crate) fn oddity_after(&self, end: &End) -> Option<String> {
        let how = match (self.code, self.signal) {
            (Some(0), None) => return None,
            (Some(code), None) => format!("exited with code {code}"),
            _ => self.how(),
        };
        let text = format!("the agent finished its turn and then {how}; its result is kept");
        (*end == End::Completed).then_some(text)
    }
}
