//! The state of an account with a provider: agents that share one are limited together.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{AgentEvent, AgentName, End, Event, GoalState, LimitStatus, Phase};

/// An account as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The name that the configuration gives it; that of the agent where it gives none.
    pub name: String,
    /// The agent that saw it.
    pub agent: AgentName,
    /// Whether it can be used.
    pub status: AccountStatus,
    /// When it was seen to change.
    pub updated_at: Timestamp,
}

/// Whether an account can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum AccountStatus {
    Open,
    /// Its quota is used up.
    Limited {
        /// Until when, if anybody knows.
        until: Option<Timestamp>,
        /// Whether that time is a guess of ours.
        guessed: bool,
    },
    /// Its credentials are refused.
    Closed,
}

impl AccountStatus {
    /// What an event of this agent reports about its account, where `state` is the goal's state after it.
    pub fn reported_by(event: &Event, agent: &AgentName, state: &GoalState) -> Option<Self> {
        match event {
            Event::Agent { event: AgentEvent::RateLimit(limit) } => Some(match limit.status {
                LimitStatus::Rejected => Self::Limited { until: limit.resets_at, guessed: false },
                LimitStatus::Allowed | LimitStatus::Warning => Self::Open,
            }),
            Event::AttemptEnded { end: End::RateLimited { until: Some(until) }, .. } => {
                Some(Self::Limited { until: Some(*until), guessed: false })
            }
            Event::AttemptEnded { end: End::RateLimited { until: None }, .. } => {
                let until = match &state.phase {
                    Phase::Limited { until, .. } => Some(*until),
                    _ => state.unavailable.get(agent).and_then(|unavailable| unavailable.until),
                };
                Some(Self::Limited { until, guessed: true })
            }
            Event::AttemptEnded { end: End::Auth { .. }, .. } => Some(Self::Closed),
            Event::AttemptEnded { end, .. } if !end.is_bad() => Some(Self::Open),
            _ => None,
        }
    }
}
