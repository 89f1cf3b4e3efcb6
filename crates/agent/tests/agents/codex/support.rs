//! Settings, contexts and recordings for the tests.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use towline_agent::{Action, AgentSettings, Kind, LaunchContext, Permission, Protocol, Steer, agent};
use towline_core::{End, MessageNo, Reply, SessionId, SessionPlan};

use crate::recording::{Recorded, Recording};
pub(super) use crate::support::{events, exited as exit, feed, resume, used, written};
use crate::support::{plain_launch, plain_settings};

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

/// A plain launch.
pub(super) fn launch<'a>(session: &'a SessionPlan, none: &'a BTreeMap<String, String>) -> LaunchContext<'a> {
    plain_launch(session, PROMPT, none)
}

pub(super) fn protocol(settings: &AgentSettings, session: &SessionPlan) -> Box<dyn Protocol> {
    let none = BTreeMap::new();
    agent(settings.kind).protocol(settings, &launch(session, &none))
}

/// A conversation that is summarised before its next turn.
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

/// A notification about our conversation.
pub(super) fn news(method: &str, mut params: Value) -> String {
    params["threadId"] = "t".into();
    params["turnId"] = "u".into();
    json!({"method": method, "params": params}).to_string()
}

pub(super) fn ended(protocol: &mut dyn Protocol) -> End {
    protocol.on_exit(&exit(0)).1
}

/// The recordings of the real app server.
pub(crate) static RECORDED: Recorded = Recorded {
    name: "codex",
    programs: &[],
    at_least: 30,
    protocol: recorded_protocol,
    steers: |_, _, written| steer(written).into_iter().collect(),
    is_clean_end: |frame| {
        let turn = &frame["params"]["turn"];
        frame["method"] == "turn/completed" && turn["status"] == "completed" && turn["error"].is_null()
    },
    in_turn: || in_turn(&settings()),
    summarised: &["compact"],
    cut_every: 397,
    rounds: 20,
};

fn recorded_protocol(recording: &Recording) -> Box<dyn Protocol> {
    let thread = recording.sent("thread").expect("a conversation was asked for");
    let session = thread["params"]["threadId"].as_str().map_or_else(fresh, resume);
    if recording.sent("compact").is_some() {
        return compacting(&session);
    }
    let permission = match thread["params"]["approvalPolicy"].as_str() {
        Some("never") => Permission::Bypass,
        _ => Permission::Ask,
    };
    protocol(&AgentSettings { permission, ..settings() }, &session)
}

/// The operator's request that led to this line; `None` if it follows from the conversation itself.
fn steer(written: &Value) -> Option<Steer> {
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
