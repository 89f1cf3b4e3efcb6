//! What goals compete for.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::overlap::overlap;
use super::{HoldReason, is_false};
use crate::{AgentName, Goal, GoalState};

/// What goals compete for. Goals of one lane differ only in their place in the queue and in what they may spend.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lane {
    /// The repository or folder.
    pub project: String,
    /// The agent that makes the next attempt, if it can.
    pub agent: AgentName,
    /// Whose quota that uses.
    pub account: String,
    /// The other agents of the goal in order of preference, each with its account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<(AgentName, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<String>,
    /// Whether its agent has a conversation, which another one could not continue.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_begun: bool,
    /// Agents that the goal cannot use, and until when; none where only an event of the goal can end that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<AgentName, Option<Timestamp>>,
}

impl Lane {
    /// The lane of a goal in this state, whenever that is asked for.
    pub fn of(goal: &Goal, state: &GoalState) -> Self {
        let agents = state.agents_in_order(goal);
        let until = |agent: &&AgentName| Some(((*agent).clone(), state.unavailable.get(*agent)?.until));
        let unavailable = agents.iter().filter_map(until).collect();
        let mut agents = agents.into_iter().map(|agent| (agent.clone(), goal.account_of(agent).to_owned()));
        let (agent, account) = agents.next().unwrap_or_else(|| (AgentName::new(""), String::new()));
        let sorted = |texts: &[String]| texts.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
        Self {
            project: goal.workspace.repository.clone(),
            has_begun: state.last_attempt().is_some_and(|attempt| attempt.agent == agent),
            agent,
            account,
            others: agents.collect(),
            labels: sorted(&goal.labels),
            touches: sorted(&goal.scheduling.touches),
            unavailable,
        }
    }

    /// Why the goal cannot use its agent now.
    pub(super) fn left_alone(&self, now: Timestamp) -> Option<HoldReason> {
        let until = self.unavailable.get(&self.agent).copied()?;
        let is_over = until.is_some_and(|until| until <= now);
        (!is_over).then(|| HoldReason::Agent { agent: self.agent.clone(), until })
    }

    /// Whether time alone makes none of its agents available.
    pub(super) fn is_without_agents(&self) -> bool {
        let agents = || std::iter::once(&self.agent).chain(self.others.iter().map(|(other, _)| other));
        agents().all(|agent| self.unavailable.get(agent) == Some(&None))
    }

    /// Whether goals of both must not run at the same time.
    pub(super) fn collides(&self, other: &Self) -> bool {
        let pairs =
            || self.touches.iter().flat_map(|ours| other.touches.iter().map(move |theirs| (ours, theirs)));
        self.project == other.project && pairs().any(|(ours, theirs)| overlap(ours, theirs))
    }
}
