//! The state of an account with a provider: agents that share one are limited together.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    AgentEvent, AgentName, End, EndKind, EscalationReason, Event, Goal, GoalState, LimitStatus, Phase,
    Unavailable,
};

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
    /// The operator opened it again: the next attempt shows whether it can be used.
    Trial,
}

impl AccountStatus {
    /// What an event of this agent reports about its account, where `state` is the goal's state after it.
    pub fn reported_by(event: &Event, agent: &AgentName, state: &GoalState) -> Option<Self> {
        match event {
            Event::Agent { event: AgentEvent::RateLimit(limit) } => Some(match limit.status {
                LimitStatus::Rejected => Self::Limited { until: limit.resets_at, guessed: false },
                LimitStatus::Allowed | LimitStatus::Warning => Self::Open,
            }),
            Event::AttemptEnded { end: End::RateLimited { until: announced }, .. } => {
                let guess = || match &state.phase {
                    Phase::Limited { until, .. } => Some(*until),
                    _ => state.unavailable.get(agent)?.until,
                };
                Some(Self::Limited { until: announced.or_else(guess), guessed: announced.is_none() })
            }
            Event::AttemptEnded { end: End::Auth { .. }, .. } => Some(Self::Closed),
            Event::AttemptEnded { end, .. } if !end.is_bad() => Some(Self::Open),
            _ => None,
        }
    }
}

impl GoalState {
    /// Whether the goal cannot go on because of this account: it waits for its limit, or its credentials were refused.
    pub fn waits_for_account(&self, goal: &Goal, account: &str) -> bool {
        let waits = matches!(
            self.phase,
            Phase::Limited { .. } | Phase::Escalated { reason: EscalationReason::Auth { .. } }
        );
        let is_of_account = |(agent, unavailable): (&AgentName, &Unavailable)| {
            let ends = [EndKind::RateLimited.name(), EndKind::Auth.name()];
            goal.account_of(agent) == account && ends.contains(&unavailable.end.as_str())
        };
        waits && self.unavailable.iter().any(is_of_account)
    }
}
