//! Settings of the built-in agent alone: the model API that it uses.

use serde::{Deserialize, Serialize};

/// The model API of the built-in agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiSettings {
    pub provider: Provider,
    /// Which of the provider's APIs; `None` leaves the choice to the agent.
    pub api: Option<OpenaiApi>,
    /// The API's address; `None` is the provider's own.
    pub base_url: Option<String>,
    /// The variable that holds the key; `None` is the usual one of the provider.
    pub key_env: Option<String>,
    /// The model's context window in tokens; `None` leaves it to the agent.
    pub context_window: Option<u64>,
    /// The longest answer in tokens; `None` leaves it to the agent.
    pub max_output: Option<u64>,
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
    /// `OpenAI`, and servers with a compatible API.
    #[default]
    Openai,
    Gemini,
    Anthropic,
}

impl Provider {
    /// All wire formats, in the order of preference.
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
    Responses,
    /// Chat completions, which most local servers implement.
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
    #[default]
    Off,
    On,
}
