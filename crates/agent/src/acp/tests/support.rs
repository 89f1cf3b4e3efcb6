//! Settings, contexts and recordings for the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use towline_core::{End, MessageNo, SessionId, SessionPlan};

use crate::protocol::{Action, LaunchContext, ProcessEnd, Protocol, Steer, agent};
use crate::settings::{AgentSettings, Kind, McpServer, Permission};
use crate::testing::{Damageable, plain_launch, plain_settings};
pub(super) use crate::testing::{events, exited, feed, readable, resume, written};

pub(super) const PROMPT: &str = "make the tests pass";

pub(super) fn settings(program: &str) -> AgentSettings {
    plain_settings(Kind::Acp, &[program])
}

pub(super) fn fresh() -> SessionPlan {
    SessionPlan::Fresh(SessionId::new("ours"))
}

/// A launch with nothing special about it.
pub(super) fn launch<'a>(session: &'a SessionPlan, none: &'a BTreeMap<String, String>) -> LaunchContext<'a> {
    plain_launch(session, PROMPT, none)
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

impl Damageable for Recording {
    fn title(&self) -> String {
        self.full_name()
    }

    fn written_lines(&self) -> Vec<&str> {
        self.output()
    }

    fn process_end(&self) -> &ProcessEnd {
        &self.exit
    }

    fn new_protocol(&self) -> Box<dyn Protocol> {
        self.protocol()
    }

    fn is_clean_end(line: &str) -> bool {
        serde_json::from_str::<Value>(line).is_ok_and(|frame| frame["result"]["stopReason"] == "end_turn")
    }

    fn clean_ends_wanted(&self) -> usize {
        if self.name == "compact" { 2 } else { 1 }
    }
}

fn text(prompt: &Value) -> String {
    prompt["params"]["prompt"][0]["text"].as_str().expect("words").to_owned()
}
