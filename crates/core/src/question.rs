//! What only a person can answer, and messages of people to a running agent.
//!
//! A question is stored from the moment it is asked: whoever asked may be gone when the answer comes, and then the
//! answer is part of the next prompt.

mod reading;

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use reading::{BadAnswer, BadQuestion, LastWords};

use crate::{AttemptNo, MessageNo, Outcome, QuestionNo};

/// What an agent wants of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The agent's own id of the request, when it waits for the answer as long as it lives.
    pub request: Option<String>,
    /// What it is about.
    pub about: About,
    /// What is taken for the answer when nobody answers in time.
    pub default: Option<String>,
    /// How long the answer may take.
    pub patience: Option<Duration>,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum About {
    /// Something to decide, in one part or several that are asked together.
    Choice {
        /// The parts, at least one.
        parts: Vec<Part>,
    },
    /// Whether a tool may be used.
    Permission {
        call: ToolCall,
        /// All of it that a person must read, such as the whole command.
        title: String,
        /// The rule that would allow it from now on.
        rule: String,
    },
}

impl About {
    /// How many characters of a permission request are shown.
    pub const SHOWN: usize = 4_000;
}

/// One thing to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub text: String,
    /// Suggested answers; others are welcome, too.
    pub options: Vec<Choice>,
    /// Whether several of them may be chosen.
    pub many: bool,
}

/// A suggested answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    pub label: String,
    /// What it means.
    pub description: String,
}

/// One call of one tool: what a permission is given for, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub tool: String,
    /// A hash of everything it is called with.
    pub input: String,
}

/// A question, from being asked to being closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub n: QuestionNo,
    /// The attempt that asked.
    pub attempt: AttemptNo,
    /// What is asked.
    pub ask: Ask,
    pub asked_at: Timestamp,
    /// Until when it can be answered before its default, or Towline, decides.
    pub deadline: Option<Timestamp>,
    /// How it was closed.
    pub closed: Option<Closed>,
}

/// How a question was closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "closed", rename_all = "snake_case")]
pub enum Closed {
    /// It was answered.
    Answered {
        reply: Reply,
        by: Answerer,
        at: Timestamp,
        /// Whether the agent knows.
        #[serde(rename = "telling")]
        delivery: DeliveryState,
    },
    /// Nobody waits for an answer any more.
    Withdrawn,
}

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// What was decided, one text for each part.
    Chosen { answers: Vec<String> },
    /// The tool may be used, this once.
    Allowed,
    /// The tool may be used, and so may every call that the same rule would allow, as long as the goal lasts.
    Always,
    /// The tool may not be used.
    Denied {
        /// The person's message; may be empty.
        message: String,
    },
}

/// The origin of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answerer {
    /// A person, or a program in their place.
    Person,
    /// Nobody in time: the question's own default.
    Default,
    /// Nobody: a person has answered `always` to the same rule before.
    Rule,
}

/// How far something that is meant for an agent has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "telling", content = "attempt", rename_all = "snake_case")]
pub enum DeliveryState {
    /// It is part of the next prompt.
    #[default]
    Waiting,
    /// It is on its way to a living attempt.
    OnItsWay(AttemptNo),
    /// This attempt got it.
    #[serde(rename = "told")]
    Delivered(AttemptNo),
}

/// A message of the operator to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorMessage {
    pub n: MessageNo,
    pub text: String,
    /// When it was sent.
    pub at: Timestamp,
    /// Whether the agent knows.
    #[serde(rename = "telling")]
    pub delivery: DeliveryState,
}

impl Ask {
    /// Something to decide that nobody waits for alive.
    pub fn choice(text: String, options: Vec<String>) -> Self {
        let options = options.into_iter().map(|label| Choice { label, description: String::new() }).collect();
        let parts = vec![Part { text, options, many: false }];
        Self { request: None, about: About::Choice { parts }, default: None, patience: None }
    }

    /// The rule that `always` allows, where that can be answered: nobody permits for good what they were not shown in full.
    pub fn always(&self) -> Option<&str> {
        match &self.about {
            About::Permission { title, rule, .. } if title.chars().count() <= About::SHOWN => Some(rule),
            _ => None,
        }
    }

    /// What is asked, without options.
    pub fn title(&self) -> String {
        match &self.about {
            About::Choice { parts } => {
                parts.iter().map(|part| part.text.trim()).collect::<Vec<_>>().join(" / ")
            }
            About::Permission { call, title, .. } => format!("may it use {}: {title}", call.tool),
        }
    }
}

impl Question {
    /// Whether it still waits for its answer.
    pub const fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    /// The answer, and whether the agent knows it.
    pub const fn answer(&self) -> Option<(&Reply, DeliveryState)> {
        match &self.closed {
            Some(Closed::Answered { reply, delivery, .. }) => Some((reply, *delivery)),
            _ => None,
        }
    }

    /// The rule that would allow what is asked, where that is a permission.
    pub(crate) fn rule(&self) -> Option<&str> {
        match &self.ask.about {
            About::Permission { rule, .. } => Some(rule),
            About::Choice { .. } => None,
        }
    }

    /// The call that a person has permitted, when the agent does not know yet and can still make use of it.
    pub fn permitted(&self) -> Option<&ToolCall> {
        match (&self.ask.about, self.answer()) {
            (
                About::Permission { call, .. },
                Some((Reply::Allowed | Reply::Always, DeliveryState::Waiting)),
            ) => Some(call),
            _ => None,
        }
    }
}

impl Reply {
    /// What a permission request came to.
    pub const fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Allowed | Self::Always => Some(Outcome::Allow),
            Self::Denied { .. } => Some(Outcome::Deny),
            Self::Chosen { .. } => None,
        }
    }

    /// The answer in one line.
    pub fn words(&self) -> String {
        match self {
            Self::Chosen { answers } => answers.join(" / "),
            Self::Allowed => "yes".to_owned(),
            Self::Always => "always".to_owned(),
            Self::Denied { message } if message.is_empty() => "no".to_owned(),
            Self::Denied { message } => format!("no: {message}"),
        }
    }
}
