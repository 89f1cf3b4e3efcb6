//! Settings, contexts and recordings for the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use towline_core::{
    AgentEvent, AttemptId, ClockLimits, End, MessageNo, Reply, SessionId, SessionLimits, SessionPlan,
};

use crate::protocol::{Action, Frame, LaunchContext, ProcessEnd, Protocol, Steer, agent};
use crate::settings::{AgentSettings, CliSettings, Kind, Permission};

pub(super) const PROMPT: &str = "do it";

pub(super) fn settings() -> AgentSettings {
    let minute = Duration::from_secs(60);
    AgentSettings {
        kind: Kind::Codex,
        command: vec!["codex".into()],
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

pub(super) fn asking() -> AgentSettings {
    AgentSettings { permission: Permission::Ask, ..settings() }
}

pub(super) fn fresh() -> SessionPlan {
    SessionPlan::Fresh(SessionId::new("unused"))
}

pub(super) fn resume(id: &str) -> SessionPlan {
    SessionPlan::Resume(SessionId::new(id))
}

pub(super) fn attempt() -> AttemptId {
    serde_json::from_str(r#""0198c0de-0000-7000-8000-000000000001""#).expect("an id")
}

/// A launch with nothing special about it.
pub(super) fn launch<'a>(session: &'a SessionPlan, none: &'a BTreeMap<String, String>) -> LaunchContext<'a> {
    LaunchContext {
        directory: "/workspace",
        session,
        attempt: attempt(),
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

pub(super) fn feed(protocol: &mut dyn Protocol, line: &str) -> Vec<Action> {
    protocol.on_frame(Frame::Line(line.as_bytes()))
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

pub(super) fn exit(code: i32) -> ProcessEnd {
    ProcessEnd { code: Some(code), ..ProcessEnd::default() }
}

pub(super) fn ended(protocol: &mut dyn Protocol) -> End {
    protocol.on_exit(&exit(0)).1
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

/// The whole conversation: all that the protocol wants done, and the end.
pub(super) fn play(protocol: &mut dyn Protocol, lines: &[&str], exit: &ProcessEnd) -> (Vec<Action>, End) {
    let mut actions = protocol.start();
    actions.extend(fed(protocol, lines));
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
