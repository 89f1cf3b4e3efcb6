//! What the CLI writes: one JSON object per line, with its kind in `type`. Unused fields are left out. A field that
//! some frames of a type lack is optional in all of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::json::objects;
pub(super) use crate::json::{Text, owned};

objects! { "snake_case":
    /// `init`: the conversation exists.
    Init<'a> {
        session_id: Text<'a>,
        model: Option<Text<'a>>,
    }

    /// `message`: a message or a piece of it.
    Message<'a> {
        timestamp: Option<Text<'a>>,
        role: Text<'a>,
        content: Text<'a>,
        /// Whether it is a piece of a message.
        #[serde(default)]
        delta: bool,
    }

    /// `tool_use`: the model calls a tool.
    ToolUse<'a> {
        tool_name: Text<'a>,
        tool_id: Text<'a>,
        #[serde(default)]
        parameters: Value,
    }

    /// `tool_result`: the call has ended.
    ToolResult<'a> {
        tool_id: Text<'a>,
        status: Text<'a>,
        output: Option<Text<'a>>,
        error: Option<Failure>,
    }

    #[derive(Clone, Default, PartialEq)]
    Failure {
        /// The CLI's name for it.
        #[serde(rename = "type", default)]
        kind: String,
        #[serde(default)]
        message: String,
    }

    /// `error`: an error that may not end the turn.
    ErrorLine<'a> {
        severity: Option<Text<'a>>,
        message: Text<'a>,
    }

    /// `result`: the turn is over.
    ResultLine<'a> {
        status: String,
        error: Option<Failure>,
        stats: Option<Stats<'a>>,
    }
}

impl Message<'_> {
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.timestamp.as_deref()?.parse().ok()
    }
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
