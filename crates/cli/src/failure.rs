//! Where every error becomes a message, a hint and an exit code.

use std::fmt;
use std::process::ExitCode;

use towline_config::ConfigError;
use towline_core::{Illegal, Phase};
use towline_engine::EngineError;
use towline_store::StoreError;
use towline_workspace::{MergeError, WorkspaceError};

use crate::find::how_to_mend;

/// Why the program ends without having done what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Internal,
    Usage,
    NotFound,
    Failed,
    Person,
}

impl Failure {
    /// Towline or the machine is at fault.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { kind: Kind::Internal, message: message.into(), hint: None }
    }

    /// What was asked makes no sense; nothing was created.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, message: message.into(), hint: None }
    }

    /// There is no such thing.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self { kind: Kind::NotFound, message: message.into(), hint: None }
    }

    /// What was asked for was looked into, and the checks say no.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { kind: Kind::Failed, message: message.into(), hint: None }
    }

    /// A person has to do something first; nothing was changed.
    pub(crate) fn person(message: impl Into<String>) -> Self {
        Self { kind: Kind::Person, message: message.into(), hint: None }
    }

    /// Adds what to do about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// What happened, and what to do about it.
    pub(crate) fn into_words(self) -> (String, Option<String>) {
        (self.message, self.hint)
    }

    /// The code to exit with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::Internal => 1,
            Kind::Usage => 2,
            Kind::Failed => 3,
            Kind::Person => 4,
            Kind::NotFound => 5,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string())
    }
}

/// What is wrong with the repository is the user's to mend; what is wrong with git or the disk is not their fault.
impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        match error {
            WorkspaceError::Io { .. }
            | WorkspaceError::Locked { .. }
            | WorkspaceError::TimedOut { .. }
            | WorkspaceError::Git { .. } => Self::internal(error.to_string()),
            WorkspaceError::TooLarge { .. } => {
                Self::usage(error.to_string()).hint("to take it all the same: --allow-large")
            }
            error => Self::usage(error.to_string()),
        }
    }
}

/// What stands in the way of a merge is for a person to clear away.
impl From<MergeError> for Failure {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Workspace(error) => error.into(),
            MergeError::NoSuchBranch { .. } => Self::usage(error.to_string()),
            error => Self::person(error.to_string()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(_) => Self::not_found(error.to_string()),
            StoreError::InUse { ref pids, .. } => {
                let stop = pids.iter().map(|pid| format!("kill {pid}")).collect::<Vec<_>>().join("; ");
                Self::person(error.to_string()).hint(format!(
                    "wait until its goals have ended, or pause them ({stop}) and continue them later with 'towline resume'"
                ))
            }
            StoreError::Unreadable { goal, .. } => Self::internal(error.to_string()).hint(how_to_mend(goal)),
            error => Self::internal(error.to_string()),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::Illegal { illegal: Illegal::StillSpent { axis }, goal } => {
                Self::usage(format!("goal {goal} has spent its budget `{axis}`"))
                    .hint(format!("towline retry {goal} --budget {}", axis.suggestion()))
            }
            EngineError::Illegal { illegal: Illegal::WrongPhase { phase, event }, goal } => {
                let failure = Self::usage(match event {
                    "checks_replaced" => format!("goal {goal} is {phase}: its checks cannot be replaced now"),
                    event => format!("goal {goal} is {phase}: there is nothing to {event}"),
                });
                match phase {
                    "done" => failure.hint(format!("see what was proven: towline show {goal}")),
                    "failed" | "escalated" | "cancelled" | "unproven" if event == "run" => {
                        failure.hint(format!("open it again: towline retry {goal}"))
                    }
                    "failed" | "escalated" | "cancelled" | "unproven" => failure,
                    "paused" if event != "pause" => {
                        failure.hint(format!("continue it: towline resume {goal}"))
                    }
                    "paused" => failure,
                    _ => failure.hint(format!(
                        "follow it: towline logs -f {goal} (or, when nobody drives it: towline run --goal {goal})"
                    )),
                }
            }
            error @ EngineError::StateGone { .. } => Self::internal(error.to_string()).hint(
                "the goals, logs and workspaces in it are lost; your repository is as it was. Find out what removed it (the \
                 agent or one of the checks?), then start the goal again",
            ),
            EngineError::LeaseExpired { goal, source } => {
                let id = goal.short();
                let message = format!("goal {id} was given up, because nothing could be stored for too long: {source}");
                Self::internal(message).hint(format!(
                    "its agent keeps running; when the store works again, resume the goal: towline run --goal {id}"
                ))
            }
            error @ EngineError::GoalFilesGone { goal, .. } => {
                let id = goal.short();
                Self::internal(error.to_string()).hint(format!(
                    "find out what removed it (the agent or one of the checks?), then resume the goal: towline run --goal {id}"
                ))
            }
            error @ (EngineError::Busy { .. }
            | EngineError::Illegal { .. }
            | EngineError::PlaceTaken { .. }) => Self::usage(error.to_string()),
            error => Self::internal(error.to_string()),
        }
    }
}

/// The exit code for a goal that was left in this phase.
pub(crate) fn exit_code_of(phase: &Phase) -> ExitCode {
    ExitCode::from(match phase {
        Phase::Done => 0,
        Phase::Failed { .. } => 3,
        Phase::Escalated { .. } | Phase::Blocked { .. } => 4,
        Phase::Unproven => 6,
        Phase::Cancelled => 130,
        Phase::Paused { .. } => 143,
        _ => 1,
    })
}
