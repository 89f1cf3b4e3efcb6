//! Settings, contexts and recordings for the tests.

use std::collections::BTreeMap;

use serde_json::Value;
use towline_agent::{AgentSettings, Kind, LaunchContext, Protocol, agent};
use towline_core::{SessionId, SessionPlan};

use crate::recording::{Recorded, Recording};
pub(super) use crate::support::{events, exited, feed, play, resume, used};
use crate::support::{plain_launch, plain_settings};

pub(super) const PROMPT: &str = "make the tests pass";

pub(super) fn settings() -> AgentSettings {
    plain_settings(Kind::Gemini, &["gemini"])
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
    agent(Kind::Gemini).protocol(settings, &launch(session, &none))
}

/// A protocol that has sent its prompt and is in its session.
pub(super) fn in_turn() -> Box<dyn Protocol> {
    let mut protocol = protocol(&settings(), &fresh());
    protocol.start();
    feed(&mut *protocol, r#"{"type":"init","session_id":"ours","model":"m"}"#);
    protocol
}

/// The recordings of the real CLI.
pub(crate) static RECORDED: Recorded = Recorded {
    name: "gemini",
    programs: &[],
    at_least: 20,
    protocol: |recording| {
        let session = match recording.name.as_str() {
            "resume" | "resume_other_cwd" => resume("eeed7afe-33f5-4127-a1b6-07769acd3713"),
            "resume_bogus" => resume("01a1dcab-0000-4f62-b16d-074b439522b4"),
            _ => fresh(),
        };
        protocol(&settings(), &session)
    },
    steers: |_, _, _| Vec::new(),
    is_clean_end: |frame| frame["type"] == "result" && frame["status"] == "success",
    in_turn,
    summarised: &[],
    cut_every: 7,
    rounds: 50,
};

pub(super) fn results(recording: &Recording) -> Vec<Value> {
    recording.frames().filter(|frame| frame["type"] == "result").collect()
}
