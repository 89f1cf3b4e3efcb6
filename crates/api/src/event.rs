//! What `replay --check --json` prints. Entries of a goal's log are the core's own type: the log is read again as it is printed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Whether the raw bytes of an attempt still give the events that are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayReport {
    /// The goal's id.
    pub goal: String,
    /// The attempt that was read again.
    pub attempt: u32,
    /// How many events are as stored.
    pub same: u64,
    /// The first event that is not.
    pub difference: Option<ReplayedDifference>,
}

/// Two events that should be one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayedDifference {
    /// The event in the log.
    pub stored: Option<Value>,
    /// The event that the bytes give now; null where it may show a secret.
    pub replayed: Option<Value>,
}
