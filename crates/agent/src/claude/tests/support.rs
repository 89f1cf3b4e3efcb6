//! Settings, contexts and recordings for the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use towline_core::{End, MessageNo, Reply, SessionId, SessionPlan};

use crate::protocol::{Action, LaunchContext, ProcessEnd, Protocol, Steer, agent};
use crate::settings::{AgentSettings, Kind, Permission};
use crate::testing::{Damageable, plain_launch, plain_settings};
pub(super) use crate::testing::{attempt, events, feed, play, readable, resume, written};

pub(super) const PROMPT: &str = "-p is no flag here: make the tests pass";

pub(super) fn settings() -> AgentSettings {
    plain_settings(Kind::Claude, &["claude"])
}

pub(super) fn fresh(id: &str) -> SessionPlan {
    SessionPlan::Fresh(SessionId::new(id))
}

/// A launch with nothing special about it.
pub(super) fn launch<'a>(session: &'a SessionPlan, none: &'a BTreeMap<String, String>) -> LaunchContext<'a> {
    plain_launch(session, PROMPT, none)
}

pub(super) fn protocol(settings: &AgentSettings, session: &SessionPlan) -> Box<dyn Protocol> {
    let none = BTreeMap::new();
    agent(settings.kind).protocol(settings, &launch(session, &none))
}

/// A conversation that goes on with a session, after a summary.
pub(super) fn compacting(session: &SessionPlan, focus: &str) -> Box<dyn Protocol> {
    let none = BTreeMap::new();
    let context = LaunchContext { compact: Some(focus), ..launch(session, &none) };
    agent(Kind::Claude).protocol(&settings(), &context)
}

/// What is written to say something to the model.
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
            lines: read(&file).lines().map(str::to_owned).collect(),
            exit: ProcessEnd { code: Some(code), stderr_tail, ..ProcessEnd::default() },
        }
    }

    /// What the CLI wrote.
    pub(super) fn output(&self) -> Vec<&str> {
        self.lines.iter().map(String::as_str).filter(|line| !line.starts_with(">> ")).collect()
    }

    /// What was said and done to it, in the same places as then: what the CLI wrote, and what was wanted of it after
    /// the first prompt.
    fn moments(&self) -> Vec<Moment<'_>> {
        let opening = 2;
        let mut sent = 0;
        let mut moments = Vec::new();
        for line in &self.lines {
            let Some(written) = line.strip_prefix(">> ") else {
                moments.push(Moment::Frame(line));
                continue;
            };
            sent += 1;
            let written = serde_json::from_str(written).expect("JSON went in");
            moments.extend(steer(&written).filter(|_| sent > opening).map(Moment::Steer));
        }
        moments
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
            "resume"
            | "compact"
            | "resume_elsewhere"
            | "resume_growth_reported"
            | "resume_session_totals" => resume("22222222-2222-4222-8222-222222222222"),
            "resume_bogus" => resume("33333333-3333-4333-8333-333333333333"),
            "compact_two_way" => resume("aa48ace1-94f1-42c5-83ed-af03547c9dbf"),
            "compact_not_enough_two_way" => resume("f88647ce-2e67-4687-8076-c17ee4f1264d"),
            "context_overflow_always" => resume("e30b7e51-100b-4dd5-bafb-e83c75c15a74"),
            "context_overflow_heals" => resume("309b09a8-eab4-412c-afc6-bc68d101788b"),
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

    /// Whether it begins with a summary.
    pub(super) fn compacts(&self) -> bool {
        self.name.starts_with("compact_")
    }

    pub(super) fn protocol(&self) -> Box<dyn Protocol> {
        if self.compacts() {
            compacting(&self.session(), "keep the goal in mind")
        } else {
            protocol(&self.settings(), &self.session())
        }
    }

    pub(super) fn play(&self) -> (Vec<Action>, End) {
        self.play_as(self.protocol())
    }

    /// What this conversation makes of it.
    pub(super) fn play_as(&self, mut protocol: Box<dyn Protocol>) -> (Vec<Action>, End) {
        let mut actions = protocol.start();
        for moment in self.moments() {
            actions.extend(match moment {
                Moment::Frame(line) => feed(&mut *protocol, line),
                Moment::Steer(steer) => protocol.on_steer(steer),
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
            frame["type"] == "result" && frame["subtype"] == "success" && frame["is_error"] == false
        })
    }

    fn clean_ends_wanted(&self) -> usize {
        if self.compacts() { 2 } else { 1 }
    }
}

enum Moment<'a> {
    Frame(&'a str),
    Steer(Steer),
}

/// A recording in which the message that was sent while the agent worked has the id that we would give it.
fn read(file: &Path) -> String {
    let told = attempt().message("tell 1");
    fs::read_to_string(file).expect("readable").replace("aaaaaaaa-0000-4000-8000-000000000002", &told)
}

/// What must have been wanted for this to be written; nothing for what follows from the conversation itself.
fn steer(written: &Value) -> Option<Steer> {
    // Towline gives up by itself where the provider cannot be reached.
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
