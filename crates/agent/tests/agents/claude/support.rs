//! Settings, contexts and recordings for the tests.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use towline_agent::{AgentSettings, Kind, LaunchContext, Permission, Protocol, Steer, agent};
use towline_core::{MessageNo, Reply, SessionId, SessionPlan};

use crate::recording::{Recorded, Recording};
pub(super) use crate::support::{attempt, events, feed, play, resume, used, written};
use crate::support::{plain_launch, plain_settings};

pub(super) const PROMPT: &str = "-p is no flag here: make the tests pass";

pub(super) fn settings() -> AgentSettings {
    plain_settings(Kind::Claude, &["claude"])
}

pub(super) fn fresh(id: &str) -> SessionPlan {
    SessionPlan::Fresh(SessionId::new(id))
}

/// A plain launch.
pub(super) fn launch<'a>(session: &'a SessionPlan, none: &'a BTreeMap<String, String>) -> LaunchContext<'a> {
    plain_launch(session, PROMPT, none)
}

pub(super) fn protocol(settings: &AgentSettings, session: &SessionPlan) -> Box<dyn Protocol> {
    let none = BTreeMap::new();
    agent(settings.kind).protocol(settings, &launch(session, &none))
}

/// A session that is summarised before its next turn.
pub(super) fn compacting(session: &SessionPlan, focus: &str) -> Box<dyn Protocol> {
    let none = BTreeMap::new();
    let context = LaunchContext { compact: Some(focus), ..launch(session, &none) };
    agent(Kind::Claude).protocol(&settings(), &context)
}

/// A message to the model, as it is written.
pub(super) fn message(name: &str, text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]},
           "uuid": attempt().message(name)})
}

/// A protocol that has sent its prompt and is in its session.
pub(super) fn in_session(settings: &AgentSettings) -> Box<dyn Protocol> {
    let mut protocol = protocol(settings, &fresh("s"));
    protocol.start();
    feed(&mut *protocol, r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/workspace"}"#);
    protocol
}

/// The recordings of the real CLI.
pub(crate) static RECORDED: Recorded = Recorded {
    name: "claude",
    programs: &[],
    at_least: 40,
    protocol: recorded_protocol,
    steers: |_, at, written| if at < 2 { Vec::new() } else { steer(written).into_iter().collect() },
    is_clean_end: |frame| {
        frame["type"] == "result" && frame["subtype"] == "success" && frame["is_error"] == false
    },
    in_turn: || in_session(&settings()),
    summarised: &["compact_two_way", "compact_not_enough_two_way"],
    cut_every: 97,
    rounds: 20,
};

fn recorded_protocol(recording: &Recording) -> Box<dyn Protocol> {
    let name = recording.name.as_str();
    let session = match name {
        "resume" | "compact" | "resume_elsewhere" | "resume_growth_reported" | "resume_session_totals" => {
            resume("22222222-2222-4222-8222-222222222222")
        }
        "resume_bogus" => resume("33333333-3333-4333-8333-333333333333"),
        "compact_two_way" => resume("aa48ace1-94f1-42c5-83ed-af03547c9dbf"),
        "compact_not_enough_two_way" => resume("f88647ce-2e67-4687-8076-c17ee4f1264d"),
        "context_overflow_always" => resume("e30b7e51-100b-4dd5-bafb-e83c75c15a74"),
        "context_overflow_heals" => resume("309b09a8-eab4-412c-afc6-bc68d101788b"),
        _ => fresh("11111111-1111-4111-8111-111111111111"),
    };
    if name.starts_with("compact_") {
        return compacting(&session, "keep the goal in mind");
    }
    let permission = match name {
        "control" | "denied_by_answer" | "tool_denied" => Permission::Deny,
        _ => Permission::Bypass,
    };
    let allow = if name == "control" { vec!["Write".to_owned()] } else { vec![] };
    let deny = if name == "denied_by_rule" { vec!["Bash(rm *)".to_owned()] } else { vec![] };
    protocol(&AgentSettings { allow, deny, permission, ..settings() }, &session)
}

/// The ends of turns in a recording.
pub(super) fn results(recording: &Recording) -> Vec<Value> {
    recording.frames().filter(|frame| frame["type"] == "result").collect()
}

/// The operator's request that led to this line; `None` if it follows from the conversation itself.
fn steer(written: &Value) -> Option<Steer> {
    // Towline ends the turn by itself when the provider cannot be reached.
    if written["request_id"] == "towline-not-reached" {
        return None;
    }
    if written["request"]["subtype"] == "interrupt" {
        return Some(Steer::Interrupt);
    }
    if let (Some(_), Some(text)) =
        (written["uuid"].as_str(), written["message"]["content"][0]["text"].as_str())
    {
        return Some(Steer::Tell { message: MessageNo(1), text: text.to_owned() });
    }
    let response = &written["response"];
    let request = response["request_id"].as_str()?.to_owned();
    let input = &response["response"]["updatedInput"];
    let reply = match (response["response"]["behavior"].as_str()?, input["questions"].as_array()) {
        ("allow", Some(questions)) => {
            let text = |question: &Value| question["question"].as_str().expect("a question").to_owned();
            let answer = |question| input["answers"][text(question)].as_str().expect("an answer").to_owned();
            Reply::Chosen { answers: questions.iter().map(answer).collect() }
        }
        ("allow", None) => Reply::Allowed,
        _ => Reply::Denied { message: response["response"]["message"].as_str()?.to_owned() },
    };
    Some(Steer::Answer { request, reply })
}
