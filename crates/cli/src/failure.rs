//! Where every error becomes a message, a hint and an exit code.

use std::process::ExitCode;

use towline_api::{ErrorReport, ErrorWords};
use towline_app::Error;
use towline_config::ConfigError;
use towline_core::Phase;
use towline_view::hints::words;

/// An error as people read it.
pub(crate) fn error_text(error: &Error) -> String {
    let hint = error.way_out().map(|hint| format!("\n  hint: {}", words(&hint)));
    let message = match error {
        // Each of them is an error of its own.
        Error::Config(ConfigError::Problems(problems)) => {
            problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\nerror: ")
        }
        error => error.message(),
    };
    format!("error: {message}{}", hint.unwrap_or_default())
}

/// An error as programs read it.
pub(crate) fn error_report(error: &Error) -> ErrorReport {
    let (kind, hint) = (error.kind(), error.way_out().as_ref().map(words));
    ErrorReport { error: ErrorWords { kind, message: error.message(), hint, exit_code: kind.exit_code() } }
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
