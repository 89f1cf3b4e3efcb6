//! The events of all goals as they are recorded, whichever process records them.
//!
//! One task reads what is new when the store has changed, and passes it to everybody who listens. A listener that is new or too slow
//! reads the store until it has caught up, so each gets every event exactly once and in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use towline_core::{Envelope, GoalId, PoolSeq};
use towline_store::{Store, StoreError};

use crate::engine::Shared;

/// How many batches may wait for a listener before it has to read the store.
const BATCHES: usize = 256;
/// How many events are read at once.
const PAGE: usize = 500;
/// Changes that come within this time are read together.
const TOGETHER: Duration = Duration::from_millis(5);
/// How long to wait before a store that fails for now is read again.
const STORE_PAUSE: Duration = Duration::from_millis(200);

/// An event with its place in the sequence of all goals.
pub type Placed = (PoolSeq, Envelope);

/// Passes on the events of all goals.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    batches: broadcast::Sender<Arc<[Placed]>>,
    removals: broadcast::Sender<GoalId>,
}

impl Tail {
    pub(crate) fn new() -> Self {
        Self { batches: broadcast::Sender::new(BATCHES), removals: broadcast::Sender::new(BATCHES) }
    }

    /// The events after this place, and then those that follow.
    pub(crate) fn events(&self, store: Arc<dyn Store>, after: PoolSeq) -> PoolEvents {
        PoolEvents {
            store,
            batches: self.batches.subscribe(),
            cursor: after,
            page: VecDeque::new(),
            is_behind: true,
        }
    }

    /// Goals that are removed from now on.
    pub(crate) fn removals(&self) -> broadcast::Receiver<GoalId> {
        self.removals.subscribe()
    }

    /// Passes on that a goal was removed.
    pub(crate) fn pass_on_removal(&self, goal: GoalId) {
        // There may be no listener.
        let _ = self.removals.send(goal);
    }

    /// Reads what is new whenever something was recorded, as long as the engine lives.
    pub(crate) async fn run(self, shared: Arc<Shared>) {
        let mut appended = shared.signals.appended();
        let mut cursor = None;
        while !shared.signals.is_closing() {
            appended.borrow_and_update();
            if self.read_on(&shared, &mut cursor).await.is_err() {
                // What is new is not forgotten meanwhile.
                tokio::time::sleep(STORE_PAUSE).await;
                continue;
            }
            if appended.changed().await.is_err() {
                return;
            }
            tokio::time::sleep(TOGETHER).await;
        }
    }

    /// Passes on what follows this place, and moves it to where that ends. At first it is the end of the log: listeners read what
    /// is before it.
    async fn read_on(&self, shared: &Shared, cursor: &mut Option<PoolSeq>) -> Result<(), StoreError> {
        if cursor.is_none() {
            *cursor = Some(shared.store.last_place().await?);
            // A listener that is older than this does not know what came before it.
            let _ = self.batches.send(Arc::default());
        }
        while let Some(after) = *cursor {
            let page = shared.store.events_since(after, PAGE).await?;
            let Some((last, _)) = page.last() else { break };
            *cursor = Some(*last);
            // There may be no listener.
            let _ = self.batches.send(page.into());
        }
        Ok(())
    }
}

/// The events of all goals, each exactly once, in the order in which they were recorded.
pub struct PoolEvents {
    store: Arc<dyn Store>,
    batches: broadcast::Receiver<Arc<[Placed]>>,
    /// The last one that was given.
    cursor: PoolSeq,
    page: VecDeque<Placed>,
    /// Whether the store has events that no batch will bring.
    is_behind: bool,
}

impl PoolEvents {
    /// The next event; none once the engine has ended. Safe to drop while waiting.
    pub async fn next(&mut self) -> Result<Option<Placed>, StoreError> {
        loop {
            if let Some(placed) = self.page.pop_front() {
                self.cursor = placed.0;
                return Ok(Some(placed));
            }
            if self.is_behind {
                let page = match self.store.events_since(self.cursor, PAGE).await {
                    Err(error) if error.is_passing() => {
                        tokio::time::sleep(STORE_PAUSE).await;
                        continue;
                    }
                    page => page?,
                };
                // Batches were subscribed to before this, so they bring all that is not there yet.
                self.is_behind = !page.is_empty();
                self.page = page.into();
                continue;
            }
            match self.batches.recv().await {
                Ok(batch) => self.take(&batch),
                Err(RecvError::Lagged(_)) => self.is_behind = true,
                Err(RecvError::Closed) => return Ok(None),
            }
        }
    }

    /// Takes over what follows the last event that was given. Places of removed goals are missing in the sequence, so a gap is
    /// looked up.
    fn take(&mut self, batch: &[Placed]) {
        let new = batch.iter().skip_while(|(place, _)| *place <= self.cursor);
        self.page.extend(new.cloned());
        self.is_behind = batch.is_empty();
        if let Some((first, _)) = self.page.front()
            && *first != self.cursor.next()
        {
            self.page.clear();
            self.is_behind = true;
        }
    }
}
