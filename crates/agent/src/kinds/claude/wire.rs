//! The frames that the CLI writes. Fields are optional wherever possible: a missing or new field must not cost the
//! frame.
//!
//! Most frames are text deltas: strings are borrowed from the line if possible, and parts that only some frames need
//! stay raw until they are read.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::json::objects;
pub(super) use crate::json::{Text, owned, text};

objects! { "snake_case":
    /// The parts of a `system` frame that are read even if its other fields are of another shape.
    Subtype<'a> {
        subtype: Option<Text<'a>>,
    }

    /// `stream_event`: an event of the API's stream.
    StreamLine<'a> {
        event: StreamEvent<'a>,
        parent_tool_use_id: Option<Text<'a>>,
    }

    StreamEvent<'a> {
        #[serde(rename = "type")]
        kind: Text<'a>,
        delta: Option<Delta<'a>>,
        message: Option<Message<'a>>,
        usage: Option<Usage>,
    }

    Delta<'a> {
        #[serde(rename = "type")]
        kind: Option<Text<'a>>,
        text: Option<Text<'a>>,
        /// Missing where the CLI itself ends a message that was cut off.
        stop_reason: Option<Text<'a>>,
    }

    /// `assistant` and `user`.
    MessageLine<'a> {
        message: Message<'a>,
        parent_tool_use_id: Option<Text<'a>>,
        /// Set on messages that the CLI writes itself to show a failed request.
        error: Option<Text<'a>>,
        tool_use_result: Option<&'a RawValue>,
        uuid: Option<Text<'a>>,
        /// Set on messages that the CLI repeats: our own messages, and the output of its commands.
        #[serde(rename = "isReplay")]
        is_replay: Option<bool>,
    }

    Message<'a> {
        id: Option<Text<'a>>,
        model: Option<Text<'a>>,
        /// A string, or a list of blocks.
        content: Option<&'a RawValue>,
        usage: Option<Usage>,
    }

    #[derive(Default, Clone, Copy)]
    Usage {
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
        cache_creation_input_tokens: Option<u64>,
        cache_read_input_tokens: Option<u64>,
        cache_creation: Option<CacheCreation>,
    }

    /// How long a cache stores what was written to it.
    #[derive(Default, Clone, Copy)]
    CacheCreation {
        ephemeral_1h_input_tokens: Option<u64>,
    }

    /// A piece of a message's content, with the fields of all its kinds.
    Block<'a> {
        #[serde(rename = "type")]
        kind: Text<'a>,
        text: Option<Text<'a>>,
        thinking: Option<Text<'a>>,
        /// The whole of a thought, encrypted, in base64.
        signature: Option<Text<'a>>,
        /// The same of a thought that is not shown at all.
        data: Option<Text<'a>>,
        id: Option<Text<'a>>,
        name: Option<Text<'a>>,
        input: Option<&'a RawValue>,
        tool_use_id: Option<Text<'a>>,
        /// A string, or a list of blocks.
        content: Option<&'a RawValue>,
        is_error: Option<bool>,
    }

    /// The structured part of a tool's result, if it is an object.
    #[derive(Default)]
    ToolUseResult {
        interrupted: Option<bool>,
    }

    /// All `system` frames that are read, in one type: their fields do not conflict.
    SystemLine<'a> {
        subtype: Option<Text<'a>>,
        session_id: Option<Text<'a>>,
        cwd: Option<Text<'a>>,
        model: Option<Text<'a>>,
        claude_code_version: Option<Text<'a>>,
        mcp_servers: Option<&'a RawValue>,
        attempt: Option<u32>,
        retry_delay_ms: Option<f64>,
        error_status: Option<u16>,
        error: Option<&'a RawValue>,
        status: Option<&'a RawValue>,
        compact_metadata: Option<CompactMetadata>,
        compact_result: Option<Text<'a>>,
        compact_error: Option<Text<'a>>,
        task_id: Option<Text<'a>>,
        description: Option<Text<'a>>,
        patch: Option<TaskPatch<'a>>,
        tool_name: Option<Text<'a>>,
        tool_use_id: Option<Text<'a>>,
        content: Option<Text<'a>>,
        level: Option<Text<'a>>,
    }

    CompactMetadata {
        pre_tokens: Option<u64>,
        post_tokens: Option<u64>,
    }

    TaskPatch<'a> {
        status: Option<Text<'a>>,
    }

    McpStatus<'a> {
        name: Text<'a>,
        status: Text<'a>,
    }

    /// A frame of the type `rate_limit_event`.
    RateLimitLine<'a> {
        rate_limit_info: RateLimitInfo<'a>,
    }

    /// `control_request` from the CLI.
    ControlLine<'a> {
        request_id: Text<'a>,
        request: ControlRequest<'a>,
    }

    ControlRequest<'a> {
        subtype: Text<'a>,
        tool_name: Option<Text<'a>>,
        input: Option<&'a RawValue>,
        tool_use_id: Option<Text<'a>>,
    }

    /// `control_cancel_request`: the CLI no longer waits for our answer.
    CancelLine<'a> {
        request_id: Text<'a>,
    }

    /// `AskUserQuestion`: the model asks a person.
    Questions {
        questions: Vec<Question>,
    }

    Question {
        question: String,
        #[serde(default)]
        options: Vec<Choice>,
        #[serde(rename = "multiSelect", default)]
        many: bool,
    }

    Choice {
        label: String,
        #[serde(default)]
        description: String,
    }

    /// `control_response`: the CLI's answer to our request.
    ControlAnswerLine<'a> {
        response: ControlAnswer<'a>,
    }

    ControlAnswer<'a> {
        subtype: Text<'a>,
        error: Option<Text<'a>>,
    }

    /// A frame of the type `auth_status`.
    AuthStatusLine<'a> {
        error: Option<Text<'a>>,
    }

    /// `result`: the end of a turn. Usage stays raw, so that a change there cannot cost the result.
    ResultLine<'a> {
        subtype: Text<'a>,
        is_error: Option<bool>,
        api_error_status: Option<u16>,
        result: Option<Text<'a>>,
        stop_reason: Option<Text<'a>>,
        terminal_reason: Option<Text<'a>>,
        num_turns: Option<u32>,
        total_cost_usd: Option<f64>,
        /// The name of `total_cost_usd` in older versions.
        cost_usd: Option<f64>,
        #[serde(rename = "modelUsage")]
        model_usage: Option<&'a RawValue>,
        /// Only in newer versions.
        model_usage_since_last_result: Option<&'a RawValue>,
        structured_output: Option<&'a RawValue>,
        permission_denials: Option<&'a RawValue>,
        errors: Option<&'a RawValue>,
    }

    Denial<'a> {
        tool_name: Text<'a>,
        tool_use_id: Text<'a>,
    }
}

objects! { "camelCase":
    RateLimitInfo<'a> {
        status: Text<'a>,
        resets_at: Option<f64>,
        rate_limit_type: Option<Text<'a>>,
        utilization: Option<f64>,
        is_using_overage: Option<bool>,
    }

    #[derive(Default, Clone, Copy)]
    ModelUsed {
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
        cache_read_input_tokens: Option<u64>,
        cache_creation_input_tokens: Option<u64>,
        context_window: Option<u64>,
        #[serde(rename = "costUSD")]
        cost_usd: Option<f64>,
    }
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

/// `modelUsage`: by model, cumulative over the process, or over the session in newer versions.
pub(super) type ModelUsage = BTreeMap<String, ModelUsed>;
