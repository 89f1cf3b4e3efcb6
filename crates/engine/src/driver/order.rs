//! What a goal that an engine looks after is asked to do.

use tokio::sync::oneshot;
use towline_core::{AgentEvent, Event, Illegal, Incoming, Source, Stamp};

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
    /// End whatever still runs at once.
    Kill,
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
            Order::Slot(slot) => self.dispatch(slot).await?,
            kill @ Order::Kill => self.defer(Box::new(kill)),
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
