//! What agents write, as far as it is read. Every field may be missing or of another shape than in the schema: such a
//! field counts as missing and never costs the rest of the frame.
//!
//! Parts that only some frames need stay raw until they are read.

use serde_json::value::RawValue;

use crate::json::lenient_objects;
pub(super) use crate::json::{Text, lenient as read, owned, text};

lenient_objects! {
    /// The answer to `initialize`.
    Initialized<'de> {
        "protocolVersion" => protocol_version: u64,
        "agentCapabilities" => agent_capabilities: Capabilities<'de>,
        "agentInfo" => agent_info: AgentInfo<'de>,
    }

    Capabilities<'de> {
        "loadSession" => load_session: bool,
        "sessionCapabilities" => session_capabilities: SessionCapabilities<'de>,
        "mcpCapabilities" => mcp_capabilities: McpCapabilities,
    }

    McpCapabilities {
        "http" => http: bool,
    }

    SessionCapabilities<'de> {
        /// Any value means yes.
        "resume" => resume: Option<&'de RawValue>,
    }

    AgentInfo<'de> {
        "version" => version: Option<Text<'de>>,
    }

    /// The answer to `session/new`, `session/load` and `session/resume`.
    Session<'de> {
        "sessionId" => session_id: Option<Text<'de>>,
        "modes" => modes: Modes<'de>,
        "models" => models: Models<'de>,
        "configOptions" => config_options: Vec<ConfigOption<'de>>,
    }

    Modes<'de> {
        "currentModeId" => current_mode_id: Option<Text<'de>>,
    }

    Models<'de> {
        "currentModelId" => current_model_id: Option<Text<'de>>,
    }

    ConfigOption<'de> {
        "id" => id: Text<'de>,
        "category" => category: Option<Text<'de>>,
        "currentValue" => current_value: Option<Text<'de>>,
        "options" => options: Option<&'de RawValue>,
    }

    /// The answer to `session/prompt`.
    Prompted<'de> {
        "stopReason" => stop_reason: Option<Text<'de>>,
        "usage" => usage: Option<TurnUsage>,
        "_meta" => meta: PromptMeta<'de>,
    }

    #[derive(Clone, Copy)]
    TurnUsage {
        "inputTokens" => input_tokens: u64,
        "outputTokens" => output_tokens: u64,
        "thoughtTokens" => thought_tokens: u64,
        "cachedReadTokens" => cached_read_tokens: Option<u64>,
        "cachedWriteTokens" => cached_write_tokens: Option<u64>,
        "totalTokens" => total_tokens: Option<u64>,
    }

    PromptMeta<'de> {
        /// Only from Gemini CLI.
        "quota" => quota: Option<Quota<'de>>,
    }

    Quota<'de> {
        "token_count" => token_count: TokenCount,
        "model_usage" => model_usage: Vec<ModelUsage<'de>>,
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    TokenCount {
        "input_tokens" => input_tokens: u64,
        "output_tokens" => output_tokens: u64,
    }

    ModelUsage<'de> {
        "model" => model: Option<Text<'de>>,
        "token_count" => token_count: TokenCount,
    }

    /// The parameters of `session/update`.
    Notification<'de> {
        "sessionId" => session_id: Option<Text<'de>>,
        "update" => update: Option<Update<'de>>,
    }

    /// All updates in one type, and the call of a permission request: their fields do not conflict.
    Update<'de> {
        /// Which update it is.
        "sessionUpdate" => session_update: Option<Text<'de>>,
        /// The message that a piece belongs to.
        "messageId" => message_id: Option<Text<'de>>,
        /// A content block, or the list of a tool call's content.
        "content" => content: Option<&'de RawValue>,
        "toolCallId" => tool_call_id: Text<'de>,
        "title" => title: Option<Text<'de>>,
        "kind" => kind: Option<Text<'de>>,
        "status" => status: Option<Text<'de>>,
        "locations" => locations: Option<Vec<Location<'de>>>,
        "rawInput" => raw_input: Option<&'de RawValue>,
        "rawOutput" => raw_output: Option<&'de RawValue>,
        /// The entries of a plan.
        "entries" => entries: Option<&'de RawValue>,
        "availableCommands" => available_commands: Option<&'de RawValue>,
        "currentModeId" => current_mode_id: Option<Text<'de>>,
        /// How full the context is, and the cost of the whole session.
        "used" => used: Option<u64>,
        "size" => size: Option<u64>,
        "cost" => cost: Option<Cost<'de>>,
        "_meta" => meta: Option<&'de RawValue>,
    }

    /// A content block.
    Content<'de> {
        "type" => kind: Text<'de>,
        "text" => text: Text<'de>,
        "uri" => uri: Option<Text<'de>>,
    }

    Location<'de> {
        "path" => path: Text<'de>,
    }

    /// A part of a tool call's content.
    ToolContent<'de> {
        "content" => content: Option<Content<'de>>,
        /// The file of a diff.
        "path" => path: Option<Text<'de>>,
        /// The new text of the file in a diff.
        "newText" => new_text: Option<Text<'de>>,
    }

    /// A tool's result in the agent's own format.
    RawOutput<'de> {
        "exitCode" => exit_code: Option<i32>,
        "exit_code" => exit_status: Option<i32>,
        "metadata" => metadata: OutputMetadata,
        "output" => output: Option<&'de RawValue>,
        "error" => error: Option<&'de RawValue>,
        "text" => text: Option<&'de RawValue>,
    }

    OutputMetadata {
        "exit" => exit: Option<i32>,
    }

    PlanEntry<'de> {
        "content" => content: Text<'de>,
        "status" => status: Text<'de>,
    }

    Command<'de> {
        "name" => name: Text<'de>,
    }

    UsageMeta<'de> {
        /// Only from the built-in agent.
        "towline" => towline: Option<AnswerUsage<'de>>,
    }

    /// The tokens of one answer of the model.
    AnswerUsage<'de> {
        "model" => model: Option<Text<'de>>,
        "input" => input: u64,
        "output" => output: u64,
        "cache_read" => cache_read: u64,
        "cache_write" => cache_write: u64,
    }

    Cost<'de> {
        "amount" => amount: Option<f64>,
        "currency" => currency: Option<Text<'de>>,
    }

    /// The parameters of `session/request_permission`.
    PermissionRequest<'de> {
        "toolCall" => tool_call: Update<'de>,
        "options" => options: Vec<PermissionOption<'de>>,
    }

    PermissionOption<'de> {
        "optionId" => option_id: Text<'de>,
        "kind" => kind: Text<'de>,
    }

    /// The parameters of `elicitation/create`.
    Elicitation<'de> {
        "mode" => mode: Option<Text<'de>>,
        "message" => message: Text<'de>,
        "requestedSchema" => requested_schema: Form<'de>,
    }

    Form<'de> {
        /// The fields by name.
        "properties" => properties: Option<&'de RawValue>,
    }
}
