//! The lines of a session file. A change of a name here is a change of the format.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use towline_core::MicroUsd;
use towline_provider::{CallResult, Item, Usage, WireFormat};

/// The format of session files.
pub(super) const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) id: String,
    pub(super) cwd: PathBuf,
    pub(super) model: String,
    pub(super) format: WireFormat,
    pub(super) created: Timestamp,
}

/// Every further line: what happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Record {
    /// The user or the model said something.
    Item {
        /// What was said.
        item: Item,
    },
    /// A call of the model's last answer came to its end.
    Result {
        /// What came of it.
        result: CallResult,
    },
    /// The model was asked.
    Usage {
        /// What for.
        purpose: Purpose,
        /// The model.
        model: String,
        /// What it took.
        usage: Usage,
        /// What that cost, where prices were known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<MicroUsd>,
    },
    /// The mode changed.
    Mode {
        /// The new one.
        mode: Mode,
    },
    /// The model changed.
    Model {
        /// The new one.
        model: String,
    },
    /// The conversation was replaced by a shorter one.
    Compacted {
        /// Tokens before.
        before: u64,
        /// Tokens after, as far as that can be guessed.
        after: u64,
        /// What the conversation is now.
        items: Vec<Item>,
    },
}

/// What the model was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Purpose {
    /// To go on.
    Answer,
    /// To sum up the conversation.
    Summary,
}

/// Whether calls that act are asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// They are.
    #[default]
    Ask,
    /// They are not.
    Bypass,
}

impl Mode {
    pub(super) const ALL: [Self; 2] = [Self::Ask, Self::Bypass];

    /// Its id in the protocol.
    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Bypass => "bypass",
        }
    }
}
