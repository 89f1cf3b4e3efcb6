//! What the built-in agent can do in its workspace.
//!
//! Each tool is a module of its own; here is what they have in common. Whether a call may be made is not decided here:
//! the conversation asks for permission first.

mod arguments;
mod command;
mod edit;
mod fetch;
mod html;
mod lines;
mod list;
mod output;
mod places;
mod read;
mod search;
mod toolbox;
mod walk;
mod words;
mod write;

use std::path::PathBuf;

pub(crate) use self::output::HeadAndTail;
pub use self::toolbox::Fetch;
pub(crate) use self::toolbox::{ToolOptions, Toolbox};
pub(crate) use self::words::one_line;

/// What a call is about to do, for whoever permits it or looks on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Described {
    /// One line for people: the command, the path.
    pub(crate) title: String,
    /// What kind of thing it is.
    pub(crate) kind: ToolKind,
    /// The files it is about, as absolute paths.
    pub(crate) paths: Vec<PathBuf>,
    /// Whether it must be permitted first.
    pub(crate) reach: Reach,
}

/// The kinds of tools that the Agent Client Protocol knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolKind {
    /// Reads a file or lists files.
    Read,
    /// Changes a file.
    Edit,
    /// Looks for something.
    Search,
    /// Runs a command.
    Execute,
    /// Gets something from elsewhere.
    Fetch,
    /// Anything else.
    Other,
}

/// How far a call reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It looks at files of the workspace, and changes nothing.
    Looks,
    /// It changes something, or looks elsewhere: it needs permission.
    Acts,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// What the model is told, bounded in size.
    pub(crate) output: String,
    /// Whether it worked.
    pub(crate) status: Status,
}

impl Outcome {
    /// It worked.
    pub(crate) fn ok(output: impl Into<String>) -> Self {
        Self { output: output.into(), status: Status::Ok }
    }

    /// It did not work, and this is why.
    pub(crate) fn failed(output: impl Into<String>) -> Self {
        Self { output: output.into(), status: Status::Failed }
    }
}

/// Whether a call worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// It did what it says it does.
    Ok,
    /// It did not; the output says why and what to do instead.
    Failed,
}
