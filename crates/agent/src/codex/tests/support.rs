//! Settings, contexts and recordings for the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use towline_core::{End, MessageNo, Reply, SessionId, SessionPlan};

use crate::protocol::{Action, LaunchContext, ProcessEnd, Protocol, Steer, agent};
use crate::settings::{AgentSettings, Kind, Permission};
use crate::testing::{Damageable, plain_launch, plain_settings};
pub(super) use crate::testing::{events, exited as exit, feed, readable, resume, written};

pub(super) const PROMPT: &str = "do it";

pub(super) fn settings() -> AgentSettings {
    plain_settings(Kind::Codex, &["codex"])
}

pub(super) fn asking() -> AgentSettings {
    AgentSettings { permission: Permission::Ask, ..settings() }
}

pub(super) fn fresh() -> SessionPlan {
    SessionPlan::Fresh(SessionId::new("unused"))
}

/// A launch with nothing special about it.
pub(super) fn launch<'a>(session: &'a SessionPlan, none: &'a BTreeMap<String, String>) -> LaunchContext<'a> {
    plain_launch(session, PROMPT, none)
}

pub(super) fn protocol(settings: &AgentSettings, session: &SessionPlan) -> Box<dyn Protocol> {
    let none = BTreeMap::new();
    agent(settings.kind).protocol(settings, &launch(session, &none))
}

/// A conversation that goes on after a summary.
pub(super) fn compacting(session: &SessionPlan) -> Box<dyn Protocol> {
    let none = BTreeMap::new();
    let context = LaunchContext { compact: Some("keep the goal in mind"), ..launch(session, &none) };
    agent(Kind::Codex).protocol(&settings(), &context)
}

pub(super) const HELLO: &str = r#"{"id":"initialize","result":{"userAgent":"x"}}"#;
pub(super) const THREAD: &str =
    r#"{"id":"thread","result":{"thread":{"id":"t","cliVersion":"0.166.0"},"model":"m"}}"#;
pub(super) const STARTED: &str =
    r#"{"method":"turn/started","params":{"threadId":"t","turn":{"id":"u","status":"inProgress"}}}"#;
pub(super) const DONE: &str =
    r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"completed"}}}"#;

/// A protocol in the middle of the turn that answers the prompt.
pub(super) fn in_turn(settings: &AgentSettings) -> Box<dyn Protocol> {
    begun(protocol(settings, &fresh()))
}

pub(super) fn begun(mut protocol: Box<dyn Protocol>) -> Box<dyn Protocol> {
    protocol.start();
    fed(&mut *protocol, &[HELLO, THREAD, STARTED]);
    protocol
}

pub(super) fn fed(protocol: &mut dyn Protocol, lines: &[&str]) -> Vec<Action> {
    lines.iter().flat_map(|line| feed(protocol, line)).collect()
}

/// News about our conversation.
pub(super) fn news(method: &str, mut params: Value) -> String {
    params["threadId"] = "t".into();
    params["turnId"] = "u".into();
    json!({"method": method, "params": params}).to_string()
}

pub(super) fn ended(protocol: &mut dyn Protocol) -> End {
    protocol.on_exit(&exit(0)).1
}

/// A conversation with the real app server, kept on disk.
pub(super) struct Recording {
    pub(super) name: String,
    pub(super) lines: Vec<String>,
    pub(super) exit: ProcessEnd,
}

