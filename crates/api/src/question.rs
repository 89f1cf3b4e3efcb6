//! Questions that only a person can answer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use towline_core::{About, Goal, Part, Question};

/// One entry of `questions --json`: an open question and its goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QuestionLine {
    /// The goal's id.
    pub goal: String,
    /// The goal's title.
    pub title: String,
    #[serde(flatten)]
    pub question: QuestionReport,
}

/// An open question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QuestionReport {
    /// The number of the question within its goal.
    pub id: u32,
    /// The attempt that asked.
    pub attempt: u32,
    /// `choice` or `permission`.
    pub kind: String,
    /// What is asked; for a permission with the whole command.
    pub question: String,
    /// The answers to choose from, where one thing is asked.
    pub options: Vec<String>,
    /// The rule that the answer `always` adds for this goal. None where `always` is no answer.
    #[serde(default)]
    pub always: Option<String>,
    /// The answer to assume if there is none in time.
    pub default: Option<String>,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// Until when it can be answered.
    pub deadline: Option<Timestamp>,
    /// What is asked, one by one; empty for a permission.
    pub parts: Vec<PartReport>,
}

/// One of several things that are asked together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PartReport {
    pub question: String,
    /// The answers to choose from.
    pub options: Vec<OptionReport>,
    /// Whether several of them may be chosen.
    pub many: bool,
}

/// An answer to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OptionReport {
    pub label: String,
    /// What the agent writes about it.
    pub description: String,
}

impl QuestionLine {
    /// The entry for a question of this goal.
    pub fn of(goal: &Goal, question: &Question) -> Self {
        Self { goal: goal.id.to_string(), title: goal.title.clone(), question: question.into() }
    }
}

impl From<&Question> for QuestionReport {
    fn from(question: &Question) -> Self {
        let (kind, parts): (_, &[Part]) = match &question.ask.about {
            About::Choice { parts } => ("choice", parts),
            About::Permission { .. } => ("permission", &[]),
        };
        let options = match parts {
            [only] => only.options.iter().map(|option| option.label.clone()).collect(),
            [] => {
                let answers = ["yes", "no"].into_iter().chain(question.ask.always().map(|_| "always"));
                answers.map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        Self {
            id: question.n.0,
            attempt: question.attempt.get(),
            kind: kind.to_owned(),
            question: question.ask.title(),
            options,
            always: question.ask.always().map(str::to_owned),
            default: question.ask.default.clone(),
            asked_at: question.asked_at,
            deadline: question.deadline,
            parts: parts.iter().map(PartReport::from).collect(),
        }
    }
}

impl From<&Part> for PartReport {
    fn from(part: &Part) -> Self {
        let options = part.options.iter().map(|option| OptionReport {
            label: option.label.clone(),
            description: option.description.clone(),
        });
        Self { question: part.text.clone(), options: options.collect(), many: part.many }
    }
}
