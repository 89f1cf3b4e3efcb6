//! The list of everything that reads bytes it did not write: every kind of agent, and what is no agent.

use towline_agent::Kind;

use crate::{documents, frames, logs, seeds};

/// Something that reads bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    reader: Reader,
}

#[derive(Debug, Clone, Copy)]
enum Reader {
    Agent(Kind),
    Other { check: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>> },
}

impl Target {
    const fn other(name: &'static str, check: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> Self {
        Self { name, reader: Reader::Other { check, seeds } }
    }

    /// Reads the bytes, and panics when something does not hold that must.
    pub fn check(&self, data: &[u8]) {
        match self.reader {
            Reader::Agent(kind) => drop(frames::check(kind, data)),
            Reader::Other { check, .. } => check(data),
        }
    }

    /// Bytes that make sense.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        match self.reader {
            Reader::Agent(kind) => seeds::of(kind),
            Reader::Other { seeds, .. } => seeds(),
        }
    }
}

/// All of them.
pub fn targets() -> Vec<Target> {
    let agents = Kind::ALL.map(|kind| Target { name: kind.name(), reader: Reader::Agent(kind) });
    let others = [
        Target::other("framer", logs::check_framer, || seeds::of(Kind::Claude)),
        Target::other("logs", logs::check_readers, seeds::logs),
        Target::other("config", documents::check_config, seeds::config),
        Target::other("goals", documents::check_goal, seeds::goals),
        Target::other("words", documents::check_words, seeds::words),
    ];
    agents.into_iter().chain(others).collect()
}

/// The one of this name.
pub fn target(name: &str) -> Option<Target> {
    targets().into_iter().find(|target| target.name == name)
}
