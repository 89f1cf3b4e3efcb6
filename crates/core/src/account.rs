//! The state of an account with a provider: agents that share one are limited together.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::deadlines::later;
use crate::{
    AgentEvent, AgentName, End, EndKind, EscalationReason, Event, Goal, GoalState, LimitStatus, NoOpinion,
    Phase, Unavailable,
};

/// How long an account is left alone whose limit has no known end.
const UNKNOWN_LIMIT: Duration = Duration::from_secs(60);

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

impl Account {
    /// When one is let through although nobody knows when the limit ends: it finds out.
    pub(crate) fn tried_again_at(&self) -> Timestamp {
        later(self.updated_at, UNKNOWN_LIMIT)
    }
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
            Event::JudgeEnded { end: End::RateLimited { until }, .. } => {
                Some(Self::Limited { until: *until, guessed: until.is_none() })
            }
            // The goal has guessed until when it waits.
            Event::JudgeUnavailable { reason: NoOpinion::Limited { until: None, .. }, .. } => {
                Some(Self::Limited { until: state.phase.until(), guessed: true })
            }
            Event::AttemptEnded { end: End::Auth { .. }, .. }
            | Event::JudgeEnded { end: End::Auth { .. }, .. } => Some(Self::Closed),
            Event::AttemptEnded { end, .. } | Event::JudgeEnded { end, .. } if !end.is_bad() => {
                Some(Self::Open)
            }
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
        let waits_for_judge = matches!(
            self.phase,
            Phase::Limited { .. } | Phase::Escalated { reason: EscalationReason::JudgeUnavailable { .. } }
        );
        let judge_is_of_account = self.absent_judge.as_ref().is_some_and(|absent| absent.account == account);
        waits && self.unavailable.iter().any(is_of_account) || waits_for_judge && judge_is_of_account
    }
}
