//! What an agent writes and does, in the same form for every agent.
//!
//! Agent protocols produce these from raw bytes; the engine stores them; nothing here decides what follows.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Ask, Decision, MessageNo, MicroUsd, SessionId, Tokens, Usage};

/// One thing that an agent wrote or did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The conversation exists and has an id.
    SessionStarted(SessionStarted),
    /// The agent accepted a prompt.
    TurnStarted,
    /// A whole message.
    Message {
        role: Role,
        /// The text of the message.
        text: String,
    },
    /// A piece of a message while it is written; shown live, never stored.
    MessageDelta { text: String },
    /// The model's reasoning, where it is shown.
    Thought { text: String },
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
    /// The provider reports how full the quota is.
    RateLimit(Limit),
    /// The agent tries a failed request again by itself.
    Retrying {
        /// The HTTP status that failed.
        status: Option<u16>,
        /// The number of this try.
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
        /// What the agent reports about it.
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
    SleepAsked { duration: Duration, reason: String },
    /// The agent reports its progress.
    Progress {
        text: String,
        /// Out of a hundred.
        percent: Option<u8>,
    },
    /// The agent claims that the goal is reached. Only the checks decide whether it is.
    Submitted {
        /// The agent's summary of its work.
        summary: String,
    },
    /// A message of the operator's has reached the model.
    Heard { message: MessageNo },
    /// A permission request was answered.
    Decided(Decision),
    /// Something worth reporting that fits nothing else.
    Notice { text: String },
    /// The turn is over; background work may go on.
    TurnEnded(TurnEnd),
    /// Frames that this version does not understand. Counted, never fatal; the raw log has every one of them.
    Unrecognised {
        /// What they seem to be, for counting: a frame type, or `not JSON`, or `too long`.
        what: String,
        /// The beginning of the last one.
        raw: String,
        /// How many frames this counts: a flood of one kind is reported less and less often.
        count: u64,
    },
}

/// The conversation exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStarted {
    /// The agent's own id for it.
    pub native_id: SessionId,
    /// Whether it continues an earlier conversation: the id asked for came back.
    pub resumed: bool,
    /// The model in use.
    pub model: Option<String>,
    /// The agent's version.
    pub agent_version: Option<String>,
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
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
    /// The end of the output.
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
    Search,
    /// Runs a command.
    Execute,
    /// Gets something from the network.
    Fetch,
    /// A tool of an MCP server.
    Mcp,
    /// Another agent below this one.
    Subagent,
    Other,
}

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Pending,
    Running,
    Ok,
    /// Done, and failed.
    Failed,
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
    /// What the provider reports.
    pub status: LimitStatus,
    /// How much is used, from 0 to 1.
    pub utilization: Option<f64>,
    /// When it opens again.
    pub resets_at: Option<Timestamp>,
}

/// What the provider reports about a quota.
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
    Failed {
        /// The HTTP status behind it.
        status: Option<u16>,
        /// The agent's name for the failure.
        reason: String,
    },
}

/// Whether a thing worked: for places where a bare `bool` would not show which value is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Allow,
    Deny,
}
