//! Settings, contexts and recordings for the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use towline_core::{AgentEvent, ClockLimits, End, SessionId, SessionPlan};

use crate::protocol::{Action, Frame, LaunchContext, ProcessEnd, Protocol, agent};
use crate::settings::{AgentSettings, Kind, Permission};

pub(super) const PROMPT: &str = "-p is no flag here: make the tests pass";

pub(super) fn settings() -> AgentSettings {
    let minute = Duration::from_secs(60);
    AgentSettings {
        kind: Kind::Claude,
        command: vec!["claude".into()],
        model: None,
        permission: Permission::Bypass,
        allow: vec![],
        deny: vec![],
        system_append: None,
        dirs: vec![],
        max_turns: None,
        mcp: BTreeMap::new(),
        args: vec![],
        env: BTreeMap::new(),
        pass_env: vec![],
        clocks: ClockLimits { startup: minute, idle: minute, turn: minute },
        stop_grace: minute,
    }
}

pub(super) fn fresh(id: &str) -> SessionPlan {
    SessionPlan::Fresh(SessionId::new(id))
}

pub(super) fn resume(id: &str) -> SessionPlan {
    SessionPlan::Resume(SessionId::new(id))
}

pub(super) fn protocol(settings: &AgentSettings, session: &SessionPlan) -> Box<dyn Protocol> {
    let none = BTreeMap::new();
    let context = LaunchContext { session, prompt: PROMPT, model: None, environment: &none, towline: &none };
    agent(settings.kind).protocol(settings, &context)
}

/// A protocol that has sent its prompt and is in its session.
pub(super) fn in_session(settings: &AgentSettings) -> Box<dyn Protocol> {
    let mut protocol = protocol(settings, &fresh("s"));
    protocol.start();
    feed(&mut *protocol, r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/workspace"}"#);
    protocol
}

pub(super) fn feed(protocol: &mut dyn Protocol, line: &str) -> Vec<Action> {
    protocol.on_frame(Frame::Line(line.as_bytes()))
}

pub(super) fn events(actions: &[Action]) -> Vec<AgentEvent> {
    let event = |action: &Action| match action {
        Action::Emit { event, .. } => Some(event.clone()),
        _ => None,
    };
    actions.iter().filter_map(event).collect()
}

/// What is written to the agent, as JSON.
pub(super) fn written(actions: &[Action]) -> Vec<Value> {
    let write = |action: &Action| match action {
        Action::Write(bytes) => Some(serde_json::from_slice(bytes).expect("we write JSON")),
        _ => None,
    };
    actions.iter().filter_map(write).collect()
}

/// A conversation with the real CLI, kept on disk.
pub(super) struct Recording {
    pub(super) name: String,
    pub(super) lines: Vec<String>,
    pub(super) exit: ProcessEnd,
}

impl Recording {
    pub(super) fn all() -> Vec<Self> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/claude");
        let mut files: Vec<_> = fs::read_dir(folder)
            .expect("the recordings are there")
            .map(|file| file.expect("readable").path())
            .collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "ndjson"));
        assert!(!files.is_empty(), "no recordings: these tests would prove nothing");
        files.sort();
        files.into_iter().map(Self::load).collect()
    }

    fn load(file: PathBuf) -> Self {
        let beside = |extension| fs::read_to_string(file.with_extension(extension));
        let code = beside("rc").map_or(0, |code| code.trim().parse().expect("an exit code"));
        let stderr_tail = beside("stderr").unwrap_or_default();
        Self {
            name: file.file_stem().expect("a name").to_string_lossy().into_owned(),
            lines: fs::read_to_string(&file).expect("readable").lines().map(str::to_owned).collect(),
            exit: ProcessEnd { code: Some(code), stderr_tail, ..ProcessEnd::default() },
        }
    }

    /// What the CLI wrote.
    pub(super) fn output(&self) -> Vec<&str> {
        self.lines.iter().map(String::as_str).filter(|line| !line.starts_with(">> ")).collect()
    }

    /// What was written to it.
    pub(super) fn input(&self) -> Vec<Value> {
        let sent = self.lines.iter().filter_map(|line| line.strip_prefix(">> "));
        sent.map(|line| serde_json::from_str(line).expect("JSON went in")).collect()
    }

    pub(super) fn results(&self) -> Vec<Value> {
        let frames = self.output().into_iter().map(|line| serde_json::from_str(line).expect("JSON came out"));
        frames.filter(|frame: &Value| frame["type"] == "result").collect()
    }

    /// The session that was asked for when it was recorded.
    fn session(&self) -> SessionPlan {
        match self.name.as_str() {
            "resume" | "compact" | "resume_elsewhere" => resume("22222222-2222-4222-8222-222222222222"),
            "resume_bogus" => resume("33333333-3333-4333-8333-333333333333"),
            _ => fresh("11111111-1111-4111-8111-111111111111"),
        }
    }

    /// The permissions it was recorded with.
    fn settings(&self) -> AgentSettings {
        let allow = if self.name == "control" { vec!["Write".to_owned()] } else { vec![] };
        let permission = match self.name.as_str() {
            "control" | "denied_by_answer" | "tool_denied" => Permission::Deny,
            _ => Permission::Bypass,
        };
        let deny = if self.name == "denied_by_rule" { vec!["Bash(rm *)".to_owned()] } else { vec![] };
        AgentSettings { allow, deny, permission, ..settings() }
    }

    pub(super) fn protocol(&self) -> Box<dyn Protocol> {
        protocol(&self.settings(), &self.session())
    }

    pub(super) fn play(&self) -> (Vec<Action>, End) {
        play(&mut *self.protocol(), &self.output(), &self.exit)
    }
}

/// The whole conversation: all that the protocol wants done, and the end.
pub(super) fn play(protocol: &mut dyn Protocol, lines: &[&str], exit: &ProcessEnd) -> (Vec<Action>, End) {
    let mut actions = protocol.start();
    for line in lines {
        actions.extend(feed(protocol, line));
    }
    let (last, end) = protocol.on_exit(exit);
    actions.extend(last);
    (actions, end)
}

/// Actions as a person reads them, one per line.
pub(super) fn readable(actions: &[Action], end: &End) -> String {
    let show = |action: &Action| match action {
        Action::Emit { event, parent: None } => format!("     {}", json(event)),
        Action::Emit { event, parent: Some(parent) } => format!("     {} below {parent}", json(event)),
        Action::Write(bytes) => format!("<-   {}", String::from_utf8_lossy(bytes).trim_end()),
        Action::CloseStdin => "<-   (closed)".to_owned(),
    };
    let mut lines: Vec<_> = actions.iter().map(show).collect();
    lines.push(format!("end  {}", json(end)));
    lines.join("\n")
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("serialises")
}
