//! The model that an attempt asks its agent for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The model that an attempt asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelChoice {
    /// Recorded by an earlier version.
    #[default]
    Unknown,
    /// None: the agent decides.
    AgentDefault,
    Named(String),
}

impl ModelChoice {
    /// Whether a session of this model cannot be continued with the other one.
    pub fn differs_from(&self, other: &Self) -> bool {
        *self != Self::Unknown && *other != Self::Unknown && self != other
    }
}

impl fmt::Display for ModelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "an unknown model",
            Self::AgentDefault => "the agent's own",
            Self::Named(model) => model,
        })
    }
}
