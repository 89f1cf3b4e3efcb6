//! Why a use case fails: facts, and hints that name what to do without writing it as a command line.

use towline_api::ErrorKind;
use towline_config::ConfigError;
use towline_core::GoalId;
use towline_engine::{EngineError, RemovalError};
use towline_store::StoreError;
use towline_workspace::WorkspaceError;

/// Why a use case fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The repository or git cannot do it.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The store cannot do it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine cannot do it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The goal cannot be removed.
    #[error("goal {} was not removed: {source}", .goal.short())]
    Removal {
        /// The goal.
        goal: GoalId,
        /// What is in the way.
        source: RemovalError,
    },
    /// The use case itself refuses.
    #[error("{message}")]
    Refused {
        /// The class of the failure.
        kind: ErrorKind,
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: Option<Hint>,
    },
}

impl Error {
    fn refused(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Refused { kind, message: message.into(), hint: None }
    }

    /// Towline or the machine is at fault.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::refused(ErrorKind::Internal, message)
    }

    /// The request makes no sense; nothing was created.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::refused(ErrorKind::Usage, message)
    }

    /// The named thing does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::refused(ErrorKind::NotFound, message)
    }

    /// The checks fail.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::refused(ErrorKind::Failed, message)
    }

    /// A person must do something first; nothing was changed.
    pub fn person(message: impl Into<String>) -> Self {
        Self::refused(ErrorKind::Person, message)
    }

    /// Adds what to do about a refusal.
    #[must_use]
    pub fn hint(mut self, new: impl Into<Hint>) -> Self {
        if let Self::Refused { hint, .. } = &mut self {
            *hint = Some(new.into());
        }
        self
    }

    /// What to do about it, where that does not depend on what was asked for.
    pub fn way_out(&self) -> Option<Hint> {
        match self {
            Self::Refused { hint, .. } => hint.clone(),
            Self::Store(StoreError::InUse { pids, .. }) => {
                let stop = pids.iter().map(|pid| format!("kill {pid}")).collect::<Vec<_>>().join("; ");
                let wait = format!(
                    "wait until its goals have ended, or pause them ({stop}) and continue them later"
                );
                Some([(wait.as_str(), Action::Resume)].into())
            }
            Self::Store(StoreError::Unreadable { goal, .. }) => Some(Hint::mend(*goal)),
            _ => None,
        }
    }
}

impl Hint {
    /// What to do about a goal that cannot be read.
    pub fn mend(goal: GoalId) -> Self {
        [("restore towline.db from a backup, or give the goal up", Action::RemoveByForce(goal))].into()
    }
}

/// What to do about an error or a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// A sentence without a command of Towline's.
    Advice(String),
    /// One of these, each with what it is for.
    Actions(Vec<(String, Action)>),
}

impl From<&str> for Hint {
    fn from(advice: &str) -> Self {
        Self::Advice(advice.to_owned())
    }
}

impl From<String> for Hint {
    fn from(advice: String) -> Self {
        Self::Advice(advice)
    }
}

impl From<Action> for Hint {
    fn from(action: Action) -> Self {
        Self::Actions(vec![(String::new(), action)])
    }
}

impl<const N: usize> From<[(&str, Action); N]> for Hint {
    fn from(actions: [(&str, Action); N]) -> Self {
        Self::Actions(actions.into_iter().map(|(purpose, action)| (purpose.to_owned(), action)).collect())
    }
}

impl From<&String> for Hint {
    fn from(advice: &String) -> Self {
        Self::Advice(advice.clone())
    }
}

/// Something that a person can have Towline do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// List all goals.
    List,
    /// List open questions.
    Questions,
    /// Answer a question of a goal.
    Answer(GoalId, u32),
    /// Start a goal.
    Run,
    /// Start a goal that merges this commit.
    RunMerge(String),
    /// Continue a goal that no engine runs.
    Continue(GoalId),
    /// Resume one of the paused goals.
    Resume,
    /// Open an ended goal again.
    Retry(GoalId),
    /// End a goal.
    Cancel(GoalId),
    /// Show all about a goal.
    Show(GoalId),
    /// Show a goal's changes.
    Diff(GoalId),
    /// Show a goal's log.
    Log(GoalId),
    /// Show a goal's log while it grows.
    Follow(GoalId),
    /// Show the raw output of an attempt of the goal with this short id.
    RawLog(String, u32),
    /// Put files back as they were before the goal.
    Restore(GoalId),
    /// Merge a goal's work.
    Merge(GoalId),
    /// Merge work that has no checks.
    MergeUnproven(GoalId),
    /// Merge without running the checks on the merge.
    MergeUnverified(GoalId),
    /// Push a goal's work to a remote.
    Push(GoalId, String),
    /// Remove a goal and keep its unmerged work under a private ref.
    RemoveByForce(GoalId),
    /// Show the configuration that fits the project.
    PrintInit,
    /// Replace the project's configuration.
    ForceInit,
    /// Name a check.
    GiveCheck,
    /// Name the branch to merge into.
    GiveBranch,
    /// Name the message of the merge.
    GiveMessage,
    /// Run git with these arguments.
    Git(String),
}
