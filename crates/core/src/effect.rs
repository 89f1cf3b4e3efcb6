//! What is to be done: the entries of the outbox.

use serde::{Deserialize, Serialize};

use crate::{AgentName, AttemptId, AttemptNo, MessageNo, QuestionNo, Reply, SessionId, ToolCall};

/// Something the engine is to do. Stored together with the state that asked for it, carried out only from there,
/// and safe to carry out again: each has a key, and the executor looks before it acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Effect {
    /// Make the workspace and run the setup in it.
    Prepare {
        /// The number of this run: a setup that failed can be tried again.
        round: u32,
    },
    /// Run the checks on the base.
    RunBaseline {
        /// Counts from 1: checks that were stopped can run again.
        round: u32,
    },
    /// Start an agent, or adopt the one that was started for this attempt before.
    Launch(Launch),
    /// Run the checks on what the attempt left.
    RunChecks {
        attempt: AttemptNo,
        /// Counts from 1: checks that were stopped can run again.
        #[serde(default = "first_round")]
        round: u32,
    },
    /// Bring an answer or a message to the living agent.
    Deliver(Delivery),
    /// End what runs for the goal, the whole tree of it.
    Stop {
        /// The key of the effect that began it.
        work: String,
    },
}

impl Effect {
    /// The key under which it is carried out at most once; no two effects of a goal share one.
    pub fn key(&self) -> String {
        match self {
            Self::Prepare { round } => prepare_key(*round),
            Self::RunBaseline { round } => baseline_key(*round),
            Self::Launch(launch) => launch_key(launch.attempt),
            Self::RunChecks { attempt, round } => checks_key(*attempt, *round),
            Self::Deliver(delivery) => delivery.key(),
            Self::Stop { work } => stop_key(work),
        }
    }
}

/// Something for a living agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The attempt that is to hear it; nobody else may.
    pub attempt: AttemptNo,
    pub what: Delivered,
}

/// What is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Delivered {
    /// The answer to a request of the agent's.
    Answer {
        question: QuestionNo,
        /// The agent's own id of the request.
        request: String,
        reply: Reply,
    },
    /// The operator's words.
    Message { n: MessageNo, text: String },
}

impl Delivery {
    /// The key under which it is carried out at most once.
    pub fn key(&self) -> String {
        match &self.what {
            Delivered::Answer { question, .. } => answer_key(*question, self.attempt),
            Delivered::Message { n, .. } => message_key(*n, self.attempt),
        }
    }
}

pub(crate) fn answer_key(question: QuestionNo, attempt: AttemptNo) -> String {
    format!("answer/{question}/{attempt}")
}

pub(crate) fn message_key(message: MessageNo, attempt: AttemptNo) -> String {
    format!("tell/{message}/{attempt}")
}

pub(crate) fn prepare_key(round: u32) -> String {
    format!("prepare/{round}")
}

pub(crate) fn baseline_key(round: u32) -> String {
    format!("baseline/{round}")
}

pub(crate) fn launch_key(attempt: AttemptNo) -> String {
    format!("launch/{attempt}")
}

/// The first round has the key of versions that knew no rounds.
pub(crate) fn checks_key(attempt: AttemptNo, round: u32) -> String {
    match round {
        0 | 1 => format!("checks/{attempt}"),
        round => format!("checks/{attempt}/{round}"),
    }
}

pub(crate) const fn first_round() -> u32 {
    1
}

pub(crate) fn stop_key(work: &str) -> String {
    format!("stop/{work}")
}

/// Everything that starting an attempt needs beyond the agent's own settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The attempt's number.
    pub attempt: AttemptNo,
    /// The attempt's id.
    pub id: AttemptId,
    pub agent: AgentName,
    /// The model, when the goal names one.
    pub model: Option<String>,
    /// The conversation to start or to continue.
    pub session: SessionPlan,
    /// Before the prompt, the conversation is to be summarised with this in mind.
    #[serde(default)]
    pub compact: Option<String>,
    /// The first prompt.
    pub prompt: String,
    /// Calls that a person has permitted.
    #[serde(default)]
    pub permitted: Vec<ToolCall>,
}

/// Which conversation an attempt holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "plan", content = "id", rename_all = "snake_case")]
pub enum SessionPlan {
    /// A new one, by this id where the agent lets us choose.
    Fresh(SessionId),
    /// An earlier one.
    Resume(SessionId),
}
