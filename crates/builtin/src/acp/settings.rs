//! What the built-in agent is started with.

use std::path::PathBuf;
use std::time::Duration;

use towline_agent::{OpenaiApi, Provider};
use towline_provider::{Key, WireFormat};

use super::{Fetch, Prices};

/// What the built-in agent is started with.
#[derive(Debug, Clone)]
pub struct AcpSettings {
    /// The provider's API format.
    pub format: WireFormat,
    /// The provider's address, if it is not the usual one.
    pub base_url: Option<String>,
    /// The key from the environment.
    pub key: Option<Key>,
    /// The name of the key's variable. Messages name it, and tools do not see it.
    pub key_variable: String,
    pub model: String,
    /// The model's context window in tokens.
    pub context_window: u64,
    /// The longest answer, in tokens.
    pub max_output: Option<u64>,
    /// The most questions to the model in one turn.
    pub max_turns: Option<u32>,
    /// Prices of tokens, if known.
    pub prices: Option<Prices>,
    /// Whether the model may fetch web pages.
    pub fetch: Fetch,
    /// Further directories that may be read, as absolute paths.
    pub directories: Vec<PathBuf>,
    /// The folder of session files.
    pub sessions: PathBuf,
    /// How long a provider may send nothing before the connection counts as broken.
    pub silence: Duration,
}

impl AcpSettings {
    /// The provider's address.
    pub(super) fn url(&self) -> &str {
        self.base_url.as_deref().unwrap_or_else(|| self.format.default_base_url())
    }
}

/// The form in which a provider speaks at this address; none where it has no such API. Servers that speak like OpenAI seldom know
/// its newer API.
pub fn wire_format(provider: Provider, api: Option<OpenaiApi>, base_url: Option<&str>) -> Option<WireFormat> {
    let is_openais = base_url.is_none_or(|url| {
        let host = url.split_once("://").map_or(url, |(_, rest)| rest);
        host.split(['/', ':']).next() == Some("api.openai.com")
    });
    match (provider, api) {
        (Provider::Openai, Some(OpenaiApi::Responses)) => Some(WireFormat::OpenaiResponses),
        (Provider::Openai, None) if is_openais => Some(WireFormat::OpenaiResponses),
        (Provider::Openai, Some(OpenaiApi::Chat) | None) => Some(WireFormat::OpenaiChat),
        (Provider::Gemini, None) => Some(WireFormat::Gemini),
        (Provider::Anthropic, None) => Some(WireFormat::Anthropic),
        (Provider::Gemini | Provider::Anthropic, Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_format_follows_from_the_provider_and_the_address() {
        use OpenaiApi::{Chat, Responses};
        use Provider::{Anthropic, Gemini, Openai};
        for (provider, api, url, wanted) in [
            (Openai, None, None, Some(WireFormat::OpenaiResponses)),
            (Openai, Some(Chat), None, Some(WireFormat::OpenaiChat)),
            (Openai, None, Some("https://api.openai.com/v1"), Some(WireFormat::OpenaiResponses)),
            (Openai, None, Some("http://127.0.0.1:1/v1"), Some(WireFormat::OpenaiChat)),
            (Openai, None, Some("https://api.openai.com.example/v1"), Some(WireFormat::OpenaiChat)),
            (Openai, Some(Responses), Some("http://127.0.0.1:1/v1"), Some(WireFormat::OpenaiResponses)),
            (Gemini, None, None, Some(WireFormat::Gemini)),
            (Anthropic, None, Some("http://h/v1"), Some(WireFormat::Anthropic)),
            (Gemini, Some(Chat), None, None),
        ] {
            assert_eq!(wire_format(provider, api, url), wanted, "{provider:?} {api:?} {url:?}");
        }
    }
}
