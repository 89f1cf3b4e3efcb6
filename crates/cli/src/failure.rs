//! Where every error becomes a message, a hint and an exit code.

use std::fmt;
use std::process::ExitCode;

use towline_api::{ErrorKind, ErrorReport, ErrorWords};
use towline_app::Error;
use towline_core::Phase;

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

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        Self { kind: error.kind(), message: error.message(), hint: error.way_out().as_ref().map(words) }
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
