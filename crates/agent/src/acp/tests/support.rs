//! Settings, contexts and recordings for the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use towline_core::{
    AgentEvent, AttemptId, ClockLimits, End, MessageNo, SessionId, SessionLimits, SessionPlan,
};

use crate::protocol::{Action, Frame, LaunchContext, ProcessEnd, Protocol, Steer, agent};
use crate::settings::{AgentSettings, CliSettings, Kind, McpServer, Permission};

pub(super) const PROMPT: &str = "make the tests pass";

pub(super) fn settings(program: &str) -> AgentSettings {
    let minute = Duration::from_secs(60);
    AgentSettings {
        kind: Kind::Acp,
        command: vec![program.into()],
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
        sessions: SessionLimits::default(),
        clocks: ClockLimits { startup: minute, idle: minute, turn: minute },
        stop_grace: minute,
        cli: CliSettings::default(),
    }
}

pub(super) fn fresh() -> SessionPlan {
    SessionPlan::Fresh(SessionId::new("ours"))
}

pub(super) fn resume(id: &str) -> SessionPlan {
    SessionPlan::Resume(SessionId::new(id))
}

/// A launch with nothing special about it.
pub(super) fn launch<'a>(session: &'a SessionPlan, none: &'a BTreeMap<String, String>) -> LaunchContext<'a> {
    let attempt: AttemptId =
        serde_json::from_str(r#""0198c0de-0000-7000-8000-000000000001""#).expect("an id");
    LaunchContext {
        directory: "/workspace",
        session,
        attempt,
        compact: None,
        prompt: PROMPT,
        prompt_file: "/attempt/prompt",
        permitted: &[],
        model: None,
        environment: none,
        towline: none,
    }
}

pub(super) fn protocol(settings: &AgentSettings, session: &SessionPlan) -> Box<dyn Protocol> {
    let none = BTreeMap::new();
    agent(Kind::Acp).protocol(settings, &launch(session, &none))
}

pub(super) const HELLO: &str = r#"{"jsonrpc":"2.0","id":"initialize","result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}}},"agentInfo":{"name":"x","version":"1.2"}}}"#;
pub(super) const SESSION: &str = r#"{"jsonrpc":"2.0","id":"session","result":{"sessionId":"s"}}"#;

/// A protocol that has sent its prompt and is in its session.
pub(super) fn in_turn(settings: &AgentSettings) -> Box<dyn Protocol> {
    let mut protocol = protocol(settings, &fresh());
    protocol.start();
    feed(&mut *protocol, HELLO);
    let actions = feed(&mut *protocol, SESSION);
    assert_eq!(written(&actions).len(), 1, "{actions:?}");
    protocol
}

pub(super) fn feed(protocol: &mut dyn Protocol, line: &str) -> Vec<Action> {
    protocol.on_frame(Frame::Line(line.as_bytes()))
}

/// Feeds JSON.
pub(super) fn give(protocol: &mut dyn Protocol, line: &Value) -> Vec<Action> {
    feed(protocol, &line.to_string())
}

pub(super) fn update(update: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
}

pub(super) fn says(text: &str) -> Value {
    update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}))
}

pub(super) fn answered(id: &str, stop: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": stop}})
}