impl Recording {
    pub(super) fn all() -> Vec<Self> {
        let folder = testdata();
        let files = fs::read_dir(folder).expect("the recordings are there");
        let mut files: Vec<_> = files.map(|file| file.expect("readable").path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "ndjson"));
        assert!(files.len() > 30, "recordings are missing: these tests would prove little");
        files.sort();
        files.into_iter().map(Self::load).collect()
    }

    fn load(file: PathBuf) -> Self {
        let beside = |extension| fs::read_to_string(file.with_extension(extension));
        let code: i32 = beside("rc").map_or(0, |code| code.trim().parse().expect("an exit code"));
        let stderr_tail = beside("stderr").unwrap_or_default();
        // What a signal has ended is written as the signal's number below zero.
        let signal = (code < 0).then_some(-code);
        let code = signal.is_none().then_some(code);
        Self {
            name: file.file_stem().expect("a name").to_string_lossy().into_owned(),
            lines: fs::read_to_string(&file).expect("readable").lines().map(str::to_owned).collect(),
            exit: ProcessEnd { code, signal, stderr_tail, ..ProcessEnd::default() },
        }
    }

    /// What the app server wrote.
    pub(super) fn output(&self) -> Vec<&str> {
        self.lines.iter().map(String::as_str).filter(|line| !line.starts_with(">> ")).collect()
    }

    /// What was written to it.
    pub(super) fn input(&self) -> Vec<Value> {
        let sent = self.lines.iter().filter_map(|line| line.strip_prefix(">> "));
        sent.map(|line| serde_json::from_str(line).expect("JSON went in")).collect()
    }

    fn sent(&self, id: &str) -> Option<Value> {
        self.input().into_iter().find(|line| line["id"] == id)
    }

    /// Whether the conversation is a copy, of which no earlier total is told.
    pub(super) fn copies(&self) -> bool {
        self.sent("fork").is_some()
    }

    pub(super) fn resumes(&self) -> bool {
        self.sent("thread").is_some_and(|line| line["method"] == "thread/resume")
    }

    pub(super) fn compacts(&self) -> bool {
        self.sent("compact").is_some()
    }

    pub(super) fn protocol(&self) -> Box<dyn Protocol> {
        let thread = self.sent("thread").expect("a conversation was asked for");
        let session = thread["params"]["threadId"].as_str().map_or_else(fresh, resume);
        if self.compacts() {
            return compacting(&session);
        }
        let permission = match thread["params"]["approvalPolicy"].as_str() {
            Some("never") => Permission::Bypass,
            _ => Permission::Ask,
        };
        protocol(&AgentSettings { permission, ..settings() }, &session)
    }

    /// The whole conversation, with what was wanted of the agent in the same places as then.
    pub(super) fn play(&self) -> (Vec<Action>, End) {
        self.played(Steering::AsRecorded)
    }

    pub(super) fn played(&self, steering: Steering) -> (Vec<Action>, End) {
        let mut protocol = self.protocol();
        let mut actions = protocol.start();
        for line in &self.lines {
            actions.extend(match line.strip_prefix(">> ").map(steer) {
                None => feed(&mut *protocol, line),
                Some(Some(steer)) if steering == Steering::AsRecorded => protocol.on_steer(steer),
                Some(_) => Vec::new(),
            });
        }
        let (last, end) = protocol.on_exit(&self.exit);
        actions.extend(last);
        (actions, end)
    }
}

impl Damageable for Recording {
    fn title(&self) -> String {
        self.name.clone()
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
        serde_json::from_str::<Value>(line).is_ok_and(|frame| {
            let turn = &frame["params"]["turn"];
            frame["method"] == "turn/completed" && turn["status"] == "completed" && turn["error"].is_null()
        })
    }

    fn clean_ends_wanted(&self) -> usize {
        if self.name == "compact" { 2 } else { 1 }
    }
}

/// Whether what the operator said is there when a conversation is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Steering {
    AsRecorded,
    Missing,
}

pub(super) fn testdata() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/codex")
}

/// What must have been wanted for this to be written; nothing for what follows from the conversation itself.
fn steer(written: &str) -> Option<Steer> {
    let written: Value = serde_json::from_str(written).expect("JSON went in");
    match written["method"].as_str() {
        Some("turn/interrupt") => return Some(Steer::Interrupt),
        Some("turn/steer") => {
            let message = written["id"].as_str()?.strip_prefix("tell-")?.parse().ok().map(MessageNo)?;
            let text = written["params"]["input"][0]["text"].as_str()?.to_owned();
            return Some(Steer::Tell { message, text });
        }
        Some(_) => return None,
        None => {}
    }
    let result = &written["result"];
    let reply = match (result["decision"].as_str().or(result["action"].as_str()), &result["answers"]) {
        (Some("accept"), _) => Reply::Allowed,
        (Some(_), _) => Reply::Denied { message: String::new() },
        (None, answers) => {
            let answer = |answer: &Value| answer["answers"][0].as_str().expect("an answer").to_owned();
            Reply::Chosen { answers: answers.as_object()?.values().map(answer).collect() }
        }
    };
    Some(Steer::Answer { request: written["id"].to_string(), reply })
}
