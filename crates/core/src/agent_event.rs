//! What an agent says and does, normalised: the same words for every agent.
//!
//! Agent protocols produce these from raw bytes; the engine stores them; nothing here says what follows.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Ask, Decision, MessageNo, MicroUsd, SessionId, Tokens, Usage};

/// One thing that an agent said or did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The conversation exists and has an id.
    SessionStarted(SessionStarted),
    /// A prompt was taken up.
    TurnStarted,
    /// A whole message.
    Message {
        /// Who speaks.
        role: Role,
        /// What was said.
        text: String,
    },
    /// A piece of a message while it is written; shown live, never stored.
    MessageDelta {
        /// The piece.
        text: String,
    },
    /// The model's reasoning, where it is shown.
    Thought {
        /// The reasoning.
        text: String,
    },
    /// A tool call, at each change of its status.
    Tool(ToolUse),
    /// The agent's list of what it means to do.
    Plan {
        /// The list, in order.
        entries: Vec<PlanEntry>,
    },
    /// What one message used: always an addition to what came before, never a running total.
    Usage {
        /// The model that was used.
        model: Option<String>,
        /// What was used.
        used: Usage,
        /// Tokens now in the model's context.
        context_used: Option<Tokens>,
        /// Tokens that fit the model's context.
        context_size: Option<Tokens>,
    },
    /// The provider said how full the quota is.
    RateLimit(Limit),
    /// The agent tries a failed request again by itself.
    Retrying {
        /// The HTTP status that failed.
        status: Option<u16>,
        /// The how-manieth try this is.
        attempt: u32,
        /// How long it waits first, in milliseconds.
        delay_ms: u64,
        /// The error as the agent names it.
        error: String,
    },
    /// The conversation was summarised.
    Compacted {
        /// Tokens in context before.
        before: Option<Tokens>,
        /// Tokens in context after.
        after: Option<Tokens>,
    },
    /// The conversation was to be summarised, and was not.
    NotCompacted {
        /// What the agent says about it.
        reason: String,
    },
    /// Only a person can answer this.
    Asked(Ask),
    /// The agent does not wait for the answer any more.
    Withdrawn {
        /// Its own id of the request.
        request: String,
    },
    /// The agent wants to wait once its turn has ended.
    SleepAsked {
        /// How long.
        duration: Duration,
        /// What for.
        reason: String,
    },
    /// How far the agent says that it is.
    Progress {
        /// In words.
        text: String,
        /// Out of a hundred.
        percent: Option<u8>,
    },
    /// The agent claims that the goal is reached. Only the checks say whether it is.
    Submitted {
        /// What it says that it did.
        summary: String,
    },
    /// A message of the operator's has reached the model.
    Heard {
        /// Which one.
        message: MessageNo,
    },
    /// A permission request was answered.
    Decided(Decision),
    /// Something worth telling that fits nothing else.
    Notice {
        /// What.
        text: String,
    },
    /// The turn is over; background work may go on.
    TurnEnded(TurnEnd),
    /// Frames that this version does not understand. Counted, never fatal; the raw log has every one of them.
    Unrecognised {
        /// What they seem to be, for counting: a frame type, or `not JSON`, or `too long`.
        what: String,
        /// The beginning of the last one.
        raw: String,
        /// How many this stands for: a flood of one kind is told of less and less often.
        count: u64,
    },
}

/// The conversation exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStarted {
    /// The agent's own id for it.
    pub native_id: SessionId,
    /// Whether it goes on with an earlier conversation: the id asked for came back.
    pub resumed: bool,
    /// The model in use.
    pub model: Option<String>,
    /// The agent's version.
    pub agent_version: Option<String>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The agent.
    Assistant,
    /// Whoever prompts it.
    User,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The agent's id for the call.
    pub id: String,
    /// What sort of thing it does.
    pub tool: ToolKind,
    /// The tool's own name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// How far it is.
    pub status: ToolStatus,
    /// What it was given.
    pub input: Option<Value>,
    /// What came out, its end kept.
    pub output: Option<String>,
    /// The exit code of a command.
    pub exit_code: Option<i32>,
    /// Files it touches.
    pub paths: Vec<String>,
}

/// What sort of thing a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Reads a file.
    Read,
    /// Changes a file.
    Edit,
    /// Deletes a file.
    Delete,
    /// Moves a file.
    Move,
    /// Searches files.
    Search,
    /// Runs a command.
    Execute,
    /// Gets something from the network.
    Fetch,
    /// A tool of an MCP server.
    Mcp,
    /// Another agent below this one.
    Subagent,
    /// Anything else.
    Other,
}

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// Announced.
    Pending,
    /// At work.
    Running,
    /// Done.
    Ok,
    /// Done, and failed.
    Failed,
    /// Not permitted.
    Denied,
    /// Ended from outside.
    Cancelled,
}

impl ToolStatus {
    /// Whether the call is over.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Ok | Self::Failed | Self::Denied | Self::Cancelled)
    }
}

/// One entry of an agent's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEntry {
    /// What is to be done.
    pub text: String,
    /// Whether it is done.
    pub done: bool,
}

/// How full a quota is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Which quota: `five_hour`, `seven_day`.
    pub scope: Option<String>,
    /// What the provider says.
    pub status: LimitStatus,
    /// How much is used, from 0 to 1.
    pub utilization: Option<f64>,
    /// When it opens again.
    pub resets_at: Option<Timestamp>,
}

/// What the provider says about a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitStatus {
    /// There is room.
    Allowed,
    /// There is little room.
    Warning,
    /// There is none.
    Rejected,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// Why it stopped.
    pub stop: TurnStop,
    /// The last message.
    pub text: String,
    /// Output that follows a schema, where one was asked for.
    pub structured: Option<Value>,
    /// Turns the agent counts within it.
    pub inner_turns: Option<u32>,
    /// What the whole process has cost so far, as the agent reports it. For people: the sum of the usage events
    /// is what counts.
    pub reported_cost: Option<MicroUsd>,
}

/// Why a turn stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum TurnStop {
    /// The agent has nothing more to do.
    Done,
    /// It was interrupted.
    Interrupted,
    /// It failed.
    Failed {
        /// The HTTP status behind it.
        status: Option<u16>,
        /// The agent's name for the failure.
        reason: String,
    },
}

/// Whether a thing worked: for places where a bare `bool` would not say which way is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Permitted.
    Allow,
    /// Not permitted.
    Deny,
}