pub(super) fn prompt(id: &str, text: &str) -> Value {
    let prompt = [json!({"type": "text", "text": text})];
    json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": {"sessionId": "s", "prompt": prompt}})
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

pub(super) fn exited(code: i32) -> ProcessEnd {
    ProcessEnd { code: Some(code), ..ProcessEnd::default() }
}

pub(super) fn end(protocol: &mut dyn Protocol) -> End {
    protocol.on_exit(&exited(0)).1
}

/// A conversation with a real agent, kept on disk.
pub(super) struct Recording {
    pub(super) agent: String,
    pub(super) name: String,
    pub(super) lines: Vec<String>,
    pub(super) exit: ProcessEnd,
}

impl Recording {
    pub(super) fn all() -> Vec<Self> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/acp");
        let mut files: Vec<_> = ["gemini", "opencode"]
            .into_iter()
            .flat_map(|agent| fs::read_dir(folder.join(agent)).expect("the recordings are there"))
            .map(|file| file.expect("readable").path())
            .collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "ndjson"));
        assert!(files.len() > 40, "too few recordings: these tests would prove little");
        files.sort();
        files.into_iter().map(Self::load).collect()
    }

    fn load(file: PathBuf) -> Self {
        let code = fs::read_to_string(file.with_extension("rc")).expect("an exit code");
        let code: i32 = code.trim().parse().expect("a number");
        let part = |name: Option<&std::ffi::OsStr>| name.expect("a name").to_string_lossy().into_owned();
        let exit = match code {
            137 => ProcessEnd { signal: Some(9), ..ProcessEnd::default() },
            code => exited(code),
        };
        Self {
            agent: part(file.parent().and_then(std::path::Path::file_name)),
            name: part(file.file_stem()),
            lines: fs::read_to_string(&file).expect("readable").lines().map(str::to_owned).collect(),
            exit,
        }
    }

    pub(super) fn full_name(&self) -> String {
        format!("{}_{}", self.agent, self.name)
    }

    /// What the agent wrote.
    pub(super) fn output(&self) -> Vec<&str> {
        self.lines.iter().map(String::as_str).filter(|line| !line.starts_with(">> ")).collect()
    }

    /// What was written to it.
    pub(super) fn input(&self) -> Vec<Value> {
        let sent = self.lines.iter().filter_map(|line| line.strip_prefix(">> "));
        sent.map(|line| serde_json::from_str(line).expect("JSON went in")).collect()
    }

    fn sent(&self, id: &str) -> Option<Value> {
        self.input().into_iter().find(|message| message["id"] == id)
    }

    /// The session that was asked for when it was recorded.
    fn session(&self) -> SessionPlan {
        let asked = self.sent("session").expect("a session was asked for");
        asked["params"]["sessionId"].as_str().map_or_else(fresh, resume)
    }

    /// The settings it was recorded with.
    fn settings(&self) -> AgentSettings {
        let settings = settings(&self.agent);
        let deny = |deny: &str| vec![deny.to_owned()];
        let fake = McpServer { command: vec!["/usr/bin/python3".into(), "/opt/agent/mcp.py".into()] };
        let long = McpServer { command: vec!["/usr/bin/python3".into(), "/scratch".into()] };
        match (self.agent.as_str(), self.name.as_str()) {
            (_, "rejected") => AgentSettings { permission: Permission::Deny, ..settings },
            ("gemini", "mcp") => {
                AgentSettings { mcp: [("fake".to_owned(), fake)].into(), deny: deny("Nothing"), ..settings }
            }
            (_, "mcp") => AgentSettings { mcp: [("fake".to_owned(), fake)].into(), ..settings },
            ("gemini", "long_yolo") => AgentSettings { mcp: [("fake".to_owned(), long)].into(), ..settings },
            // A deny list means that the agent has to ask.
            ("gemini", name) if !matches!(name, "yolo" | "interrupted") => {
                AgentSettings { deny: deny("Nothing"), ..settings }
            }
            _ => settings,
        }
    }

    pub(super) fn protocol(&self) -> Box<dyn Protocol> {
        let (session, none) = (self.session(), BTreeMap::new());
        let prompt = self.sent("prompt").map(|prompt| text(&prompt)).unwrap_or_default();
        let compact = self.sent("compact").map(|command| text(&command));
        let compact = compact.as_deref().and_then(|command| command.strip_prefix("/compact "));
        let context = LaunchContext { prompt: &prompt, compact, ..launch(&session, &none) };
        agent(Kind::Acp).protocol(&self.settings(), &context)
    }

    /// The operator's words, which were said while the first turn was at work.
    fn tells(&self) -> Vec<Steer> {
        let tell = |message: &Value| {
            let number = message["id"].as_str()?.strip_prefix("tell-")?.parse().expect("a number");
            Some(Steer::Tell { message: MessageNo(number), text: text(message) })
        };
        self.input().iter().filter_map(tell).collect()
    }

    pub(super) fn play(&self) -> (Vec<Action>, End) {
        let mut protocol = self.protocol();
        let mut actions = protocol.start();
        for line in &self.lines {
            match line.strip_prefix(">> ") {
                None => actions.extend(feed(&mut *protocol, line)),
                Some(sent) if sent.contains("\"session/cancel\"") => {
                    actions.extend(protocol.on_steer(Steer::Interrupt));
                }
                Some(sent) if sent.contains("\"id\": \"prompt\"") => {
                    for tell in self.tells() {
                        actions.extend(protocol.on_steer(tell));
                    }
                }
                Some(_) => {}
            }
        }
        let (last, end) = protocol.on_exit(&self.exit);
        actions.extend(last);
        (actions, end)
    }
}

fn text(prompt: &Value) -> String {
    prompt["params"]["prompt"][0]["text"].as_str().expect("words").to_owned()
}

/// Actions as a person reads them, one per line.
pub(super) fn readable(actions: &[Action], end: &End) -> String {
    let show = |action: &Action| match action {
        Action::Emit { event, .. } => format!("     {}", json_of(event)),
        Action::Write(bytes) => format!("<-   {}", String::from_utf8_lossy(bytes).trim_end()),
        Action::CloseStdin => "<-   (closed)".to_owned(),
    };
    let mut lines: Vec<_> = actions.iter().map(show).collect();
    lines.push(format!("end  {}", json_of(end)));
    lines.join("\n")
}

fn json_of(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("serialises")
}
