//! What the app server writes, as far as it is read. Fields that are not essential may be missing or null.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) use crate::json::{Text, lenient};
use crate::json::{lenient_objects, objects};

objects! { "camelCase":
    /// The answer to a request that opens or resumes a conversation.
    ThreadAnswer {
        thread: Thread,
        model: Option<String>,
    }

    Thread {
        id: String,
        cli_version: Option<String>,
    }

    /// The answer to a prompt: its turn.
    TurnAnswer {
        turn: Turn,
    }

    /// `turn/started` and `turn/completed`.
    TurnNews<'a> {
        thread_id: Text<'a>,
        turn: Turn,
    }

    Turn {
        id: String,
        status: String,
        error: Option<TurnError>,
    }

    /// The parameters of `error`.
    ErrorNews<'a> {
        thread_id: Text<'a>,
        error: TurnError,
        will_retry: bool,
    }

    #[derive(Clone, Default, PartialEq)]
    TurnError {
        message: String,
        /// A name, or an object with a name as its only field.
        codex_error_info: Option<Value>,
        additional_details: Option<String>,
    }

    ItemHead<'a> {
        r#type: Text<'a>,
    }

    UserItem<'a> {
        client_id: Option<Text<'a>>,
    }

    TextItem<'a> {
        text: Text<'a>,
    }

    ReasoningItem<'a> {
        #[serde(default)]
        summary: Vec<Text<'a>>,
        #[serde(default)]
        content: Vec<Text<'a>>,
    }

    CommandItem<'a> {
        id: Text<'a>,
        command: Text<'a>,
        status: Text<'a>,
        #[serde(default)]
        command_actions: Vec<CommandAction<'a>>,
        aggregated_output: Option<Text<'a>>,
        exit_code: Option<i32>,
    }

    CommandAction<'a> {
        r#type: Text<'a>,
        path: Option<Text<'a>>,
    }

    FileItem<'a> {
        id: Text<'a>,
        status: Text<'a>,
        changes: Vec<FileChange>,
    }

    #[derive(Clone)]
    FileChange {
        path: String,
        kind: ChangeKind,
        diff: String,
    }

    #[derive(Clone)]
    ChangeKind {
        r#type: String,
        #[serde(rename = "move_path")]
        move_path: Option<String>,
    }

    McpItem<'a> {
        id: Text<'a>,
        server: Text<'a>,
        tool: Text<'a>,
        status: Text<'a>,
        arguments: &'a RawValue,
        result: Option<McpResult<'a>>,
        error: Option<Message>,
    }

    McpResult<'a> {
        #[serde(default)]
        content: Vec<&'a RawValue>,
    }

    DynamicItem<'a> {
        id: Text<'a>,
        tool: Text<'a>,
        status: Text<'a>,
        arguments: &'a RawValue,
    }

    CollabItem<'a> {
        id: Text<'a>,
        tool: Text<'a>,
        status: Text<'a>,
        prompt: Option<Text<'a>>,
        #[serde(default)]
        receiver_thread_ids: Vec<String>,
    }

    SearchItem<'a> {
        id: Text<'a>,
        query: Text<'a>,
    }

    ViewItem<'a> {
        id: Text<'a>,
        path: Text<'a>,
    }

    ImageItem<'a> {
        id: Text<'a>,
        status: Text<'a>,
        saved_path: Option<Text<'a>>,
    }

    /// `warning`, `guardianWarning`, and the error of an MCP call.
    Message {
        message: String,
    }

    /// The parameters of `configWarning`.
    ConfigWarning {
        summary: String,
    }

    /// The parameters of `item/agentMessage/delta`.
    Delta<'a> {
        thread_id: Text<'a>,
        delta: Text<'a>,
    }

    /// The parameters of `turn/plan/updated`.
    PlanNews {
        plan: Vec<PlanStep>,
    }

    PlanStep {
        step: String,
        status: String,
    }

    /// The parameters of `mcpServer/startupStatus/updated`.
    ServerStatus<'a> {
        name: Text<'a>,
        status: Text<'a>,
        error: Option<Text<'a>>,
    }

    /// The parameters of `model/rerouted`.
    Rerouted {
        from_model: String,
        to_model: String,
    }

    /// The parameters of `thread/tokenUsage/updated`.
    UsageNews<'a> {
        thread_id: Text<'a>,
        turn_id: Text<'a>,
        token_usage: TokenUsage,
    }

    #[derive(Clone, Copy)]
    TokenUsage {
        /// Since the conversation began, in any process.
        total: Counts,
        last: Counts,
        model_context_window: Option<i64>,
    }

    /// The input includes cache reads and writes. The output includes reasoning.
    #[derive(Clone, Copy, Default)]
    Counts {
        total_tokens: i64,
        input_tokens: i64,
        cached_input_tokens: i64,
        #[serde(default)]
        cache_write_input_tokens: i64,
        output_tokens: i64,
    }

    /// The parameters of `account/rateLimits/updated`.
    LimitsNews {
        rate_limits: RateLimits,
    }

    RateLimits {
        primary: Option<Window>,
        secondary: Option<Window>,
        rate_limit_reached_type: Option<String>,
    }

    #[derive(Clone, Copy, PartialEq)]
    Window {
        used_percent: f64,
        window_duration_mins: Option<i64>,
        /// Seconds since 1970.
        resets_at: Option<i64>,
    }

    /// The parameters of `serverRequest/resolved`.
    Resolved<'a> {
        request_id: &'a RawValue,
    }

    /// The parameters of `item/commandExecution/requestApproval`.
    CommandApproval {
        thread_id: String,
        kind: Option<String>,
        command: Option<String>,
        network_approval_context: Option<NetworkContext>,
    }

    NetworkContext {
        host: String,
        protocol: String,
    }

    /// The parameters of `item/fileChange/requestApproval`.
    FileApproval {
        thread_id: String,
        item_id: String,
    }

    /// The parameters of `item/permissions/requestApproval`.
    PermissionsApproval {
        thread_id: String,
        permissions: Value,
    }

    /// The parameters of `mcpServer/elicitation/request`.
    Elicitation {
        thread_id: String,
        server_name: String,
        #[serde(default)]
        message: String,
        #[serde(rename = "_meta")]
        meta: Option<ElicitationMeta>,
    }

    ElicitationMeta {
        #[serde(rename = "codex_approval_kind")]
        codex_approval_kind: Option<String>,
        #[serde(default)]
        #[serde(rename = "tool_params")]
        tool_params: Value,
    }

    /// The parameters of `item/tool/requestUserInput`.
    UserInputRequest {
        thread_id: String,
        questions: Vec<Question>,
    }

    Question {
        id: String,
        question: String,
        options: Option<Vec<Choice>>,
    }

    Choice {
        label: String,
        #[serde(default)]
        description: String,
    }
}

