//! Which agent goes on: the present one as long as it can, and otherwise the first of the goal's list that can.

use jiff::Timestamp;

use super::Stepper;
use crate::deadlines::later;
use crate::{AgentName, End, EscalationReason, Event, Phase, Policy, Unavailable};

/// Who is to make the next attempt.
pub(super) enum NextAgent {
    Agent(AgentName),
    /// Nobody before this time.
    Wait(Phase),
    /// Nobody at all.
    Nobody,
}

impl Stepper<'_> {
    /// The agent for the next attempt.
    pub(super) fn choose_agent(&self) -> NextAgent {
        if let Some(agent) = self.state.next_agent(self.goal, self.now) {
            return NextAgent::Agent(agent.clone());
        }
        let waits = self.goal.agents.iter().filter_map(|agent| {
            let unavailable = self.state.unavailable.get(agent)?;
            Some((unavailable.until?, unavailable.guessed))
        });
        match waits.min() {
            Some((until, guessed)) => NextAgent::Wait(Phase::Limited { until, guessed }),
            None => NextAgent::Nobody,
        }
    }

    /// Records that another agent goes on, if that is so.
    pub(super) fn hand_over(&mut self, to: &AgentName) -> bool {
        let last = self.state.last_attempt().filter(|attempt| attempt.agent != *to);
        let Some(last) = last else { return false };
        let why = last.end.as_ref().map_or("unknown", End::name).to_owned();
        let from = last.agent.clone();
        self.state.session = None;
        self.state.context = crate::ContextState::default();
        self.moved.events.push(Event::HandedOver { from, to: to.clone(), why });
        true
    }

    /// The agent cannot go on before this time, or at all. Another one does, where the goal lists one that can; gives
    /// back whether that is so.
    pub(super) fn give_up_on_agent(&mut self, end: &End, until: Option<Timestamp>, guessed: bool) -> bool {
        let Some(agent) = self.state.last_attempt().map(|attempt| attempt.agent.clone()) else {
            return false;
        };
        let unavailable = Unavailable { end: end.name().to_owned(), until, guessed };
        for agent in self.struck_with(agent, end) {
            self.state.unavailable.insert(agent, unavailable.clone());
        }
        let another_goes_on = matches!(self.choose_agent(), NextAgent::Agent(_));
        if another_goes_on {
            // What the one wanted to know, the other may not.
            self.withdraw_all();
            self.state.phase = Phase::Queued;
        }
        another_goes_on
    }

    /// The agent, and those that share its account where the account is the trouble.
    fn struck_with(&self, agent: AgentName, end: &End) -> Vec<AgentName> {
        let is_of_account = matches!(end, End::RateLimited { .. } | End::Auth { .. });
        let account = self.goal.accounts.get(&agent).filter(|_| is_of_account);
        let shares = |other: &&AgentName| **other != agent && self.goal.accounts.get(*other) == account;
        let others = self.goal.agents.iter().filter(shares).filter(|_| account.is_some());
        let others: Vec<AgentName> = others.cloned().collect();
        [agent].into_iter().chain(others).collect()
    }

    /// An agent that fails again and again is left alone for a while, where another one can go on.
    pub(super) fn hand_over_after(&mut self, failures: u32, end: &End) -> bool {
        if failures < Policy::ERRORS_BEFORE_HANDOVER || self.goal.agents.len() < 2 {
            return false;
        }
        let until = later(self.now, Policy::FAILING_AGENT_PAUSE);
        let handed_over = self.give_up_on_agent(end, Some(until), true);
        if !handed_over && let Some(agent) = self.state.last_attempt().map(|attempt| attempt.agent.clone()) {
            // Nobody else can: then it is tried again as if it were alone.
            self.state.unavailable.remove(&agent);
        }
        handed_over
    }

    /// What a person must do when no agent can go on, or waits for the one that can go on first.
    pub(super) fn wait_or_escalate(&mut self, reason: EscalationReason) {
        match self.choose_agent() {
            NextAgent::Wait(limited) => self.state.phase = limited,
            NextAgent::Agent(_) | NextAgent::Nobody => self.escalate(reason),
        }
    }
}
