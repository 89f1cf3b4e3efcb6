//! How an attempt can end: one enum, every ending named. The words for them are in `end_kind`.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Timeout, show_duration};

/// The classified end of an attempt. An end that is not understood is [`End::Crashed`], never a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum End {
    /// A terminal frame without error: the agent reports that its turn is done.
    Completed,
    /// The agent asked something that only a person can answer.
    Asked,
    /// The agent asked to wait.
    Slept { duration: Duration, reason: String },
    /// The provider's quota is used up.
    RateLimited {
        /// When it opens again, if the provider announced it.
        until: Option<Timestamp>,
    },
    /// The provider is overloaded or has an error of its own.
    ServerError {
        /// The HTTP status, when known.
        status: Option<u16>,
        /// What the agent printed about it.
        message: String,
    },
    /// The credentials were refused.
    Auth {
        /// What the agent printed about it.
        message: String,
    },
    /// The conversation no longer fits the model's context.
    ContextOverflow,
    /// The session could not be resumed.
    ResumeRefused {
        /// Why, by type.
        why: Refusal,
    },
    /// The agent's own cap on turns was reached.
    MaxTurns,
    /// The agent's own cap on cost was reached.
    MaxBudget,
    /// The model refused to do the work.
    Declined { message: String },
    /// A tool was denied, and the turn changed nothing.
    PermissionDenied {
        tool: String,
        /// The rule that denied it, or that would allow it.
        rule: String,
    },
    /// A timeout was reached and the tree was ended.
    TimedOut {
        #[serde(rename = "clock")]
        timeout: Timeout,
    },
    /// A signal or an exit before any terminal frame, or a terminal frame with an error of no known kind.
    Crashed {
        /// What is known: exit code, signal, the error's text, the end of stderr.
        message: String,
    },
    /// Its supervisor is gone without a record, with the machine perhaps: nobody can know how it ended.
    Lost,
    /// The agent could not be started.
    SpawnFailed {
        /// What was in the way.
        problem: LaunchProblem,
    },
    /// The operator asked for it.
    Cancelled,
    /// A budget was spent while the attempt ran.
    OverBudget,
    /// The goal was paused, or the attempt's supervisor got a signal to end.
    Interrupted,
    /// The provider refused the request as it is (400), most often because of the conversation so far. Asking again does
    /// not help.
    Refused {
        /// The HTTP status, when known.
        status: Option<u16>,
        /// What the agent printed about it.
        message: String,
    },
    /// It printed more than a file may hold.
    OutputLimit,
}

impl End {
    /// Whether the agent was cut off: it may have left work, but it does not claim to be done.
    pub const fn is_bad(&self) -> bool {
        !matches!(
            self,
            Self::Completed
                | Self::Asked
                | Self::Slept { .. }
                | Self::PermissionDenied { .. }
                | Self::MaxTurns
                | Self::MaxBudget
        )
    }

    /// The agent's or the system's own message, if any.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::ServerError { message, .. }
            | Self::Refused { message, .. }
            | Self::Auth { message }
            | Self::Declined { message }
            | Self::Crashed { message } => (!message.is_empty()).then(|| message.clone()),
            Self::ResumeRefused { why } => Some(why.to_string()),
            Self::Slept { duration, reason } => Some(format!("{}: {reason}", show_duration(*duration))),
            Self::PermissionDenied { tool, rule } => Some(format!("{tool} by {rule}")),
            Self::TimedOut { timeout } => Some(format!("{timeout} timeout")),
            Self::SpawnFailed { problem } => Some(problem.to_string()),
            _ => None,
        }
    }
}

/// Why an agent would not resume a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// It has no conversation by that id, at least not for this directory.
    #[error("the agent knows no conversation by this id in this directory")]
    NotFound,
    /// Another process holds it, or the id was used before.
    #[error("the session id is already in use")]
    InUse,
}

/// Why an agent could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum LaunchProblem {
    /// No such program.
    #[error("`{program}` was not found; install it, or set `command` of the agent")]
    NotFound {
        /// The first word of the command.
        program: String,
    },
    /// It is there, but may not be executed.
    #[error("`{program}` is not executable; check its permissions")]
    NotExecutable {
        /// The first word of the command.
        program: String,
    },
    /// Its directory is gone.
    #[error("the workspace {path} does not exist")]
    NoDirectory {
        /// The directory it was to run in.
        path: String,
    },
    /// The user's repository was moved or deleted.
    #[error("{}", crate::phase::repository_gone(path))]
    NoRepository {
        /// Where it was.
        path: String,
    },
    /// The configuration of the goal's project cannot be used.
    #[error("the configuration cannot be used: {message}")]
    Configuration {
        /// What is wrong with it, and where.
        message: String,
    },
    /// Any other error of the system.
    #[error("{message}")]
    Other {
        /// The system's words.
        message: String,
    },
}
