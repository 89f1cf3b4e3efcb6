//! Errors of the scripted agent.

use std::io;
use std::path::PathBuf;

/// The text is not a valid script; the message names the line and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadScript(pub(super) String);

/// Why the scripted agent stopped before or during its turn. A step that fails is none of these: it is shown as a
/// failed tool call, and the turn continues.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The script cannot be read.
    #[error("cannot read the script {}: {source}; check the path", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The script is not valid.
    #[error("the script {} is not valid: {source}", path.display())]
    Bad { path: PathBuf, source: BadScript },
    /// There is no conversation to resume.
    #[error("no conversation found with session id `{session}`; start a new one")]
    NoConversation { session: String },
    /// The id cannot be a file name.
    #[error(
        "`{session}` cannot be a session id; use letters, digits, `-`, `_` and `.`, and no `.` at its start"
    )]
    BadSessionId { session: String },
    /// The progress of a conversation cannot be stored or read.
    #[error("cannot {action} {}: {source}; give another folder for the state", path.display())]
    State {
        /// The failed action, as a verb.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// There is no prompt on standard input.
    #[error("no prompt on standard input ({reason}); write one line like {{\"prompt\": \"…\"}}")]
    NoPrompt { reason: String },
    /// The reader of the events is gone.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
}
