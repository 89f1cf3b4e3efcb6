//! What a person should know although nothing failed.

use towline_agent::Restriction;
use towline_config::Warning;
use towline_core::{AgentName, Commit, GoalId, Sandbox, WorkspaceMode};

/// What a person should know although nothing failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A setting has no effect.
    Setting(Warning),
    /// Something about the user's files, in a sentence.
    Files(String),
    /// The agent changes the user's own files.
    InPlace {
        /// The goal that begins.
        goal: GoalId,
        /// The directory that it changes.
        folder: String,
        /// Whether git knows the directory.
        mode: WorkspaceMode,
    },
    /// The goal continues the conversation of an earlier one.
    Continues {
        /// The earlier goal.
        goal: GoalId,
        /// The agent that holds the conversation.
        agent: AgentName,
        /// The commit that the work starts from.
        base: Commit,
    },
    /// A default agent is skipped because it is not installed.
    NotInstalled(AgentName),
    /// `towline.toml` is not committed, so that the agent does not see it.
    UncommittedConfiguration,
    /// These changes are no part of the work.
    Uncommitted(Vec<String>),
    /// The same for goals that wait in the queue, and start from a commit.
    UncommittedInQueue(Vec<String>),
    /// A goal with the same prompt in the same place has not ended yet.
    AddedBefore(GoalId),
    /// Submodules are empty where the agent works.
    EmptySubmodules,
    /// The budget `usd` does not stop this agent, which does not report its cost.
    UnknownCost(AgentName),
    /// The goal has no checks.
    NoChecks,
    /// The agent may change the tests.
    UnprotectedTests,
    /// No file of the project matches a pattern of protected paths.
    ProtectsNothing(Vec<String>),
    /// Git does not know who the user is, so the goal's commits are Towline's.
    NoIdentity,
    /// The agent runs commands without asking, and at most Landlock confines it.
    Unrestricted {
        agent: AgentName,
        /// How it can be restricted.
        restriction: Restriction,
        /// Where it works.
        mode: WorkspaceMode,
        /// What confines it, if anything does.
        sandbox: Option<Sandbox>,
    },
    /// A sandbox is asked for where there is one, and none works, for this reason.
    NoSandbox(String),
    /// The sandbox is not the one that a higher level of trust takes, for this reason.
    WeakSandbox(Sandbox, String),
    /// Your own configuration cannot be used, so a server uses what it read last; with what is wrong.
    BrokenConfiguration(String),
    /// A hook of the project is changed by the merge, so that git runs none of them.
    ChangedHooks(Vec<String>),
}

impl Notice {
    /// A notice for each setting without effect.
    pub(crate) fn of_settings(warnings: Vec<Warning>) -> Vec<Self> {
        warnings.into_iter().map(Self::Setting).collect()
    }
}
