//! What the CLI writes: one JSON object per line, with its kind in `type`. Unused fields are left out. A field that
//! some frames of a type lack is optional in all of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

pub(super) use crate::json::{Text, owned};
use crate::lines::{Unknown, decode};

#[derive(Debug)]
pub(super) enum Line<'a> {
    Init(Init<'a>),
    Message(Message<'a>),
    ToolUse(ToolUse<'a>),
    ToolResult(ToolResult<'a>),
    Error(ErrorLine<'a>),
    Result(ResultLine<'a>),
}

impl<'a> Line<'a> {
    /// Reads a line of this type.
    pub(super) fn read(kind: &str, line: &'a str) -> Result<Self, Unknown> {
        match kind {
            "init" => decode(line, kind).map(Self::Init),
            "message" => decode(line, kind).map(Self::Message),
            "tool_use" => decode(line, kind).map(Self::ToolUse),
            "tool_result" => decode(line, kind).map(Self::ToolResult),
            "error" => decode(line, kind).map(Self::Error),
            "result" => decode(line, kind).map(Self::Result),
            _ => Err(Unknown::frame(line, kind)),
        }
    }
}

/// `init`: the conversation exists.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Init<'a> {
    pub(super) session_id: Text<'a>,
    pub(super) model: Option<Text<'a>>,
}

/// `message`: a message or a piece of it.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Message<'a> {
    pub(super) timestamp: Option<Text<'a>>,
    pub(super) role: Text<'a>,
    pub(super) content: Text<'a>,
    /// Whether it is a piece of a message.
    #[serde(default)]
    pub(super) delta: bool,
}

impl Message<'_> {
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.timestamp.as_deref()?.parse().ok()
    }
}

/// `tool_use`: the model calls a tool.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ToolUse<'a> {
    pub(super) tool_name: Text<'a>,
    pub(super) tool_id: Text<'a>,
    #[serde(default)]
    pub(super) parameters: Value,
}

/// `tool_result`: the call has ended.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ToolResult<'a> {
    pub(super) tool_id: Text<'a>,
    pub(super) status: Text<'a>,
    pub(super) output: Option<Text<'a>>,
    pub(super) error: Option<Failure>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Failure {
    /// The CLI's name for it.
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) message: String,
}

/// `error`: an error that may not end the turn.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ErrorLine<'a> {
    pub(super) severity: Option<Text<'a>>,
    pub(super) message: Text<'a>,
}

/// `result`: the turn is over.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ResultLine<'a> {
    pub(super) status: String,
    pub(super) error: Option<Failure>,
    pub(super) stats: Option<Stats<'a>>,
}

/// The usage of the process, in total and by model.
#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Stats<'a> {
    #[serde(default)]
    total_tokens: u64,
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    cached: Option<u64>,
    #[serde(default)]
    pub(super) models: BTreeMap<Text<'a>, Counts>,
}

impl Stats<'_> {
    pub(super) const fn all(&self) -> Counts {
        let Self { total_tokens, input_tokens, output_tokens, cached, .. } = *self;
        Counts { total_tokens, input_tokens, output_tokens, cached }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Counts {
    /// Includes reasoning, which has no field of its own.
    #[serde(default)]
    pub(super) total_tokens: u64,
    /// Includes tokens from the cache.
    #[serde(default)]
    pub(super) input_tokens: u64,
    /// Excludes the reasoning tokens.
    #[serde(default)]
    pub(super) output_tokens: u64,
    pub(super) cached: Option<u64>,
}
