//! The tools of the built-in agent.
//!
//! Each tool is a module; this one has what they share. Permission is not decided here: the turn asks for it first.

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

pub(crate) use towline_core::ToolKind;

pub(crate) use self::output::{HeadAndTail, whole_characters};
pub(crate) use self::toolbox::{ToolOptions, Toolbox};
pub(crate) use self::words::one_line;

/// Receives what a call prints while it runs.
pub(crate) type OutputSink<'a> = &'a mut (dyn FnMut(&[u8]) + Send);

/// What a call is about to do, for permission and display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Described {
    /// One line for people: the command, the path.
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    /// The files concerned, as absolute paths.
    pub(crate) paths: Vec<PathBuf>,
    /// Whether it needs permission.
    pub(crate) reach: Reach,
}

/// Whether a call needs permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It reads files of the workspace and changes nothing.
    Looks,
    /// It changes something, or reads elsewhere, so it needs permission.
    Acts,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The text for the model, bounded in size.
    pub(crate) output: String,
    pub(crate) status: Status,
}

impl Outcome {
    pub(crate) fn ok(output: impl Into<String>) -> Self {
        Self { output: output.into(), status: Status::Ok }
    }

    pub(crate) fn failed(output: impl Into<String>) -> Self {
        Self { output: output.into(), status: Status::Failed }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    /// It failed. The output names the reason and what to do instead.
    Failed,
}
