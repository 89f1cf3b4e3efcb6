//! What the app server writes, as far as it is read. Fields that are not essential may be missing or null.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::lenient_objects;
pub(super) use crate::json::{Text, lenient};

/// The answer to a request that opens or resumes a conversation.
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
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct TurnNews<'a> {
    pub(super) thread_id: Text<'a>,
    pub(super) turn: Turn,
}

#[derive(Debug, Deserialize)]
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) error: Option<TurnError>,
}

/// The parameters of `error`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct ErrorNews<'a> {
    pub(super) thread_id: Text<'a>,
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

/// `item/started` and `item/completed`, with the item as it is written or as it was read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a, I: Deserialize<'de>"))]
pub(super) struct ItemNews<'a, I> {
    pub(super) thread_id: Text<'a>,
    pub(super) item: I,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ItemHead<'a> {
    pub(super) r#type: Text<'a>,
}

/// An item of a turn.
#[derive(Debug)]
pub(super) enum Item<'a> {
    UserMessage(UserItem<'a>),
    AgentMessage(TextItem<'a>),
    Plan(TextItem<'a>),
    Reasoning(ReasoningItem<'a>),
    ContextCompaction,
    CommandExecution(CommandItem<'a>),
    FileChange(FileItem<'a>),
    McpToolCall(McpItem<'a>),
    DynamicToolCall(DynamicItem<'a>),
    CollabAgentToolCall(CollabItem<'a>),
    WebSearch(SearchItem<'a>),
    ImageView(ViewItem<'a>),
    ImageGeneration(ImageItem<'a>),
    /// Known, but reported better elsewhere.
    Uninteresting,
}

impl<'a> Item<'a> {
    /// Reads an item of this type; `None` if the type is unknown or the item is of another shape.
    pub(super) fn read(kind: &str, json: &'a RawValue) -> Option<Self> {
        fn part<'a, T: Deserialize<'a>>(json: &'a RawValue) -> Option<T> {
            serde_json::from_str(json.get()).ok()
        }
        Some(match kind {
            "userMessage" => Self::UserMessage(part(json)?),
            "agentMessage" => Self::AgentMessage(part(json)?),
            "plan" => Self::Plan(part(json)?),
            "reasoning" => Self::Reasoning(part(json)?),
            "contextCompaction" => Self::ContextCompaction,
            "commandExecution" => Self::CommandExecution(part(json)?),
            "fileChange" => Self::FileChange(part(json)?),
            "mcpToolCall" => Self::McpToolCall(part(json)?),
            "dynamicToolCall" => Self::DynamicToolCall(part(json)?),
            "collabAgentToolCall" => Self::CollabAgentToolCall(part(json)?),
            "webSearch" => Self::WebSearch(part(json)?),
            "imageView" => Self::ImageView(part(json)?),
            "imageGeneration" => Self::ImageGeneration(part(json)?),
            "hookPrompt" | "functionCallOutput" | "subAgentActivity" | "sleep" | "enteredReviewMode"
            | "exitedReviewMode" | "uninteresting" => Self::Uninteresting,
            _ => return None,
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct UserItem<'a> {
    pub(super) client_id: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct TextItem<'a> {
    pub(super) text: Text<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ReasoningItem<'a> {
    #[serde(default)]
    pub(super) summary: Vec<Text<'a>>,
    #[serde(default)]
    pub(super) content: Vec<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct CommandItem<'a> {
    pub(super) id: Text<'a>,
    pub(super) command: Text<'a>,
    pub(super) status: Text<'a>,
    #[serde(default)]
    pub(super) command_actions: Vec<CommandAction<'a>>,
    pub(super) aggregated_output: Option<Text<'a>>,
    pub(super) exit_code: Option<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct CommandAction<'a> {
    pub(super) r#type: Text<'a>,
    pub(super) path: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct FileItem<'a> {
    pub(super) id: Text<'a>,
    pub(super) status: Text<'a>,
    pub(super) changes: Vec<FileChange>,
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
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct McpItem<'a> {
    pub(super) id: Text<'a>,
    pub(super) server: Text<'a>,
    pub(super) tool: Text<'a>,
    pub(super) status: Text<'a>,
    pub(super) arguments: &'a RawValue,
    pub(super) result: Option<McpResult<'a>>,
    pub(super) error: Option<Message>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct McpResult<'a> {
    #[serde(default)]
    pub(super) content: Vec<&'a RawValue>,
}

lenient_objects! {
    /// A part of an MCP tool's result.
    McpPart<'de> {
        "text" => text: Option<Text<'de>>,
    }
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct DynamicItem<'a> {
    pub(super) id: Text<'a>,
    pub(super) tool: Text<'a>,
    pub(super) status: Text<'a>,
    pub(super) arguments: &'a RawValue,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct CollabItem<'a> {
    pub(super) id: Text<'a>,
    pub(super) tool: Text<'a>,
    pub(super) status: Text<'a>,
    pub(super) prompt: Option<Text<'a>>,
    #[serde(default)]
    pub(super) receiver_thread_ids: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct SearchItem<'a> {
    pub(super) id: Text<'a>,
    pub(super) query: Text<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ViewItem<'a> {
    pub(super) id: Text<'a>,
    pub(super) path: Text<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct ImageItem<'a> {
    pub(super) id: Text<'a>,
    pub(super) status: Text<'a>,
    pub(super) saved_path: Option<Text<'a>>,
}

/// `warning`, `guardianWarning`, and the error of an MCP call.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) message: String,
}

/// The parameters of `configWarning`.
#[derive(Debug, Deserialize)]
pub(super) struct ConfigWarning {
    pub(super) summary: String,
}

/// The parameters of `item/agentMessage/delta`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct Delta<'a> {
    pub(super) thread_id: Text<'a>,
    pub(super) delta: Text<'a>,
}

/// The parameters of `turn/plan/updated`.
#[derive(Debug, Deserialize)]
pub(super) struct PlanNews {
    pub(super) plan: Vec<PlanStep>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PlanStep {
    pub(super) step: String,
    pub(super) status: String,
}

/// The parameters of `mcpServer/startupStatus/updated`.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct ServerStatus<'a> {
    pub(super) name: Text<'a>,
    pub(super) status: Text<'a>,
    pub(super) error: Option<Text<'a>>,
}

/// The parameters of `model/rerouted`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rerouted {
    pub(super) from_model: String,
    pub(super) to_model: String,
}

/// The parameters of `thread/tokenUsage/updated`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct UsageNews<'a> {
    pub(super) thread_id: Text<'a>,
    pub(super) turn_id: Text<'a>,
    pub(super) token_usage: TokenUsage,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenUsage {
    /// Since the conversation began, in any process.
    pub(super) total: Counts,
    pub(super) last: Counts,
    pub(super) model_context_window: Option<i64>,
}

/// The input includes cache reads and writes. The output includes reasoning.
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

/// The parameters of `account/rateLimits/updated`.
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

/// The parameters of `serverRequest/resolved`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct Resolved<'a> {
    pub(super) request_id: &'a RawValue,
}

/// The parameters of `item/commandExecution/requestApproval`.
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

/// The parameters of `item/fileChange/requestApproval`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileApproval {
    pub(super) thread_id: String,
    pub(super) item_id: String,
}

/// The parameters of `item/permissions/requestApproval`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionsApproval {
    pub(super) thread_id: String,
    pub(super) permissions: Value,
}

/// The parameters of `mcpServer/elicitation/request`.
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

/// The parameters of `item/tool/requestUserInput`.
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
