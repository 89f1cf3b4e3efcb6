//! What whoever started a goal holds in their hands.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use towline_core::{Envelope, Event, GoalId, Illegal, PauseReason, Seq};
use towline_store::{GoalRecord, Store, StoreError};

use crate::driver::Order;
use crate::error::EngineError;

/// A goal that is being driven.
pub struct Handle {
    /// The goal.
    pub id: GoalId,
    store: Arc<dyn Store>,
    orders: mpsc::Sender<Order>,
    last_seq: watch::Receiver<Seq>,
    task: JoinHandle<Result<GoalRecord, EngineError>>,
}

impl Handle {
    pub(crate) const fn new(
        id: GoalId,
        store: Arc<dyn Store>,
        orders: mpsc::Sender<Order>,
        last_seq: watch::Receiver<Seq>,
        task: JoinHandle<Result<GoalRecord, EngineError>>,
    ) -> Self {
        Self { id, store, orders, last_seq, task }
    }

    /// The goal's log after `after`, and then what is added to it, until the goal is settled. Nothing is ever
    /// missed: this reads the log, and is only woken by the driver.
    pub fn events(&self, after: Seq) -> Events {
        Events::new(self.id, Arc::clone(&self.store), self.last_seq.clone(), after)
    }

    /// Asks for the goal's end. It has ended once [`Handle::result`] says so.
    pub async fn cancel(&self) {
        self.ask_for(Event::CancelRequested).await;
    }

    /// Asks for a pause. The goal is paused once [`Handle::result`] says so.
    pub async fn pause(&self, reason: PauseReason) {
        self.ask_for(Event::PauseRequested { reason }).await;
    }

    /// The outcome is not waited for: whoever insists next must be heard, also while the store fails. A goal that has ended
    /// meanwhile, or is ending, needs neither.
    async fn ask_for(&self, event: Event) {
        let (done, _) = oneshot::channel();
        let _ = self.orders.send(Order::Wish { event, done }).await;
    }

    /// A way to steer the goal that outlives this handle.
    pub fn steerer(&self) -> Steerer {
        Steerer { orders: self.orders.clone() }
    }

    /// Insists: whatever is still ending is ended at once.
    pub async fn kill(&self) {
        self.stopper().kill().await;
    }

    /// A way to insist that outlives this handle.
    pub fn stopper(&self) -> Stopper {
        Stopper { orders: self.orders.clone() }
    }

    /// Waits until nothing happens any more without the operator, and gives what has become of the goal.
    pub async fn result(self) -> Result<GoalRecord, EngineError> {
        let goal = self.id;
        self.task.await.unwrap_or(Err(EngineError::DriverLost { goal }))
    }

    /// Ends the driver as the death of its process would: nothing more is recorded, nothing is stopped.
    #[cfg(test)]
    pub(crate) async fn crash(self) {
        self.task.abort();
        let ended = self.task.await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "the driver had ended by itself");
    }
}

/// A way to steer a goal.
#[derive(Clone)]
pub struct Steerer {
    orders: mpsc::Sender<Order>,
}

impl Steerer {
    pub(crate) const fn new(orders: mpsc::Sender<Order>) -> Self {
        Self { orders }
    }

    /// Has this happen to the goal; none when nobody drives it any more. What makes no sense where it stands is
    /// refused, and nothing has happened then.
    pub async fn wish(&self, event: Event) -> Option<Result<(), Illegal>> {
        let (done, outcome) = oneshot::channel();
        self.orders.send(Order::Wish { event, done }).await.ok()?;
        outcome.await.ok()
    }
}

/// A way to end at once what runs for a goal.
pub struct Stopper {
    orders: mpsc::Sender<Order>,
}

impl Stopper {
    /// Whatever is still ending is ended at once.
    pub async fn kill(&self) {
        // A driver that is gone has nothing left to end.
        let _ = self.orders.send(Order::Kill).await;
    }
}

/// A goal's log as it grows.
pub struct Events {
    goal: GoalId,
    store: Arc<dyn Store>,
    last_seq: watch::Receiver<Seq>,
    cursor: Seq,
    page: VecDeque<Envelope>,
}

/// How many events are read at once.
const PAGE: usize = 500;
/// How long to wait before a store that fails for now is read again.
const STORE_PAUSE: Duration = Duration::from_millis(200);

impl Events {
    pub(crate) const fn new(
        goal: GoalId,
        store: Arc<dyn Store>,
        last_seq: watch::Receiver<Seq>,
        cursor: Seq,
    ) -> Self {
        Self { goal, store, last_seq, cursor, page: VecDeque::new() }
    }

    /// The next event; none once the goal's driver has ended and everything was given. Safe to drop while
    /// waiting.
    pub async fn next(&mut self) -> Result<Option<Envelope>, StoreError> {
        loop {
            if let Some(event) = self.page.pop_front() {
                self.cursor = event.seq;
                return Ok(Some(event));
            }
            let driver_gone = self.last_seq.has_changed().is_err();
            let known = *self.last_seq.borrow_and_update();
            if known > self.cursor || driver_gone {
                // The last word of a driver that is gone may not have reached us: the log has it.
                self.page = match self.store.events(self.goal, self.cursor, PAGE).await {
                    Ok(page) => page.into(),
                    // The driver waits for the store, too.
                    Err(error) if error.is_passing() && !driver_gone => {
                        tokio::time::sleep(STORE_PAUSE).await;
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                if self.page.is_empty() && driver_gone {
                    return Ok(None);
                }
            } else {
                // An error means that the driver has gone, which the next round sees.
                let _ = self.last_seq.changed().await;
            }
        }
    }
}
