//! What the CLI writes: one JSON object per line, told apart by `type`. Fields that do not concern us are left out;
//! those that some frames of a type lack may be missing in all of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// What every line has.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
}

/// `init`: the conversation exists.
#[derive(Debug, Deserialize)]
pub(super) struct Init {
    pub(super) session_id: String,
    pub(super) model: Option<String>,
}

/// `message`: something was said.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) timestamp: Option<String>,
    pub(super) role: String,
    pub(super) content: String,
    /// Whether it is a piece of a message.
    #[serde(default)]
    pub(super) delta: bool,
}

impl Message {
    /// When it was said.
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.timestamp.as_deref()?.parse().ok()
    }
}

/// `tool_use`: the model wants a tool to be used.
#[derive(Debug, Deserialize)]
pub(super) struct ToolUse {
    pub(super) tool_name: String,
    pub(super) tool_id: String,
    #[serde(default)]
    pub(super) parameters: Value,
}

/// `tool_result`: what came of it.
#[derive(Debug, Deserialize)]
pub(super) struct ToolResult {
    pub(super) tool_id: String,
    pub(super) status: String,
    pub(super) output: Option<String>,
    pub(super) error: Option<Failure>,
}

/// What failed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Failure {
    /// The CLI's name for it.
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) message: String,
}

/// `error`: something went wrong, and the turn may go on.
#[derive(Debug, Deserialize)]
pub(super) struct ErrorLine {
    pub(super) severity: Option<String>,
    pub(super) message: String,
}

/// `result`: the turn is over.
#[derive(Debug, Deserialize)]
pub(super) struct ResultLine {
    pub(super) status: String,
    pub(super) error: Option<Failure>,
    pub(super) stats: Option<Stats>,
}

/// What the process has used.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Stats {
    #[serde(flatten)]
    pub(super) all: Counts,
    #[serde(default)]
    pub(super) models: BTreeMap<String, Counts>,
}

/// Tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Counts {
    /// With the reasoning, which is nowhere else.
    #[serde(default)]
    pub(super) total_tokens: u64,
    /// With what came from the cache.
    #[serde(default)]
    pub(super) input_tokens: u64,
    /// Without the reasoning.
    #[serde(default)]
    pub(super) output_tokens: u64,
    #[serde(default)]
    pub(super) cached: u64,
}
