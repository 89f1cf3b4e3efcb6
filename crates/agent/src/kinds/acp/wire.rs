//! What agents write, as far as it is read. Every field may be missing or of another shape than in the schema: such a
//! field counts as missing and never costs the rest of the frame.
//!
//! Parts that only some frames need stay raw until they are read.

pub(super) use crate::json::{Text, lenient as read, owned, text};
use crate::json::{lenient_objects, objects};

objects! { "camelCase":
    /// The parameters of `session/update`. Nothing of a notification that is of another shape can be used.
    #[derive(Default)]
    Notification<'a> {
        session_id: Option<Text<'a>>,
        update: Option<Update<'a>>,
    }
}

lenient_objects! {
    /// The answer to `initialize`.
    Initialized<'a> {
        "protocolVersion" => protocol_version: u64,
        "agentCapabilities" => agent_capabilities: Capabilities<'a>,
        "agentInfo" => agent_info: AgentInfo<'a>,
    }

    Capabilities<'a> {
        "loadSession" => load_session: bool,
        "sessionCapabilities" => session_capabilities: SessionCapabilities<'a>,
        "mcpCapabilities" => mcp_capabilities: McpCapabilities,
    }

    McpCapabilities {
        "http" => http: bool,
    }

    SessionCapabilities<'a> {
        // Any value means yes.
        raw "resume" => resume,
    }

    AgentInfo<'a> {
        "version" => version: Option<Text<'a>>,
    }

    /// The answer to `session/new`, `session/load` and `session/resume`.
    Session<'a> {
        "sessionId" => session_id: Option<Text<'a>>,
        "modes" => modes: Modes<'a>,
        "models" => models: Models<'a>,
        "configOptions" => config_options: Vec<ConfigOption<'a>>,
    }

    Modes<'a> {
        "currentModeId" => current_mode_id: Option<Text<'a>>,
    }

    Models<'a> {
        "currentModelId" => current_model_id: Option<Text<'a>>,
    }

    ConfigOption<'a> {
        "id" => id: Text<'a>,
        "category" => category: Option<Text<'a>>,
        "currentValue" => current_value: Option<Text<'a>>,
        raw "options" => options,
    }

    /// The answer to `session/prompt`.
    Prompted<'a> {
        "stopReason" => stop_reason: Option<Text<'a>>,
        "usage" => usage: Option<TurnUsage>,
        "_meta" => meta: PromptMeta<'a>,
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

    PromptMeta<'a> {
        /// Only from Gemini CLI.
        "quota" => quota: Option<Quota<'a>>,
    }

    Quota<'a> {
        "token_count" => token_count: TokenCount,
        "model_usage" => model_usage: Vec<ModelUsage<'a>>,
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    TokenCount {
        "input_tokens" => input_tokens: u64,
        "output_tokens" => output_tokens: u64,
    }

    ModelUsage<'a> {
        "model" => model: Option<Text<'a>>,
        "token_count" => token_count: TokenCount,
    }

    /// All updates in one type, and the call of a permission request: their fields do not conflict.
    Update<'a> {
        /// Which update it is.
        "sessionUpdate" => session_update: Option<Text<'a>>,
        /// The message that a piece belongs to.
        "messageId" => message_id: Option<Text<'a>>,
        "toolCallId" => tool_call_id: Text<'a>,
        "title" => title: Option<Text<'a>>,
        "kind" => kind: Option<Text<'a>>,
        "status" => status: Option<Text<'a>>,
        "locations" => locations: Option<Vec<Location<'a>>>,
        "currentModeId" => current_mode_id: Option<Text<'a>>,
        /// How full the context is, and the cost of the whole session.
        "used" => used: Option<u64>,
        "size" => size: Option<u64>,
        "cost" => cost: Option<Cost<'a>>,
        // A content block, or the list of a tool call's content.
        raw "content" => content,
        raw "rawInput" => raw_input,
        raw "rawOutput" => raw_output,
        // The entries of a plan.
        raw "entries" => entries,
        raw "availableCommands" => available_commands,
        raw "_meta" => meta,
    }

    /// A content block.
    Content<'a> {
        "type" => kind: Text<'a>,
        "text" => text: Text<'a>,
        "uri" => uri: Option<Text<'a>>,
    }

    Location<'a> {
        "path" => path: Text<'a>,
    }

    /// A part of a tool call's content.
    ToolContent<'a> {
        "content" => content: Option<Content<'a>>,
        /// The file of a diff.
        "path" => path: Option<Text<'a>>,
        /// The new text of the file in a diff.
        "newText" => new_text: Option<Text<'a>>,
    }

    /// A tool's result in the agent's own format.
    RawOutput<'a> {
        "exitCode" => exit_code: Option<i32>,
        "exit_code" => exit_status: Option<i32>,
        "metadata" => metadata: OutputMetadata,
        raw "output" => output,
        raw "error" => error,
        raw "text" => text,
    }

    OutputMetadata {
        "exit" => exit: Option<i32>,
    }

    PlanEntry<'a> {
        "content" => content: Text<'a>,
        "status" => status: Text<'a>,
    }

    Command<'a> {
        "name" => name: Text<'a>,
    }

    UsageMeta<'a> {
        /// Only from the built-in agent.
        "towline" => towline: Option<AnswerUsage<'a>>,
    }

    /// The tokens of one answer of the model.
    AnswerUsage<'a> {
        "model" => model: Option<Text<'a>>,
        "input" => input: u64,
        "output" => output: u64,
        "cache_read" => cache_read: u64,
        "cache_write" => cache_write: u64,
    }

    Cost<'a> {
        "amount" => amount: Option<f64>,
        "currency" => currency: Option<Text<'a>>,
    }

    /// The parameters of `session/request_permission`.
    PermissionRequest<'a> {
        "toolCall" => tool_call: Update<'a>,
        "options" => options: Vec<PermissionOption<'a>>,
    }

    PermissionOption<'a> {
        "optionId" => option_id: Text<'a>,
        "kind" => kind: Text<'a>,
    }

    /// The parameters of `elicitation/create`.
    Elicitation<'a> {
        "mode" => mode: Option<Text<'a>>,
        "message" => message: Text<'a>,
        "requestedSchema" => requested_schema: Form<'a>,
    }

    Form<'a> {
        // The fields by name.
        raw "properties" => properties,
    }
}
