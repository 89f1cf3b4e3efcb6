//! What an operator may wish for a goal that another process drives: the words of the control socket, and the events that
//! they become.

use serde::{Deserialize, Serialize};
use towline_core::{Answerer, BudgetChange, Event, NextSession, PauseReason, QuestionNo, Reply};

/// What an operator may wish for a goal that is being driven.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "snake_case")]
pub enum GoalCommand {
    /// Its end.
    Cancel,
    /// Its interruption.
    Pause,
    /// That it is resumed, or does not wait any longer.
    Resume,
    /// That it is tried again without a wait.
    Retry {
        /// Budgets to raise first.
        budget: Vec<BudgetChange>,
        /// The session of the next attempt.
        session: NextSession,
        /// The model to use from now on, when it changes.
        model: Option<String>,
    },
    /// That a question is answered.
    Answer {
        /// Which one.
        question: QuestionNo,
        /// How.
        reply: Reply,
    },
    /// That whoever works on it hears this.
    Tell {
        /// The words.
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
            GoalCommand::Tell { text } => Self::MessageSent { text },
        }
    }
}
