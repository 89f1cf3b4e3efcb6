//! What a pool decides about a goal: what it inherits from its prerequisites, which agents it cannot use, and when its money is
//! spent.

use jiff::Timestamp;

use super::stopping::Runs;
use super::{Illegal, Stepper};
use crate::{AttemptNo, End, EndKind, Event, Inherited, Phase, StopWhy, Unavailable};

impl Stepper<'_> {
    /// Takes over what the prerequisites left. It counts from the first workspace on.
    pub(super) fn inherit(&mut self, inherited: &Inherited) -> Result<(), Illegal> {
        if self.state.preparations > 0 {
            return Err(Illegal::WrongPhase { phase: "prepared", event: "prerequisites_met" });
        }
        self.state.inherited = Some(inherited.clone());
        Ok(())
    }

    /// The agents of this account cannot go on for now: another goal has found out.
    pub(super) fn close_account(&mut self, account: &str, until: Option<Timestamp>, guessed: bool) {
        let kind = if until.is_some() { EndKind::RateLimited } else { EndKind::Auth };
        let unavailable = Unavailable { end: kind.name().to_owned(), until, guessed };
        for agent in self.goal.agents.iter().filter(|agent| self.goal.account_of(agent) == account) {
            self.state.unavailable.insert(agent.clone(), unavailable.clone());
        }
    }

    /// Ends the agent, because money that goals share is spent.
    pub(super) fn stop_for_shared_budget(&mut self, attempt: AttemptNo) {
        self.stop(Runs::Agent(attempt), StopWhy::SharedBudget);
    }

    /// What follows once the agent is gone: a turn that was complete is checked, another one is continued when there is money
    /// again. It costs neither an attempt nor an error.
    pub(super) fn after_shared_budget(&mut self, attempt: AttemptNo) {
        let end = self.state.last_attempt().and_then(|last| last.end.clone());
        match end {
            Some(end @ End::Completed) => self.after_end(attempt, &end),
            _ => {
                self.spend_no_attempt();
                self.state.phase = Phase::Queued;
                self.ask_again();
            }
        }
    }

    /// News of the pool about a goal that waits for its start.
    pub(super) fn apply_while_queued(&mut self, event: &Event) -> Result<(), Illegal> {
        match event {
            Event::Dispatched { agent } => {
                self.state.dispatched_agent.clone_from(agent);
                self.dispatch();
            }
            Event::PrerequisitesMet { inherited } => self.inherit(inherited)?,
            Event::AccountUnavailable { account, until, guessed } => {
                self.close_account(account, *until, *guessed)
            }
            // The pool looks at it again the next time.
            Event::AgentUnavailable { .. } => {}
            event => self.apply_request(&Phase::Queued, event)?,
        }
        Ok(())
    }
}
