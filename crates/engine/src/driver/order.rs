//! What a goal that an engine looks after is asked to do.

use tokio::sync::oneshot;
use towline_core::{AgentEvent, AgentName, Event, Illegal, Incoming, Phase, Purse, Source, Stamp};

use super::Driver;
use crate::error::EngineError;
use crate::news::own;
use crate::slots::Slot;

/// What the operator wants of a goal that is being driven.
#[derive(Debug)]
pub(crate) enum Order {
    /// An event that the operator requests.
    Event {
        event: Event,
        /// Receives the result once the event is recorded or refused.
        done: oneshot::Sender<Result<(), Illegal>>,
    },
    /// A report that an agent makes through a tool.
    Word {
        /// Proves which attempt the agent belongs to.
        token: String,
        event: AgentEvent,
        /// Receives `true` once it is recorded, `false` if no living attempt has this token.
        done: oneshot::Sender<bool>,
    },
    /// A slot for the goal, which waits for one.
    Slot(Slot),
    /// Stop spending: money that goals share is spent.
    StopSpending(Purse),
    /// End whatever still runs at once.
    Kill,
}

/// The permission to start.
#[derive(Debug)]
pub(crate) struct Grant {
    /// What the goal has to know before it starts.
    pub(crate) events: Vec<Event>,
    pub(crate) slot: Slot,
    /// The agent that the slot is for; none outside of a pool.
    pub(crate) agent: Option<AgentName>,
    /// Why it cannot start all the same: a person has to know.
    pub(crate) problem: Option<String>,
}

impl From<Slot> for Grant {
    fn from(slot: Slot) -> Self {
        Self { events: Vec::new(), slot, agent: None, problem: None }
    }
}

impl Driver {
    /// Carries out an order.
    pub(super) async fn follow(&mut self, order: Order) -> Result<(), EngineError> {
        match order {
            Order::Event { event, done } => match self.grant(event.clone()).await {
                // The sender may be gone by now.
                Ok(outcome) => drop(done.send(outcome)),
                Err(error) => {
                    self.deferred.push_front(Box::new(Order::Event { event, done }));
                    return Err(error);
                }
            },
            Order::Word { token, event, done } => {
                let spoken = self.hear(&token, event).await?;
                // The sender may be gone by now.
                let _ = done.send(spoken);
            }
            Order::Slot(slot) => self.dispatch(slot.into()).await?,
            Order::StopSpending(purse) => self.stop_spending(purse).await?,
            kill @ Order::Kill => self.defer(Box::new(kill)),
        }
        Ok(())
    }

    /// A slot of this engine, if it has one for the goal. In a pool the scheduler decides.
    pub(super) fn next_grant(&self) -> Option<Grant> {
        let is_pool = self.shared.rules.is_some();
        if is_pool { None } else { self.shared.slots.ask(self.place()).map(Grant::from) }
    }

    /// Begins to work. A slot that the goal does not wait for any more is released.
    pub(super) async fn dispatch(&mut self, grant: Grant) -> Result<(), EngineError> {
        if self.state.phase == Phase::Queued {
            self.slot = Some(grant.slot);
            let problem = grant.problem.map(|error| Event::Unconfigured { error });
            let dispatched = Event::Dispatched { agent: grant.agent };
            let news = grant.events.into_iter().chain([dispatched]).chain(problem);
            self.take_in(news.map(|event| self.own(event)).collect()).await?;
        }
        Ok(())
    }

    /// Stops an agent, so that it continues when there is money again.
    async fn stop_spending(&mut self, purse: Purse) -> Result<(), EngineError> {
        let is_stopping = matches!(self.state.phase, Phase::Stopping(_));
        let attempt = self.state.phase.living_attempt();
        let judges = matches!(self.state.phase, Phase::Checking { .. })
            && self.state.running_judges().next().is_some();
        if !is_stopping && (attempt.is_some() || judges) {
            let stamp = Stamp { generation: self.lease.generation, attempt };
            self.take_in(vec![own(stamp, Event::SharedBudgetSpent { purse })]).await?;
        }
        Ok(())
    }

    /// Records a report of the living agent, if the token proves that it is that agent.
    async fn hear(&mut self, token: &str, event: AgentEvent) -> Result<bool, EngineError> {
        let living = self.state.phase.living_attempt().and_then(|attempt| self.state.attempt(attempt));
        let Some(attempt) = living.filter(|attempt| self.shared.secret.fits(attempt.id, token)) else {
            return Ok(false);
        };
        let stamp = Stamp { generation: self.lease.generation, attempt: Some(attempt.n) };
        let event = Event::Agent { event };
        self.take_in(vec![Incoming { source: Source::Agent, ..own(stamp, event) }]).await?;
        Ok(true)
    }
}
