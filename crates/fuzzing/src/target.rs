//! The list of everything that reads bytes it did not write.

use crate::{documents, frames, logs, seeds};
use towline_agent::Kind;

/// Something that reads bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name on the command line, and that of its libFuzzer target.
    pub name: &'static str,
    /// Reads the bytes, and panics when something does not hold that must.
    pub check: fn(&[u8]),
    /// Bytes that make sense.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "claude", check: |data| frames::check(Kind::Claude, data), seeds: seeds::claude },
    Target { name: "codex", check: |data| frames::check(Kind::Codex, data), seeds: seeds::codex },
    Target { name: "acp", check: |data| frames::check(Kind::Acp, data), seeds: seeds::acp },
    Target { name: "gemini", check: |data| frames::check(Kind::Gemini, data), seeds: seeds::gemini },
    Target { name: "command", check: |data| frames::check(Kind::Command, data), seeds: seeds::command },
    Target { name: "script", check: |data| frames::check(Kind::Script, data), seeds: seeds::script },
    Target { name: "framer", check: logs::check_framer, seeds: seeds::claude },
    Target { name: "logs", check: logs::check_readers, seeds: seeds::logs },
    Target { name: "config", check: documents::check_config, seeds: seeds::config },
    Target { name: "goals", check: documents::check_goal, seeds: seeds::goals },
    Target { name: "words", check: documents::check_words, seeds: seeds::words },
];

/// The one of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
