//! Settings, contexts and recordings for the tests.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use towline_agent::{
    Action, AgentSettings, Kind, LaunchContext, McpServer, Permission, Protocol, Steer, agent,
};
use towline_core::{End, MessageNo, SessionId, SessionPlan};

use crate::recording::{Recorded, Recording};
pub(super) use crate::support::{events, exited, feed, resume, used, written};
use crate::support::{plain_launch, plain_settings};

pub(super) const PROMPT: &str = "make the tests pass";

pub(super) fn settings(program: &str) -> AgentSettings {
    plain_settings(Kind::Acp, &[program])
}

pub(super) fn fresh() -> SessionPlan {
    SessionPlan::Fresh(SessionId::new("ours"))
}

/// A plain launch.
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

pub(super) fn give(protocol: &mut dyn Protocol, line: &Value) -> Vec<Action> {
    feed(protocol, &line.to_string())
}

pub(super) fn update(update: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
}

pub(super) fn text_chunk(text: &str) -> Value {
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

/// The recordings of real agents.
pub(crate) static RECORDED: Recorded = Recorded {
    name: "acp",
    programs: &["gemini", "opencode"],
    at_least: 40,
    protocol: recorded_protocol,
    steers,
    is_clean_end: |frame| frame["result"]["stopReason"] == "end_turn",
    in_turn: || in_turn(&settings("agent")),
    summarised: &["opencode_compact"],
    cut_every: 397,
    rounds: 10,
};

/// The operator's messages were sent during the first turn.
fn steers(recording: &Recording, _at: usize, written: &Value) -> Vec<Steer> {
    let steer = |message: &Value| {
        let number = message["id"].as_str()?.strip_prefix("tell-")?.parse().expect("a number");
        Some(Steer::Tell { message: MessageNo(number), text: text(message) })
    };
    match (written["method"].as_str(), written["id"].as_str()) {
        (Some("session/cancel"), _) => vec![Steer::Interrupt],
        (_, Some("prompt")) => recording.input().iter().filter_map(steer).collect(),
        _ => Vec::new(),
    }
}

/// The settings of the recording.
fn recorded_settings(recording: &Recording) -> AgentSettings {
    let (program, name) = recording.name.split_once('_').expect("a program and a name");
    let settings = settings(program);
    let deny = |deny: &str| vec![deny.to_owned()];
    let fake = McpServer::program(vec!["/usr/bin/python3".into(), "/opt/agent/mcp.py".into()]);
    let long = McpServer::program(vec!["/usr/bin/python3".into(), "/scratch".into()]);
    match (program, name) {
        (_, "rejected") => AgentSettings { permission: Permission::Deny, ..settings },
        ("gemini", "mcp") => {
            AgentSettings { mcp: [("fake".to_owned(), fake)].into(), deny: deny("Nothing"), ..settings }
        }
        (_, "mcp") => AgentSettings { mcp: [("fake".to_owned(), fake)].into(), ..settings },
        ("gemini", "long_yolo") => AgentSettings { mcp: [("fake".to_owned(), long)].into(), ..settings },
        // With a deny list the agent has to ask.
        ("gemini", name) if !matches!(name, "yolo" | "interrupted") => {
            AgentSettings { deny: deny("Nothing"), ..settings }
        }
        _ => settings,
    }
}

fn recorded_protocol(recording: &Recording) -> Box<dyn Protocol> {
    let asked = recording.sent("session").expect("a session was asked for");
    let session = asked["params"]["sessionId"].as_str().map_or_else(fresh, resume);
    let none = BTreeMap::new();
    let prompt = recording.sent("prompt").map(|prompt| text(&prompt)).unwrap_or_default();
    let compact = recording.sent("compact").map(|command| text(&command));
    let compact = compact.as_deref().and_then(|command| command.strip_prefix("/compact "));
    let context = LaunchContext { prompt: &prompt, compact, ..launch(&session, &none) };
    agent(Kind::Acp).protocol(&recorded_settings(recording), &context)
}

fn text(prompt: &Value) -> String {
    prompt["params"]["prompt"][0]["text"].as_str().expect("words").to_owned()
}
