//! What the app server writes, as far as we read it. Fields that we do not need to go on may be missing or null.

use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::lenient_objects;
pub(super) use crate::json::{Text, lenient};

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
pub(super) struct TurnNews<'a> {
    #[serde(borrow)]
    pub(super) thread_id: Text<'a>,
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
pub(super) struct ErrorNews<'a> {
    #[serde(borrow)]
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

/// `item/started` and `item/completed`, with the item as it is written or read in one go.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ItemNews<'a, I> {
    #[serde(borrow)]
    pub(super) thread_id: Text<'a>,
    pub(super) item: I,
}

#[derive(Debug, Deserialize)]
pub(super) struct ItemHead<'a> {
    #[serde(borrow)]
    pub(super) r#type: Text<'a>,
}

/// What a turn is made of.
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
    /// Known, and nothing that is not told better elsewhere.
    Uninteresting,
}

impl<'a> Item<'a> {
    /// Reads an item of this type, or what is left of it; an error when the type is not known, or it is of another shape.
    pub(super) fn read<D: Deserializer<'a>>(kind: &str, json: D) -> Result<Self, D::Error> {
        Ok(match kind {
            "userMessage" => Self::UserMessage(Deserialize::deserialize(json)?),
            "agentMessage" => Self::AgentMessage(Deserialize::deserialize(json)?),
            "plan" => Self::Plan(Deserialize::deserialize(json)?),
            "reasoning" => Self::Reasoning(Deserialize::deserialize(json)?),
            "contextCompaction" => IgnoredAny::deserialize(json).map(|_| Self::ContextCompaction)?,
            "commandExecution" => Self::CommandExecution(Deserialize::deserialize(json)?),
            "fileChange" => Self::FileChange(Deserialize::deserialize(json)?),
            "mcpToolCall" => Self::McpToolCall(Deserialize::deserialize(json)?),
            "dynamicToolCall" => Self::DynamicToolCall(Deserialize::deserialize(json)?),
            "collabAgentToolCall" => Self::CollabAgentToolCall(Deserialize::deserialize(json)?),
            "webSearch" => Self::WebSearch(Deserialize::deserialize(json)?),
            "imageView" => Self::ImageView(Deserialize::deserialize(json)?),
            "imageGeneration" => Self::ImageGeneration(Deserialize::deserialize(json)?),
            "hookPrompt" | "functionCallOutput" | "subAgentActivity" | "sleep" | "enteredReviewMode"
            | "exitedReviewMode" | "uninteresting" => {
                IgnoredAny::deserialize(json).map(|_| Self::Uninteresting)?
            }
            _ => return Err(D::Error::custom("an item of an unknown type")),
        })
    }
}

/// Only where the type comes first, as it usually does: then the rest is read as what it is at once.
impl<'de: 'a, 'a> Deserialize<'de> for Item<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TypeFirst;

        impl<'de> Visitor<'de> for TypeFirst {
            type Value = Item<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an item with its type first")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Item<'de>, A::Error> {
                match fields.next_entry::<Text<'de>, Text<'de>>()? {
                    Some((name, kind)) if name.as_str() == "type" => {
                        Item::read(&kind, MapAccessDeserializer::new(fields))
                    }
                    _ => Err(A::Error::custom("the type does not come first")),
                }
            }
        }

        deserializer.deserialize_map(TypeFirst)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserItem<'a> {
    #[serde(borrow)]
    pub(super) client_id: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TextItem<'a> {
    #[serde(borrow)]
    pub(super) text: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ReasoningItem<'a> {
    #[serde(borrow, default)]
    pub(super) summary: Vec<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) content: Vec<Text<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandItem<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) command: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow, default)]
    pub(super) command_actions: Vec<CommandAction<'a>>,
    #[serde(borrow)]
    pub(super) aggregated_output: Option<Text<'a>>,
    pub(super) exit_code: Option<i32>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CommandAction<'a> {
    #[serde(borrow)]
    pub(super) r#type: Text<'a>,
    #[serde(borrow)]
    pub(super) path: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FileItem<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
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
pub(super) struct McpItem<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) server: Text<'a>,
    #[serde(borrow)]
    pub(super) tool: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) arguments: &'a RawValue,
    #[serde(borrow)]
    pub(super) result: Option<McpResult<'a>>,
    pub(super) error: Option<Message>,
}

#[derive(Debug, Deserialize)]
pub(super) struct McpResult<'a> {
    #[serde(borrow, default)]
    pub(super) content: Vec<&'a RawValue>,
}

lenient_objects! {
    /// A part of what an MCP tool gave back.
    McpPart<'de> {
        "text" => text: Option<Text<'de>>,
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct DynamicItem<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) tool: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) arguments: &'a RawValue,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CollabItem<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) tool: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) prompt: Option<Text<'a>>,
    #[serde(default)]
    pub(super) receiver_thread_ids: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SearchItem<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) query: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ViewItem<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) path: Text<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImageItem<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) saved_path: Option<Text<'a>>,
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
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) thread_id: Text<'a>,
    #[serde(borrow)]
    pub(super) delta: Text<'a>,
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
pub(super) struct ServerStatus<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) error: Option<Text<'a>>,
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
pub(super) struct UsageNews<'a> {
    #[serde(borrow)]
    pub(super) thread_id: Text<'a>,
    #[serde(borrow)]
    pub(super) turn_id: Text<'a>,
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
