//! What the built-in agent is started with.

use std::path::PathBuf;
use std::time::Duration;

use towline_provider::{Key, WireFormat};

use super::{Fetch, Prices};

/// What the built-in agent is started with.
#[derive(Debug, Clone)]
pub struct AcpSettings {
    /// The form in which the provider speaks.
    pub format: WireFormat,
    /// Where the provider is, when it is not at its own address.
    pub base_url: Option<String>,
    /// The key, as the environment has it.
    pub key: Option<Key>,
    /// The variable that the key is in: messages name it, and tools do not see it.
    pub key_variable: String,
    /// The model.
    pub model: String,
    /// How many tokens the model can read.
    pub context_window: u64,
    /// The longest answer, in tokens.
    pub max_output: Option<u64>,
    /// How often the model is asked in one turn at most.
    pub max_turns: Option<u32>,
    /// What tokens cost, where that is known.
    pub prices: Option<Prices>,
    /// Whether the model may fetch pages of the web.
    pub fetch: Fetch,
    /// Further directories that it may read, as absolute paths.
    pub directories: Vec<PathBuf>,
    /// Where sessions are kept.
    pub sessions: PathBuf,
    /// How long a provider may say nothing before the connection counts as broken.
    pub silence: Duration,
}

impl AcpSettings {
    /// Where the provider is.
    pub(super) fn url(&self) -> &str {
        self.base_url.as_deref().unwrap_or_else(|| self.format.default_base_url())
    }

    /// Whether the provider wants a key and there is none. A server of one's own may do without.
    pub(super) const fn lacks_key(&self) -> bool {
        self.key.is_none() && self.base_url.is_none()
    }
}
