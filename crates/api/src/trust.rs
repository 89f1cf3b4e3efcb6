//! What `trust` prints: settings of repositories' files that need the user's trust.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A setting of a repository's file that needs the user's trust.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WideningSetting {
    /// The dotted key.
    pub key: String,
    pub value: Value,
    /// Whether it is `accepted`, `new` or `changed` since the user accepted the file.
    pub state: String,
}

/// The reply of `trust --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepositoryTrust {
    /// The repository's `towline.toml`; null where none of its settings needs trust.
    pub file: Option<String>,
    /// `not_needed`, `untrusted` or `trusted`.
    pub state: String,
    /// Those of its settings that need trust.
    pub settings: Vec<WideningSetting>,
    /// Keys that were accepted earlier and are no longer set.
    pub gone: Vec<String>,
    /// When the user accepted them.
    pub accepted_at: Option<jiff::Timestamp>,
}

/// An entry of the reply of `trust --list --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrustedRepository {
    /// The directory of the repository's `towline.toml`.
    pub directory: String,
    pub accepted_at: jiff::Timestamp,
    /// Whether what was accepted is what the file sets now: `current`, `changed`, `not_needed` where nothing is left that needs it, or
    /// `gone` where the directory no longer exists.
    pub state: String,
    /// The keys that were accepted.
    pub keys: Vec<String>,
}

/// The reply of `trust --revoke --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RevokedTrust {
    /// The directory that is no longer trusted; null where none was.
    pub directory: Option<String>,
}
