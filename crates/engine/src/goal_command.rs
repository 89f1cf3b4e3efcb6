//! Commands of the operator to a goal that another process drives: their form on the control socket, and the events that
//! they become.

use serde::{Deserialize, Serialize};
use towline_core::{Answerer, BudgetChange, Event, NextSession, PauseReason, QuestionNo, Reply};

/// A command of the operator to a running goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "snake_case")]
pub enum GoalCommand {
    Cancel,
    Pause,
    /// Continue after a pause, or end a wait.
    Resume,
    /// Start another attempt at once.
    Retry {
        /// Budgets to raise first.
        budget: Vec<BudgetChange>,
        /// The session of the next attempt.
        session: NextSession,
        /// The model to use from now on, when it changes.
        model: Option<String>,
    },
    /// Answer a question of the agent.
    Answer {
        question: QuestionNo,
        reply: Reply,
    },
    /// Summarise the conversation before the next prompt.
    Compact {
        /// What the summary is to keep.
        focus: Option<String>,
    },
    /// Send a message to the agent.
    Tell {
        text: String,
    },
}

impl From<GoalCommand> for Event {
    fn from(command: GoalCommand) -> Self {
        match command {
            GoalCommand::Cancel => Self::CancelRequested,
            GoalCommand::Pause => Self::PauseRequested { reason: PauseReason::Operator },
            GoalCommand::Resume => Self::ResumeRequested,
            GoalCommand::Retry { budget, session, model } => Self::RetryRequested { budget, session, model },
            GoalCommand::Answer { question, reply } => {
                Self::Answered { question, reply, by: Answerer::Person }
            }
            GoalCommand::Compact { focus } => Self::CompactRequested { focus },
            GoalCommand::Tell { text } => Self::MessageSent { text },
        }
    }
}
