//! The lines of a session file. Renaming anything here changes the file format.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use towline_core::MicroUsd;
use towline_provider::{CallResult, Item, Usage, WireFormat};

/// The version of the file format.
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

/// Every further line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Record {
    /// A message of the user or the model, or the results of calls.
    Item { item: Item },
    /// A call of the model's last answer ended.
    Result { result: CallResult },
    /// The model answered.
    Usage {
        purpose: Purpose,
        model: String,
        /// The tokens of the answer.
        usage: Usage,
        /// Its cost, where prices were known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<MicroUsd>,
    },
    /// The mode changed.
    Mode { mode: Mode },
    /// The model changed.
    Model { model: String },
    /// The conversation was replaced by a shorter one.
    Compacted {
        before: u64,
        /// An estimate of the tokens afterwards.
        after: u64,
        /// The conversation from now on.
        items: Vec<Item>,
    },
}

/// What the model was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Purpose {
    /// The next answer of the conversation.
    Answer,
    /// A summary of the conversation.
    Summary,
}

/// Whether calls that act need permission. The protocol names it in the same way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// They need permission.
    #[default]
    Ask,
    /// They need none.
    Bypass,
}

impl Mode {
    pub(super) const ALL: [Self; 2] = [Self::Ask, Self::Bypass];
}
