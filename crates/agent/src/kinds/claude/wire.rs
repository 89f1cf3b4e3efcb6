//! The frames that the CLI writes. Fields are optional wherever possible: a missing or new field must not cost the
//! frame.
//!
//! Most frames are text deltas: strings are borrowed from the line if possible, and parts that only some frames need
//! stay raw until they are read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

pub(super) use crate::json::{Text, owned, text};

/// The parts of a `system` frame that are read even if its other fields are of another shape.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Subtype<'a> {
    pub(super) subtype: Option<Text<'a>>,
}

/// `stream_event`: an event of the API's stream.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct StreamLine<'a> {
    pub(super) event: StreamEvent<'a>,
    pub(super) parent_tool_use_id: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct StreamEvent<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) delta: Option<Delta<'a>>,
    pub(super) message: Option<Message<'a>>,
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Delta<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    pub(super) text: Option<Text<'a>>,
}

/// `assistant` and `user`.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct MessageLine<'a> {
    pub(super) message: Message<'a>,
    pub(super) parent_tool_use_id: Option<Text<'a>>,
    /// Set on messages that the CLI writes itself to show a failed request.
    pub(super) error: Option<Text<'a>>,
    pub(super) tool_use_result: Option<&'a RawValue>,
    pub(super) uuid: Option<Text<'a>>,
    /// Set on messages that the CLI repeats: our own messages, and the output of its commands.
    #[serde(rename = "isReplay")]
    pub(super) is_replay: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Message<'a> {
    pub(super) id: Option<Text<'a>>,
    pub(super) model: Option<Text<'a>>,
    /// A string, or a list of blocks.
    pub(super) content: Option<&'a RawValue>,
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(super) struct Usage {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) cache_creation: Option<CacheCreation>,
}

/// How long a cache stores what was written to it.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(super) struct CacheCreation {
    pub(super) ephemeral_1h_input_tokens: Option<u64>,
}

/// A piece of a message's content, with the fields of all its kinds.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Block<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) text: Option<Text<'a>>,
    pub(super) thinking: Option<Text<'a>>,
    pub(super) id: Option<Text<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) input: Option<&'a RawValue>,
    pub(super) tool_use_id: Option<Text<'a>>,
    /// A string, or a list of blocks.
    pub(super) content: Option<&'a RawValue>,
    pub(super) is_error: Option<bool>,
}

/// The content of a message or a tool result.
pub(super) enum Content<'a> {
    Text(Text<'a>),
    Blocks(Vec<&'a RawValue>),
}

impl<'a> Content<'a> {
    /// Reads a string or a list of blocks; `None` when it is neither.
    pub(super) fn read(raw: Option<&'a RawValue>) -> Option<Self> {
        let json = raw.map_or("[]", RawValue::get);
        match json.as_bytes().first() {
            Some(b'"') => serde_json::from_str(json).ok().map(Self::Text),
            _ => serde_json::from_str(json).ok().map(Self::Blocks),
        }
    }
}

/// The structured part of a tool's result, if it is an object.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ToolUseResult {
    pub(super) interrupted: Option<bool>,
}

/// All `system` frames that are read, in one type: their fields do not conflict.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct SystemLine<'a> {
    pub(super) subtype: Option<Text<'a>>,
    pub(super) session_id: Option<Text<'a>>,
    pub(super) cwd: Option<Text<'a>>,
    pub(super) model: Option<Text<'a>>,
    pub(super) claude_code_version: Option<Text<'a>>,
    pub(super) mcp_servers: Option<&'a RawValue>,
    pub(super) attempt: Option<u32>,
    pub(super) retry_delay_ms: Option<f64>,
    pub(super) error_status: Option<u16>,
    pub(super) error: Option<&'a RawValue>,
    pub(super) status: Option<&'a RawValue>,
    pub(super) compact_metadata: Option<CompactMetadata>,
    pub(super) compact_result: Option<Text<'a>>,
    pub(super) compact_error: Option<Text<'a>>,
    pub(super) task_id: Option<Text<'a>>,
    pub(super) description: Option<Text<'a>>,
    pub(super) patch: Option<TaskPatch<'a>>,
    pub(super) tool_name: Option<Text<'a>>,
    pub(super) tool_use_id: Option<Text<'a>>,
    pub(super) content: Option<Text<'a>>,
    pub(super) level: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CompactMetadata {
    pub(super) pre_tokens: Option<u64>,
    pub(super) post_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct TaskPatch<'a> {
    pub(super) status: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct McpStatus<'a> {
    pub(super) name: Text<'a>,
    pub(super) status: Text<'a>,
}

