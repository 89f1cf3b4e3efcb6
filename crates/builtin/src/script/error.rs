//! What keeps a script from being played.

use std::io;
use std::path::PathBuf;

/// A text that is no script; the message says where and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadScript(pub(super) String);

/// Why the scripted agent gave up before or in the middle of its turn. A step that fails is none of these: it is
/// shown as a failed tool call, and the turn goes on.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The script cannot be read.
    #[error("cannot read the script {}: {source}; check the path", path.display())]
    Unreadable {
        /// The script.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The script is not understood.
    #[error("the script {} is not valid: {source}", path.display())]
    Bad {
        /// The script.
        path: PathBuf,
        /// What is wrong with it.
        source: BadScript,
    },
    /// There is nothing to resume.
    #[error("no conversation found with session id `{session}`; start a new one")]
    NoConversation {
        /// The id that was asked for.
        session: String,
    },
    /// The id cannot be a file's name.
    #[error(
        "`{session}` cannot be a session id; use letters, digits, `-`, `_` and `.`, and no `.` at its start"
    )]
    BadSessionId {
        /// The id that was given.
        session: String,
    },
    /// What the script remembers between its turns cannot be kept or understood.
    #[error("cannot {action} {}: {source}; give another folder for the state", path.display())]
    State {
        /// What was tried, as a verb.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// No prompt came.
    #[error("no prompt on standard input ({reason}); write one line like {{\"prompt\": \"…\"}}")]
    NoPrompt {
        /// What came instead.
        reason: String,
    },
    /// Nobody reads the events.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
}
