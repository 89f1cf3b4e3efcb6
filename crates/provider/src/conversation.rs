//! The messages between us and a model, independent of the provider.
//!
//! Everything here is stored in session files as well, so a change of a name is a change of their format.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The forms in which providers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireFormat {
    /// `OpenAI` Responses: `POST {base}/responses`.
    OpenaiResponses,
    /// `OpenAI` chat completions, which most local servers speak: `POST {base}/chat/completions`.
    OpenaiChat,
    /// Gemini: `POST {base}/models/{model}:streamGenerateContent?alt=sse`.
    Gemini,
    /// Anthropic Messages: `POST {base}/messages`.
    Anthropic,
}

impl WireFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OpenaiResponses, Self::OpenaiChat, Self::Gemini, Self::Anthropic];
}

/// What a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question<'a> {
    /// The model's name, as its provider knows it.
    pub model: &'a str,
    /// What holds for the whole conversation.
    pub system: &'a str,
    /// The conversation so far; the last item is ours.
    pub items: &'a [Item],
    /// The tools that it may call.
    pub tools: &'a [ToolSpec],
    /// The longest answer, in tokens; none leaves it to the provider where the provider allows that.
    pub max_output: Option<u64>,
}

/// One piece of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Item {
    /// A message of the user.
    User { text: String },
    /// A message of the model.
    Model(ModelMessage),
    /// What came of the calls of the model's last answer, in their order.
    Results {
        /// One for each call.
        results: Vec<CallResult>,
    },
}

/// One message of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelMessage {
    pub text: String,
    /// The tools that it wants called.
    pub calls: Vec<Call>,
    /// The same as its provider wrote it: with signatures and hidden thoughts that the provider wants to see again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Native>,
}

/// An answer as its provider wrote it. Only good for the format it was written in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Native {
    /// The form it has.
    pub format: WireFormat,
    /// The provider's own value.
    pub value: Value,
}

/// A tool that the model wants called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The provider's id of the call, or one that we made where there is none. Unique within a conversation.
    pub id: String,
    pub name: String,
    /// Its arguments. What was no JSON object is a string with the raw text, for the tool to refuse.
    pub input: Value,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// The call's id.
    pub id: String,
    /// The tool, which some formats want to hear again.
    pub name: String,
    /// The output of the tool, for the model to read.
    pub output: String,
    /// Whether the tool failed.
    pub failed: bool,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
}

/// A piece of an answer on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    /// Thoughts that may be shown.
    Thought(String),
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What the model wrote and which tools it calls.
    pub message: ModelMessage,
    /// Why it ended.
    pub stop: Stop,
    /// What it took.
    pub usage: Usage,
}

/// Why an answer ended. Calls are in [`ModelMessage::calls`], whatever the provider calls this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The model is done.
    Done,
    /// The answer reached its limit of tokens.
    MaxTokens,
    /// The model or its provider declined.
    Refused,
}

/// What an answer took, in tokens. No token is counted twice: `input` is without those read from or written to a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    /// Written, thoughts included.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Written to a cache.
    pub cache_write: u64,
}

impl Usage {
    /// How full the context was at the end of this answer.
    #[must_use]
    pub const fn context(self) -> u64 {
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }
}
