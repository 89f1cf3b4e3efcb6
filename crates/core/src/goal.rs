//! What is to be true, and how that is checked.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{AgentName, Budget, Commit, GoalId};

/// A goal as it was created. It never changes; what happens to it is in [`crate::GoalState`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Its id.
    pub id: GoalId,
    /// One line for people.
    pub title: String,
    /// What is to be done, in the words of whoever wants it.
    pub prompt: String,
    /// How it is checked. Frozen here: later changes of the configuration do not reach it.
    pub checks: Vec<Check>,
    /// What may be spent on it at first; a retry may raise it.
    pub budget: Budget,
    /// The agents that may work on it, in order.
    pub agents: Vec<AgentName>,
    /// The model to use instead of the agent's own setting.
    pub model: Option<String>,
    /// Globs of paths that stay as in the base, whatever the agent does to them.
    pub protect: Vec<String>,
    /// Where the work happens.
    pub workspace: WorkspaceSpec,
    /// Whether the first prompt explains unattended work.
    pub briefing: bool,
    /// Whether the checks must fail on the base: one that is green before any work proves nothing.
    #[serde(default)]
    pub red_first: bool,
    /// How long each agent's conversations are gone on with, as set when the goal was created.
    #[serde(default)]
    pub sessions: BTreeMap<AgentName, SessionLimits>,
    /// Free words to find it by.
    pub labels: Vec<String>,
    /// Free data for programs.
    pub metadata: BTreeMap<String, Value>,
    /// Where it came from.
    pub origin: Origin,
    /// When it was created.
    pub created_at: Timestamp,
}

impl Goal {
    /// A hash of the check list, so that anyone can see that the list a verdict speaks of is the one the goal was
    /// created with.
    pub fn checks_hash(&self) -> String {
        let mut hasher = Sha256::new();
        // Serialising these plain structs cannot fail; an empty hash would only ever compare unequal.
        hasher.update(serde_json::to_vec(&self.checks).unwrap_or_default());
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// How long a conversation is gone on with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionLimits {
    /// The part of the model's context that may be in use before it is summarised, from 0 to 1.
    pub context_threshold: f64,
    /// How long it may lie unused.
    pub idle: Duration,
    /// How long after its beginning.
    pub age: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 3_600);
        Self { context_threshold: 0.7, idle: day, age: day * 30 }
    }
}

/// One acceptance criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name, unique within the goal.
    pub name: String,
    /// What is run.
    pub kind: CheckKind,
    /// How long it may take.
    pub timeout: Duration,
}

/// The kinds of checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CheckKind {
    /// A command that must exit with 0, run by `sh -c` in the clean checkout.
    Command {
        /// The command line.
        run: String,
        /// A pattern that its standard output must also match.
        stdout: Option<String>,
    },
}

impl Check {
    /// What must hold, in words that a person and an agent can act upon.
    pub fn describe(&self) -> String {
        match &self.kind {
            CheckKind::Command { run, stdout: None } => format!("`{run}`"),
            CheckKind::Command { run, stdout: Some(pattern) } => {
                format!("`{run}`, with a line on standard output that matches `{pattern}`")
            }
        }
    }
}

/// Where the work happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceSpec {
    /// The repository the goal belongs to.
    pub repository: String,
    /// The commit the work starts from.
    pub base: Commit,
    /// Commands that make a fresh checkout ready.
    pub setup: Vec<String>,
    /// Ignored files that a checkout needs.
    pub copy: Vec<String>,
}

/// Where a goal came from and who sent it, so that answers can go back there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The surface: `cli`, `http`.
    pub channel: String,
    /// The conversation on that surface.
    pub thread: Option<String>,
    /// Who.
    pub by: Option<String>,
}
