//! What agents write, as far as it is read. Every field may be missing or of another shape than the schema says:
//! such a field is as good as none, and never costs us the rest of the frame.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The answer to `initialize`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Initialized {
    #[serde(deserialize_with = "lenient")]
    pub(super) protocol_version: u64,
    #[serde(deserialize_with = "lenient")]
    pub(super) agent_capabilities: Capabilities,
    #[serde(deserialize_with = "lenient")]
    pub(super) agent_info: AgentInfo,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Capabilities {
    #[serde(deserialize_with = "lenient")]
    pub(super) load_session: bool,
    #[serde(deserialize_with = "lenient")]
    pub(super) session_capabilities: SessionCapabilities,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionCapabilities {
    /// Anything but null says yes.
    pub(super) resume: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AgentInfo {
    #[serde(deserialize_with = "lenient")]
    pub(super) version: Option<String>,
}

/// The answer to `session/new`, `session/load` and `session/resume`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Session {
    #[serde(deserialize_with = "lenient")]
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) modes: Modes,
    #[serde(deserialize_with = "lenient")]
    pub(super) models: Models,
    #[serde(deserialize_with = "lenient")]
    pub(super) config_options: Vec<ConfigOption>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Modes {
    #[serde(deserialize_with = "lenient")]
    pub(super) current_mode_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Models {
    #[serde(deserialize_with = "lenient")]
    pub(super) current_model_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ConfigOption {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) category: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) current_value: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) options: Option<Vec<Value>>,
}

/// The answer to `session/prompt`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Prompted {
    #[serde(deserialize_with = "lenient")]
    pub(super) stop_reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<TurnUsage>,
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    pub(super) meta: PromptMeta,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TurnUsage {
    #[serde(deserialize_with = "lenient")]
    pub(super) input_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    pub(super) output_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    pub(super) thought_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    pub(super) cached_read_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    pub(super) cached_write_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    pub(super) total_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptMeta {
    /// Gemini CLI's own.
    #[serde(deserialize_with = "lenient")]
    pub(super) quota: Option<Quota>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Quota {
    #[serde(deserialize_with = "lenient")]
    pub(super) token_count: TokenCount,
    #[serde(deserialize_with = "lenient")]
    pub(super) model_usage: Vec<ModelUsage>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct TokenCount {
    #[serde(deserialize_with = "lenient")]
    pub(super) input_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    pub(super) output_tokens: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelUsage {
    #[serde(deserialize_with = "lenient")]
    pub(super) model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) token_count: TokenCount,
}

/// `session/update`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Notification<'a> {
    pub(super) session_id: String,
    #[serde(borrow)]
    pub(super) update: &'a RawValue,
}

/// What every update says about itself.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpdateKind {
    pub(super) session_update: String,
}

/// A piece of a message or of the reasoning.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Chunk {
    #[serde(deserialize_with = "lenient")]
    pub(super) message_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) content: Content,
}

/// A content block.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) text: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) uri: Option<String>,
}

/// `tool_call`, `tool_call_update`, and the call of a permission request.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ToolCall {
    #[serde(deserialize_with = "lenient")]
    pub(super) tool_call_id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) locations: Option<Vec<Location>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) content: Option<Vec<ToolContent>>,
    pub(super) raw_input: Option<Value>,
    pub(super) raw_output: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Location {
    #[serde(deserialize_with = "lenient")]
    pub(super) path: String,
}

/// What a tool call shows.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ToolContent {
    #[serde(deserialize_with = "lenient")]
    pub(super) content: Option<Content>,
    /// The file of a diff.
    #[serde(deserialize_with = "lenient")]
    pub(super) path: Option<String>,
    /// What a diff leaves in the file.
    #[serde(deserialize_with = "lenient")]
    pub(super) new_text: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Plan {
    #[serde(deserialize_with = "lenient")]
    pub(super) entries: Vec<PlanEntry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PlanEntry {
    #[serde(deserialize_with = "lenient")]
    pub(super) content: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Commands {
    #[serde(deserialize_with = "lenient")]
    pub(super) available_commands: Vec<Command>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Command {
    #[serde(deserialize_with = "lenient")]
    pub(super) name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CurrentMode {
    #[serde(deserialize_with = "lenient")]
    pub(super) current_mode_id: Option<String>,
}

/// How full the context is, and what the whole session has cost.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageUpdate {
    #[serde(deserialize_with = "lenient")]
    pub(super) used: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) size: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cost: Option<Cost>,
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    pub(super) meta: UsageMeta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageMeta {
    /// The built-in agent's own.
    #[serde(deserialize_with = "lenient")]
    pub(super) towline: Option<AnswerUsage>,
}

/// The tokens of one answer of the model.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AnswerUsage {
    #[serde(deserialize_with = "lenient")]
    pub(super) model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) input: u64,
    #[serde(deserialize_with = "lenient")]
    pub(super) output: u64,
    #[serde(deserialize_with = "lenient")]
    pub(super) cache_read: u64,
    #[serde(deserialize_with = "lenient")]
    pub(super) cache_write: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Cost {
    #[serde(deserialize_with = "lenient")]
    pub(super) amount: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) currency: Option<String>,
}

/// `session/request_permission`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PermissionRequest {
    #[serde(deserialize_with = "lenient")]
    pub(super) tool_call: ToolCall,
    #[serde(deserialize_with = "lenient")]
    pub(super) options: Vec<PermissionOption>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PermissionOption {
    #[serde(deserialize_with = "lenient")]
    pub(super) option_id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) kind: String,
}

/// `elicitation/create`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Elicitation {
    #[serde(deserialize_with = "lenient")]
    pub(super) mode: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) message: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) requested_schema: Form,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Form {
    #[serde(deserialize_with = "lenient")]
    pub(super) properties: serde_json::Map<String, Value>,
}

/// Reads a value; one of another shape is as good as none.
pub(super) fn lenient<'de, D: Deserializer<'de>, T: serde::de::DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Reads a part of a frame; nothing when it is of another shape altogether.
pub(super) fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}
