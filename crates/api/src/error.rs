//! What is printed instead of a report when a command fails.

use serde::{Deserialize, Serialize};

/// A command that failed. It is the last line on standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ErrorReport {
    pub error: ErrorWords,
}

/// What failed, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ErrorWords {
    /// The class of failures that it belongs to.
    pub kind: ErrorKind,
    /// What failed, and why.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The code that the process exits with.
    pub exit_code: u8,
}

/// Classes of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Towline or the machine is at fault.
    Internal,
    /// The request makes no sense; nothing was created.
    Usage,
    /// The named thing does not exist.
    NotFound,
    /// The checks fail.
    Failed,
    /// A person must do something first; nothing was changed.
    Person,
    /// The operator cancelled the run, but this is not recorded yet.
    Cancelled,
    /// The operator or a shutdown paused the run, but this is not recorded yet.
    Paused,
}

impl ErrorKind {
    /// The code that the process exits with.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Internal => 1,
            Self::Usage => 2,
            Self::Failed => 3,
            Self::Person => 4,
            Self::NotFound => 5,
            Self::Cancelled => 130,
            Self::Paused => 143,
        }
    }
}