/// A frame of the type `rate_limit_event`.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct RateLimitLine<'a> {
    pub(super) rate_limit_info: RateLimitInfo<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct RateLimitInfo<'a> {
    pub(super) status: Text<'a>,
    pub(super) resets_at: Option<f64>,
    pub(super) rate_limit_type: Option<Text<'a>>,
    pub(super) utilization: Option<f64>,
    pub(super) is_using_overage: Option<bool>,
}

/// `control_request` from the CLI.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ControlLine<'a> {
    pub(super) request_id: Text<'a>,
    pub(super) request: ControlRequest<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ControlRequest<'a> {
    pub(super) subtype: Text<'a>,
    pub(super) tool_name: Option<Text<'a>>,
    pub(super) input: Option<&'a RawValue>,
    pub(super) tool_use_id: Option<Text<'a>>,
}

/// `control_cancel_request`: the CLI no longer waits for our answer.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct CancelLine<'a> {
    pub(super) request_id: Text<'a>,
}

/// `AskUserQuestion`: the model asks a person.
#[derive(Debug, Deserialize)]
pub(super) struct Questions {
    pub(super) questions: Vec<Question>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Question {
    pub(super) question: String,
    #[serde(default)]
    pub(super) options: Vec<Choice>,
    #[serde(rename = "multiSelect", default)]
    pub(super) many: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    pub(super) label: String,
    #[serde(default)]
    pub(super) description: String,
}

/// `control_response`: the CLI's answer to our request.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ControlAnswerLine<'a> {
    pub(super) response: ControlAnswer<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ControlAnswer<'a> {
    pub(super) subtype: Text<'a>,
    pub(super) error: Option<Text<'a>>,
}

/// A frame of the type `auth_status`.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct AuthStatusLine<'a> {
    pub(super) error: Option<Text<'a>>,
}

/// `result`: the end of a turn. Usage stays raw, so that a change there cannot cost the result.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ResultLine<'a> {
    pub(super) subtype: Text<'a>,
    pub(super) is_error: Option<bool>,
    pub(super) api_error_status: Option<u16>,
    pub(super) result: Option<Text<'a>>,
    pub(super) stop_reason: Option<Text<'a>>,
    pub(super) terminal_reason: Option<Text<'a>>,
    pub(super) num_turns: Option<u32>,
    pub(super) total_cost_usd: Option<f64>,
    /// The name of `total_cost_usd` in older versions.
    pub(super) cost_usd: Option<f64>,
    #[serde(rename = "modelUsage")]
    pub(super) model_usage: Option<&'a RawValue>,
    /// Only in newer versions.
    pub(super) model_usage_since_last_result: Option<&'a RawValue>,
    pub(super) structured_output: Option<&'a RawValue>,
    pub(super) permission_denials: Option<&'a RawValue>,
    pub(super) errors: Option<&'a RawValue>,
}

/// `modelUsage`: by model, cumulative over the process, or over the session in newer versions.
pub(super) type ModelUsage = BTreeMap<String, ModelUsed>;

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelUsed {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) context_window: Option<u64>,
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Denial<'a> {
    pub(super) tool_name: Text<'a>,
    pub(super) tool_use_id: Text<'a>,
}
