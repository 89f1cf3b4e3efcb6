//! What the app server writes, as far as we read it. Fields that we do not need to go on may be missing or null.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The answer to the beginning, or the going on, of a conversation.
#[derive(Debug, Deserialize)]
pub(super) struct ThreadAnswer {
    pub(super) thread: Thread,
    pub(super) model: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Thread {
    pub(super) id: String,
    pub(super) cli_version: Option<String>,
}

/// The answer to a prompt: its turn.
#[derive(Debug, Deserialize)]
pub(super) struct TurnAnswer {
    pub(super) turn: Turn,
}

/// `turn/started` and `turn/completed`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnNews {
    pub(super) thread_id: String,
    pub(super) turn: Turn,
}

#[derive(Debug, Deserialize)]
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) error: Option<TurnError>,
}

/// `error`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorNews {
    pub(super) thread_id: String,
    pub(super) error: TurnError,
    pub(super) will_retry: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnError {
    pub(super) message: String,
    /// A name, or an object with a name as its only field.
    pub(super) codex_error_info: Option<Value>,
    pub(super) additional_details: Option<String>,
}

/// `item/started` and `item/completed`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ItemNews<'a> {
    pub(super) thread_id: String,
    #[serde(borrow)]
    pub(super) item: &'a RawValue,
}

#[derive(Debug, Deserialize)]
pub(super) struct ItemHead {
    pub(super) r#type: String,
}

/// What a turn is made of.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Item {
    UserMessage {
        client_id: Option<String>,
    },
    AgentMessage {
        text: String,
    },
    Plan {
        text: String,
    },
    Reasoning {
        #[serde(default)]
        summary: Vec<String>,
        #[serde(default)]
        content: Vec<String>,
    },
    ContextCompaction {},
    CommandExecution(CommandItem),
    FileChange {
        id: String,
        status: String,
        changes: Vec<FileChange>,
    },
    McpToolCall(McpItem),
    DynamicToolCall {
        id: String,
        tool: String,
        status: String,
        arguments: Value,
    },
    CollabAgentToolCall(CollabItem),
    WebSearch {
        id: String,
        query: String,
    },
    ImageView {
        id: String,
        path: String,
    },
    ImageGeneration {
        id: String,
        status: String,
        saved_path: Option<String>,
    },
    /// Known, and nothing that is not told better elsewhere.
    #[serde(
        alias = "hookPrompt",
        alias = "functionCallOutput",
        alias = "subAgentActivity",
        alias = "sleep",
        alias = "enteredReviewMode",
        alias = "exitedReviewMode"
    )]
    Uninteresting {},
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandItem {
    pub(super) id: String,
    pub(super) command: String,
    pub(super) status: String,
    #[serde(default)]
    pub(super) command_actions: Vec<CommandAction>,
    pub(super) aggregated_output: Option<String>,
    pub(super) exit_code: Option<i32>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CommandAction {
    pub(super) r#type: String,
    pub(super) path: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct FileChange {
    pub(super) path: String,
    pub(super) kind: ChangeKind,
    pub(super) diff: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ChangeKind {
    pub(super) r#type: String,
    pub(super) move_path: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct McpItem {
    pub(super) id: String,
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) status: String,
    pub(super) arguments: Value,
    pub(super) result: Option<McpResult>,
    pub(super) error: Option<Message>,
}

#[derive(Debug, Deserialize)]
pub(super) struct McpResult {
    #[serde(default)]
    pub(super) content: Vec<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CollabItem {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) status: String,
    pub(super) prompt: Option<String>,
    #[serde(default)]
    pub(super) receiver_thread_ids: Vec<String>,
}

/// `warning`, `guardianWarning`, and the error of an MCP call.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) message: String,
}

/// `configWarning`.
#[derive(Debug, Deserialize)]
pub(super) struct ConfigWarning {
    pub(super) summary: String,
}

/// `item/agentMessage/delta`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delta {
    pub(super) thread_id: String,
    pub(super) delta: String,
}

/// `turn/plan/updated`.
#[derive(Debug, Deserialize)]
pub(super) struct PlanNews {
    pub(super) plan: Vec<PlanStep>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PlanStep {
    pub(super) step: String,
    pub(super) status: String,
}

/// `mcpServer/startupStatus/updated`.
#[derive(Debug, Deserialize)]
pub(super) struct ServerStatus {
    pub(super) name: String,
    pub(super) status: String,
    pub(super) error: Option<String>,
}

/// `model/rerouted`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rerouted {
    pub(super) from_model: String,
    pub(super) to_model: String,
}

/// `thread/tokenUsage/updated`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageNews {
    pub(super) thread_id: String,
    pub(super) turn_id: String,
    pub(super) token_usage: TokenUsage,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenUsage {
    /// Since the conversation began, in whichever process that was.
    pub(super) total: Counts,
    /// Of the last request.
    pub(super) last: Counts,
    pub(super) model_context_window: Option<i64>,
}

/// The input holds what was read from the cache and what was written to it; the output holds the reasoning.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    pub(super) total_tokens: i64,
    pub(super) input_tokens: i64,
    pub(super) cached_input_tokens: i64,
    #[serde(default)]
    pub(super) cache_write_input_tokens: i64,
    pub(super) output_tokens: i64,
}

/// `account/rateLimits/updated`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LimitsNews {
    pub(super) rate_limits: RateLimits,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RateLimits {
    pub(super) primary: Option<Window>,
    pub(super) secondary: Option<Window>,
    pub(super) rate_limit_reached_type: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Window {
    pub(super) used_percent: f64,
    pub(super) window_duration_mins: Option<i64>,
    /// Seconds since 1970.
    pub(super) resets_at: Option<i64>,
}

/// `serverRequest/resolved`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resolved<'a> {
    #[serde(borrow)]
    pub(super) request_id: &'a RawValue,
}

/// `item/commandExecution/requestApproval`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandApproval {
    pub(super) thread_id: String,
    pub(super) kind: Option<String>,
    pub(super) command: Option<String>,
    pub(super) network_approval_context: Option<NetworkContext>,
}

#[derive(Debug, Deserialize)]
pub(super) struct NetworkContext {
    pub(super) host: String,
    pub(super) protocol: String,
}

/// `item/fileChange/requestApproval`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileApproval {
    pub(super) thread_id: String,
    pub(super) item_id: String,
}

/// `item/permissions/requestApproval`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionsApproval {
    pub(super) thread_id: String,
    pub(super) permissions: Value,
}

/// `mcpServer/elicitation/request`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Elicitation {
    pub(super) thread_id: String,
    pub(super) server_name: String,
    #[serde(default)]
    pub(super) message: String,
    #[serde(rename = "_meta")]
    pub(super) meta: Option<ElicitationMeta>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ElicitationMeta {
    pub(super) codex_approval_kind: Option<String>,
    #[serde(default)]
    pub(super) tool_params: Value,
}

/// `item/tool/requestUserInput`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserInputRequest {
    pub(super) thread_id: String,
    pub(super) questions: Vec<Question>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Question {
    pub(super) id: String,
    pub(super) question: String,
    pub(super) options: Option<Vec<Choice>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    pub(super) label: String,
    #[serde(default)]
    pub(super) description: String,
}
