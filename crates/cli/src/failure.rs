//! Where every error becomes a message, a hint and an exit code.

use std::fmt;
use std::process::ExitCode;

use towline_api::{ErrorKind, ErrorReport, ErrorWords};
use towline_app::Error;
use towline_config::ConfigError;
use towline_core::{GoalId, Illegal, Phase};
use towline_engine::{EngineError, RemovalError};
use towline_store::StoreError;
use towline_workspace::{Unmerged, WorkKind, WorkspaceError};

use crate::hints::words;

/// Why the program ends without having done what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// Towline or the machine is at fault.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Internal, message: message.into(), hint: None }
    }

    /// What was asked makes no sense; nothing was created.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Usage, message: message.into(), hint: None }
    }

    /// There is no such thing.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::NotFound, message: message.into(), hint: None }
    }

    /// A person has to do something first; nothing was changed.
    pub(crate) fn person(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Person, message: message.into(), hint: None }
    }

    /// Adds what to do about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The code to exit with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind.exit_code())
    }

    /// The failure as programs read it.
    pub(crate) fn report(&self) -> ErrorReport {
        let Self { kind, message, hint } = self;
        let (message, hint) = (message.clone(), hint.clone());
        ErrorReport { error: ErrorWords { kind: *kind, message, hint, exit_code: kind.exit_code() } }
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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Config(error) => error.into(),
            Error::Workspace(error) => error.into(),
            Error::Store(error) => error.into(),
            Error::Engine(error) => error.into(),
            Error::Removal { goal, source } => not_removed(goal, source),
            Error::Refused { kind, message, hint } => Self { kind, message, hint: hint.as_ref().map(words) },
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

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(_) => Self::not_found(error.to_string()),
            error => {
                let is_in_use = matches!(error, StoreError::InUse { .. });
                let error = Error::Store(error);
                let message = error.to_string();
                let failure = if is_in_use { Self::person(message) } else { Self::internal(message) };
                Self { hint: error.way_out().as_ref().map(words), ..failure }
            }
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

/// A goal that was not removed, with what to do about its work.
fn not_removed(goal: GoalId, error: RemovalError) -> Failure {
    let id = goal.short();
    let message = format!("goal {id} was not removed: {error}");
    match error {
        RemovalError::Engine(error @ EngineError::Store(_)) => error.into(),
        RemovalError::Engine(EngineError::Busy { .. }) | RemovalError::Alive { .. } => {
            Failure::usage(format!("goal {id} was not removed: something works on it"))
                .hint(format!("end it first: towline cancel {id}"))
        }
        RemovalError::Unmerged { work } => {
            let work: Vec<String> = work.iter().map(described).collect();
            Failure::person(format!("{message}: {}", work.join("; "))).hint(format!(
                "take it (towline merge {id}), look at it (towline diff {id}), or remove the goal and keep the work under \
                 a private ref: towline rm --force {id}"
            ))
        }
        RemovalError::Submodules { workspace, .. } => Failure::person(message).hint(format!(
            "commit and push it in {}, or remove the goal and leave the workspace there: towline rm --force {id}",
            workspace.display()
        )),
        RemovalError::NoRepository { .. } => Failure::person(message).hint(format!(
            "put the repository back, or give the goal up and leave its files where they are: towline rm --force {id}"
        )),
        RemovalError::Files { .. } => Failure::internal(message),
        RemovalError::Workspace(error) => error.into(),
        RemovalError::Engine(error) => error.into(),
    }
}

fn described(work: &Unmerged) -> String {
    let Unmerged { kind, commit } = work;
    match kind {
        WorkKind::Files => format!("files in its workspace (as commit {})", commit.short()),
        WorkKind::Branch => format!("commits on its branch (up to {})", commit.short()),
        WorkKind::Candidate => format!("the candidate {}", commit.short()),
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