/// `item/started` and `item/completed`, with the item as it is written or as it was read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a, I: Deserialize<'de>"))]
pub(super) struct ItemNews<'a, I> {
    pub(super) thread_id: Text<'a>,
    pub(super) item: I,
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
        Some(match kind {
            "userMessage" => Self::UserMessage(lenient(json)?),
            "agentMessage" => Self::AgentMessage(lenient(json)?),
            "plan" => Self::Plan(lenient(json)?),
            "reasoning" => Self::Reasoning(lenient(json)?),
            "contextCompaction" => Self::ContextCompaction,
            "commandExecution" => Self::CommandExecution(lenient(json)?),
            "fileChange" => Self::FileChange(lenient(json)?),
            "mcpToolCall" => Self::McpToolCall(lenient(json)?),
            "dynamicToolCall" => Self::DynamicToolCall(lenient(json)?),
            "collabAgentToolCall" => Self::CollabAgentToolCall(lenient(json)?),
            "webSearch" => Self::WebSearch(lenient(json)?),
            "imageView" => Self::ImageView(lenient(json)?),
            "imageGeneration" => Self::ImageGeneration(lenient(json)?),
            "hookPrompt" | "functionCallOutput" | "subAgentActivity" | "sleep" | "enteredReviewMode"
            | "exitedReviewMode" | "uninteresting" => Self::Uninteresting,
            _ => return None,
        })
    }
}

lenient_objects! {
    /// A part of an MCP tool's result.
    McpPart<'a> {
        "text" => text: Option<Text<'a>>,
    }
}
