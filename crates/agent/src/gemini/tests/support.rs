//! Settings, contexts and recordings for the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use towline_core::{End, SessionId, SessionPlan};

use crate::protocol::{Action, LaunchContext, ProcessEnd, Protocol, agent};
use crate::settings::{AgentSettings, Kind};
use crate::testing::{Damageable, plain_launch, plain_settings};
pub(super) use crate::testing::{events, exited, feed, play, readable, resume};

pub(super) const PROMPT: &str = "make the tests pass";

pub(super) fn settings() -> AgentSettings {
    plain_settings(Kind::Gemini, &["gemini"])
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
    agent(Kind::Gemini).protocol(settings, &launch(session, &none))
}

/// A protocol that has sent its prompt and is in its session.
pub(super) fn in_turn() -> Box<dyn Protocol> {
    let mut protocol = protocol(&settings(), &fresh());
    protocol.start();
    feed(&mut *protocol, r#"{"type":"init","session_id":"ours","model":"m"}"#);
    protocol
}

/// A conversation with the real CLI, kept on disk.
pub(super) struct Recording {
    pub(super) name: String,
    text: String,
    exit: ProcessEnd,
}

impl Recording {
    pub(super) fn all() -> Vec<Self> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/gemini");
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
        let code: i32 = beside("rc").expect("an exit code").trim().parse().expect("a number");
        let exit = ProcessEnd {
            code: (code >= 0).then_some(code),
            signal: (code < 0).then_some(-code),
            stderr_tail: beside("stderr").unwrap_or_default(),
            spawn: None,
        };
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        Self { name, text: fs::read_to_string(&file).expect("readable"), exit }
    }

    pub(super) fn results(&self) -> Vec<Value> {
        let frames = self.text.lines().map(|line| serde_json::from_str(line).expect("JSON came out"));
        frames.filter(|frame: &Value| frame["type"] == "result").collect()
    }

    /// The session that was asked for when it was recorded.
    fn session(&self) -> SessionPlan {
        match self.name.as_str() {
            "resume" | "resume_other_cwd" => resume("eeed7afe-33f5-4127-a1b6-07769acd3713"),
            "resume_bogus" => resume("01a1dcab-0000-4f62-b16d-074b439522b4"),
            _ => fresh(),
        }
    }

    pub(super) fn play(&self) -> (Vec<Action>, End) {
        play(&mut *self.new_protocol(), &self.written_lines(), &self.exit)
    }
}

impl Damageable for Recording {
    fn title(&self) -> String {
        self.name.clone()
    }

    fn written_lines(&self) -> Vec<&str> {
        self.text.lines().collect()
    }

    fn process_end(&self) -> &ProcessEnd {
        &self.exit
    }

    fn new_protocol(&self) -> Box<dyn Protocol> {
        protocol(&settings(), &self.session())
    }

    fn is_clean_end(line: &str) -> bool {
        serde_json::from_str::<Value>(line)
            .is_ok_and(|frame| frame["type"] == "result" && frame["status"] == "success")
    }

    fn clean_ends_wanted(&self) -> usize {
        1
    }
}
