//! What a person can set for the built-in agent alone: which model API it talks to.

use serde::{Deserialize, Serialize};

/// Which model API the built-in agent talks to, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiSettings {
    /// Whose wire format.
    pub provider: Provider,
    /// Which of the provider's APIs; none leaves it to the agent.
    pub api: Option<OpenaiApi>,
    /// Where the API is; none is the provider's own.
    pub base_url: Option<String>,
    /// The variable that holds the key; none is the usual one of the provider.
    pub key_env: Option<String>,
    /// How many tokens the model can read; none leaves it to the agent.
    pub context_window: Option<u64>,
    /// The longest answer in tokens; none leaves it to the agent.
    pub max_output: Option<u64>,
    /// Whether it may fetch pages.
    pub fetch: Fetch,
}

impl ApiSettings {
    /// The variable that holds the key.
    pub fn key_variable(&self) -> &str {
        self.key_env.as_deref().unwrap_or_else(|| self.provider.key_variable())
    }
}

/// The wire formats of the built-in agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// `OpenAI`, and whatever speaks like it.
    #[default]
    Openai,
    /// Gemini.
    Gemini,
    /// Anthropic.
    Anthropic,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Openai, Self::Gemini, Self::Anthropic];

    /// The name used in the configuration and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Gemini => "gemini",
            Self::Anthropic => "anthropic",
        }
    }

    /// The variable that usually holds the key.
    pub const fn key_variable(self) -> &'static str {
        match self {
            Self::Openai => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
            Self::Anthropic => "ANTHROPIC_API_KEY",
        }
    }
}

/// The two APIs that `OpenAI` has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenaiApi {
    /// Responses.
    Responses,
    /// Chat completions, which most local servers speak.
    Chat,
}

impl OpenaiApi {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Responses, Self::Chat];

    /// The name used in the configuration and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
        }
    }
}

/// Whether the built-in agent may fetch pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fetch {
    /// It may not.
    #[default]
    Off,
    /// It may.
    On,
}
