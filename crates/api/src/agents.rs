//! Agents: what is installed, what each can do, and what is wrong with it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One entry of `agents --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentLine {
    /// What was seen of it.
    #[serde(flatten)]
    pub facts: AgentFacts,
    /// The model that the configuration names.
    pub model: Option<String>,
    /// The account that the configuration names.
    pub account: Option<String>,
    /// How many frames of its output were not understood, over all stored goals.
    pub frames_not_understood: u64,
}

/// `agents check NAME --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentCheck {
    /// Whether nothing has to be fixed.
    pub ok: bool,
    #[serde(flatten)]
    pub line: AgentLine,
    /// What it can do, by the name of the ability.
    pub abilities: BTreeMap<String, Ability>,
    /// What is worth a person's time.
    pub findings: Vec<Finding>,
}

/// How far an agent can do something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ability {
    /// `yes`, `partly` or `no`.
    pub extent: String,
    /// The same in a sentence.
    pub words: String,
}

/// What was seen of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentFacts {
    /// Its name in the configuration.
    pub name: String,
    /// The name of its kind.
    pub kind: String,
    /// Whether goals that name no agent use it.
    pub in_use: bool,
    /// Program and first arguments.
    pub command: Vec<String>,
    /// The file of the program.
    pub path: Option<String>,
    /// Why the program cannot be started.
    #[serde(default)]
    pub problem: Option<String>,
    /// The version that it reports.
    pub version: Option<String>,
    /// The versions that Towline is tested with.
    pub tested: Option<TestedFacts>,
    /// Whether it is signed in, as far as can be seen.
    pub signed_in: SignedIn,
    /// What it may do: `bypass`, `ask` or `deny`.
    pub permission: String,
}

/// The versions that Towline is tested with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestedFacts {
    /// The range of them.
    pub versions: String,
    /// Whether the installed version is one of them; null if that is not known.
    pub covers: Option<bool>,
}

/// Whether an agent is signed in, as far as can be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SignedIn {
    /// It needs no sign-in.
    NotNeeded,
    /// Something shows it.
    Yes {
        /// The variable or the file that shows it.
        by: String,
    },
    /// Nothing shows it.
    NotSeen,
}

/// Frames of one agent that were not understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FrameFacts {
    /// The agent's name.
    pub agent: String,
    /// How many, over all stored goals.
    pub total: u64,
    /// How many of each kind, as far as they were looked up.
    pub kinds: BTreeMap<String, u64>,
    /// The newest goal that has some.
    pub goal: String,
    /// The last attempt of it that has some.
    pub attempt: u32,
}

/// Something that is worth a person's time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// The section of `doctor` that it belongs to.
    pub section: String,
    /// The agent, if it is about one.
    pub agent: Option<String>,
    /// What was looked at.
    pub about: String,
    /// How urgent it is.
    pub level: Level,
    /// What was seen.
    pub what: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// How urgent a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Worth knowing; nothing has to be done.
    Note,
    /// Must be fixed.
    Problem,
}
