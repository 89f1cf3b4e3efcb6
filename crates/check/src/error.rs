//! What keeps a verdict from being reached. A check that fails is none of these: that is a verdict.

use std::io;
use std::path::PathBuf;

use towline_core::{AgentName, NoOpinion};
use towline_process::ProcessError;
use towline_workspace::WorkspaceError;

/// Why there is no verdict, or why a workspace is not ready.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The caller asked to stop. Nothing of what ran is left.
    #[error("the checks were stopped before their end")]
    Stopped,
    /// A setup command failed in the workspace.
    #[error(
        "the setup command `{command}` failed ({problem}); correct what it needs and retry, or correct it in the `setup` \
         list and start a new goal{}",
        printed(evidence)
    )]
    Setup {
        command: String,
        /// How it ended.
        problem: String,
        /// The end of what it printed.
        evidence: String,
    },
    /// A check's pattern is not a regular expression.
    #[error(
        "the pattern `{pattern}` of the check `{check}` is not a regular expression: {message}; correct it"
    )]
    BadPattern { check: String, pattern: String, message: String },
    /// A check that could prove nothing.
    #[error("the check `{check}` {problem}")]
    BadCheck {
        check: String,
        /// What is wrong with it, and what to do.
        problem: &'static str,
    },
    /// A check's paths cannot be used.
    #[error("the check `{check}` cannot be used: {source}")]
    BadPaths {
        check: String,
        /// What is wrong with them.
        source: WorkspaceError,
    },
    /// A judge gave no verdict, for a reason that has nothing to do with the work. All other checks are met.
    #[error("the judge of the check `{check}` gave no verdict")]
    NoOpinion { check: String, agent: AgentName, reason: NoOpinion },
    /// A candidate whose protected files are not those of the base.
    #[error(
        "the candidate is not what it should be: a protected path differs from the base ({change}); retry the goal, \
         so that a new candidate is made"
    )]
    NotProtected {
        /// The first path, and how it changed.
        change: String,
    },
    /// The directories of setup and checks outside of the checkout could not be made.
    #[error(
        "a home for the checks cannot be made: {0}; see that the state directory can be written to, and retry"
    )]
    Private(#[source] io::Error),
    /// `[sandbox]` demands one, and there is none.
    #[error("{0}")]
    NoSandbox(String),
    /// The goal has no workspace, so there is no work to check.
    #[error("the goal has no workspace to check; retry it, so that one is made")]
    NoWorkspace,
    /// The checkout could not be made.
    #[error(transparent)]
    Workspace(WorkspaceError),
    /// The supervision of a command failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A command's logs could not be used.
    #[error("cannot {action} {}: {source}; check its owner and the free space", path.display())]
    Logs {
        /// What was tried, as a verb.
        action: &'static str,
        /// The run's directory.
        path: PathBuf,
        source: io::Error,
    },
    /// Work in the background ended without a result.
    #[error("internal work of the checks was lost: {message}; run them again")]
    Lost { message: String },
}

impl From<WorkspaceError> for CheckError {
    fn from(error: WorkspaceError) -> Self {
        match error {
            WorkspaceError::Stopped => Self::Stopped,
            error => Self::Workspace(error),
        }
    }
}

fn printed(evidence: &str) -> String {
    match evidence.trim_end() {
        "" => "; it printed nothing".to_owned(),
        evidence => format!(". The end of what it printed:\n{evidence}"),
    }
}
