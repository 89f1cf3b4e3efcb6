//! Recorded conversations with real agents: loads, plays and damages them for every protocol.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use towline_agent::{Action, ProcessEnd, Protocol, Steer};
use towline_core::End;

use crate::support::{attempt, feed};

/// The recordings of one protocol, and what the shared tests need to know about them.
pub(crate) struct Recorded {
    /// The folder below `testdata`, and the one of the snapshots.
    pub(crate) name: &'static str,
    /// Folders below that, if each program has its own.
    pub(crate) programs: &'static [&'static str],
    /// Fewer recordings than this prove too little.
    pub(crate) at_least: usize,
    /// The conversation with the settings of the recording.
    pub(crate) protocol: fn(&Recording) -> Box<dyn Protocol>,
    /// The operator's requests that led to this line, by its index among all written lines.
    pub(crate) steers: fn(&Recording, usize, &Value) -> Vec<Steer>,
    /// Whether a frame ends a turn without error.
    pub(crate) is_clean_end: fn(&Value) -> bool,
    /// A conversation in the middle of a turn.
    pub(crate) in_turn: fn() -> Box<dyn Protocol>,
    /// Recordings in which a success needs two clean ends: a summary is a turn, too, but answers no prompt.
    pub(crate) summarised: &'static [&'static str],
    /// Recordings are cut at multiples of this many bytes.
    pub(crate) cut_every: usize,
    /// How often the lines of a recording are shuffled and scribbled over.
    pub(crate) rounds: usize,
}

impl Recorded {
    pub(crate) fn all(&'static self) -> Vec<Recording> {
        let folder = testdata().join(self.name);
        let mut recordings = self.load_all("", &folder);
        for program in self.programs {
            recordings.extend(self.load_all(&format!("{program}_"), &folder.join(program)));
        }
        assert!(recordings.len() >= self.at_least, "recordings of {} are missing", self.name);
        recordings
    }

    pub(crate) fn named(&'static self, name: &str) -> Recording {
        self.all().into_iter().find(|recording| recording.name == name).expect("the recording is there")
    }

    fn load_all(&'static self, prefix: &str, folder: &Path) -> Vec<Recording> {
        let files = fs::read_dir(folder).expect("the recordings are there");
        let mut files: Vec<_> = files.map(|file| file.expect("readable").path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "ndjson"));
        files.sort();
        files.iter().map(|file| Recording::load(self, prefix, file)).collect()
    }
}

pub(crate) fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// A conversation with a real agent.
pub(crate) struct Recording {
    recorded: &'static Recorded,
    /// The name of its file, after that of its program if there are several.
    pub(crate) name: String,
    /// The agent's lines, and after `>> ` those written to it.
    pub(crate) lines: Vec<String>,
    pub(crate) exit: ProcessEnd,
}

/// Whether the operator's messages are there when a conversation is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Steering {
    AsRecorded,
    Missing,
}

impl Recording {
    fn load(recorded: &'static Recorded, prefix: &str, file: &Path) -> Self {
        let stem = file.file_stem().expect("a name").to_string_lossy();
        // A message that was sent to a working agent has our id.
        let message = attempt().message("tell 1");
        let text = fs::read_to_string(file).expect("readable");
        let text = text.replace("aaaaaaaa-0000-4000-8000-000000000002", &message);
        Self {
            recorded,
            name: format!("{prefix}{stem}"),
            lines: text.lines().map(str::to_owned).collect(),
            exit: exit_beside(file),
        }
    }

    /// The agent's lines.
    pub(crate) fn output(&self) -> Vec<&str> {
        self.lines.iter().map(String::as_str).filter(|line| !line.starts_with(">> ")).collect()
    }

    /// The same as JSON.
    pub(crate) fn frames(&self) -> impl Iterator<Item = Value> {
        self.output().into_iter().map(|line| serde_json::from_str(line).expect("JSON came out"))
    }

    /// The lines written to it.
    pub(crate) fn input(&self) -> Vec<Value> {
        let sent = self.lines.iter().filter_map(|line| line.strip_prefix(">> "));
        sent.map(|line| serde_json::from_str(line).expect("JSON went in")).collect()
    }

    /// The request of this id that was written to it.
    pub(crate) fn sent(&self, id: &str) -> Option<Value> {
        self.input().into_iter().find(|line| line["id"] == id)
    }

    /// A protocol for it, not yet started.
    pub(crate) fn protocol(&self) -> Box<dyn Protocol> {
        (self.recorded.protocol)(self)
    }

    pub(crate) fn play(&self) -> (Vec<Action>, End) {
        self.play_as(self.protocol(), Steering::AsRecorded)
    }

    /// The whole conversation, with the operator's requests at the same places.
    pub(crate) fn play_as(&self, mut protocol: Box<dyn Protocol>, steering: Steering) -> (Vec<Action>, End) {
        let mut actions = protocol.start();
        let mut sent = 0;
        for line in &self.lines {
            let Some(written) = line.strip_prefix(">> ") else {
                actions.extend(feed(&mut *protocol, line));
                continue;
            };
            if steering == Steering::AsRecorded {
                let written = serde_json::from_str(written).expect("JSON went in");
                for steer in (self.recorded.steers)(self, sent, &written) {
                    actions.extend(protocol.on_steer(steer));
                }
            }
            sent += 1;
        }
        let (last, end) = protocol.on_exit(&self.exit);
        actions.extend(last);
        (actions, end)
    }
}

/// How the process ended, by the files beside the recording. A signal is written as a negative number, or as shells
/// do.
pub(crate) fn exit_beside(file: &Path) -> ProcessEnd {
    let beside = |extension| fs::read_to_string(file.with_extension(extension));
    let code: i32 = beside("rc").map_or(0, |code| code.trim().parse().expect("an exit code"));
    let signal = if code == 137 { Some(9) } else { (code < 0).then_some(-code) };
    let stderr_tail = beside("stderr").unwrap_or_default();
    ProcessEnd { code: signal.is_none().then_some(code), signal, stderr_tail }
}
