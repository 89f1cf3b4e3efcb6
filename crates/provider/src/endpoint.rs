//! Where a model is asked, and with which key.

use std::fmt;

use crate::WireFormat;

/// A provider's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The form in which it speaks.
    pub format: WireFormat,
    /// The URL that the format's paths are put behind, `https://api.openai.com/v1` for one.
    pub base_url: String,
    /// What it knows us by; none for servers that ask for nothing.
    pub key: Option<Key>,
}

impl WireFormat {
    /// The API of the provider that the format comes from.
    #[must_use]
    pub const fn default_base_url(self) -> &'static str {
        match self {
            Self::OpenaiResponses | Self::OpenaiChat => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Anthropic => "https://api.anthropic.com/v1",
        }
    }
}

/// A secret key. Printing it shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Takes a key as a file or a variable holds it; white space around it is no part of it.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The text without the key, for messages of those who repeat what they were sent.
    pub(crate) fn remove_from(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "[key]") }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_printed() {
        let key = Key::new(" sk-secret\n");
        assert_eq!(key.reveal(), "sk-secret");
        let base_url = WireFormat::Gemini.default_base_url().to_owned();
        let endpoint = Endpoint { format: WireFormat::Gemini, base_url, key: Some(key.clone()) };
        assert!(!format!("{endpoint:?} {endpoint:#?}").contains("secret"));
        assert_eq!(key.remove_from("no such key: sk-secret."), "no such key: [key].");
        assert_eq!(Key::new("").remove_from("as it is"), "as it is");
    }
}
