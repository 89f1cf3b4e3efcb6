//! The handle of a goal that was started or resumed here.

use std::sync::Arc;

use tokio::sync::oneshot;
use towline_core::{Event, GoalId, Illegal, PauseReason, Seq};
use towline_store::{GoalRecord, Store};

use crate::driver::Order;
use crate::error::EngineError;
use crate::feed::{Events, FeedSource};
use crate::live::Live;
#[cfg(test)]
use crate::pool::Notice;
use crate::pool::{Orders, Outcome};

/// A goal of this engine: it is driven, or it waits.
pub struct Handle {
    pub id: GoalId,
    store: Arc<dyn Store>,
    orders: Orders,
    feed: FeedSource,
    outcome: oneshot::Receiver<Outcome>,
}

impl Handle {
    pub(crate) const fn new(
        store: Arc<dyn Store>,
        orders: Orders,
        feed: FeedSource,
        outcome: oneshot::Receiver<Outcome>,
    ) -> Self {
        Self { id: orders.goal, store, orders, feed, outcome }
    }

    /// The goal's log after `after`, and then what is added to it, until the goal is settled. Nothing is missed, and
    /// nothing is given twice.
    pub fn events(&self, after: Seq) -> Events {
        self.feed.events(self.id, Arc::clone(&self.store), after)
    }

    /// The message that the agent is writing now.
    pub fn live(&self) -> Live {
        self.feed.live()
    }

    /// Asks for the goal's end. [`Handle::result`] waits for it.
    pub async fn cancel(&self) {
        self.ask_for(Event::CancelRequested).await;
    }

    /// Asks for a pause. [`Handle::result`] waits for it.
    pub async fn pause(&self, reason: PauseReason) {
        self.ask_for(Event::PauseRequested { reason }).await;
    }

    /// Does not wait for the outcome: a second, more urgent request must get through, also while the store fails.
    async fn ask_for(&self, event: Event) {
        let (done, _) = oneshot::channel();
        let _ = self.orders.send(Order::Event { event, done }).await;
    }

    /// A way to steer the goal that outlives this handle.
    pub fn steerer(&self) -> Steerer {
        Steerer { orders: self.orders.clone() }
    }

    /// Ends at once whatever is still ending.
    pub async fn kill(&self) {
        self.steerer().kill().await;
    }

    /// Waits until nothing more happens without the operator, and returns the goal.
    pub async fn result(self) -> Result<GoalRecord, EngineError> {
        let goal = self.id;
        self.outcome.await.unwrap_or(Err(EngineError::DriverLost { goal }))
    }

    /// Ends the driver as the death of its process would: nothing more is recorded, nothing is stopped.
    #[cfg(test)]
    pub(crate) async fn crash(self) {
        let (done, crashed) = oneshot::channel();
        let crash = Notice::Crash { goal: self.id, done };
        assert!(self.orders.pool.send(crash).await.is_ok(), "the engine had ended");
        crashed.await.expect("the driver had ended by itself");
    }
}

/// A way to steer a goal.
#[derive(Clone)]
pub struct Steerer {
    orders: Orders,
}

impl Steerer {
    pub(crate) const fn new(orders: Orders) -> Self {
        Self { orders }
    }

    /// Sends an event to the goal; none if no engine runs it any more. An event that does not fit the phase of the goal is
    /// refused and has no effect.
    pub async fn send(&self, event: Event) -> Option<Result<(), Illegal>> {
        let (done, outcome) = oneshot::channel();
        self.orders.send(Order::Event { event, done }).await.ok()?;
        outcome.await.ok()
    }

    /// Ends at once whatever is still ending.
    pub async fn kill(&self) {
        // A driver that is gone has nothing left to end.
        let _ = self.orders.send(Order::Kill).await;
    }
}
