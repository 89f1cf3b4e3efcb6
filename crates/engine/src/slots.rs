//! Who may work at the same time, and who is next.
//!
//! Only new work waits for a slot. What already runs takes one at once, even above the number, so that nothing alive is left
//! unobserved.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;
use towline_core::GoalId;

/// A goal's place in the queue: by the time at which it was queued, which does not change while it waits.
pub(crate) type Place = (Timestamp, GoalId);

/// The slots of an engine.
#[derive(Debug)]
pub(crate) struct Slots {
    most: usize,
    inner: Mutex<Inner>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    taken: usize,
    queue: BTreeSet<Place>,
}

impl Slots {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, inner: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a slot for something that runs already.
    pub(crate) fn take(self: &Arc<Self>) -> Slot {
        self.lock().taken += 1;
        Slot { slots: Arc::clone(self) }
    }

    /// Takes a slot for new work if one is free and no goal waits longer; otherwise the goal has this place in the queue.
    pub(crate) fn ask(self: &Arc<Self>, place: Place) -> Option<Slot> {
        let mut inner = self.lock();
        inner.queue.insert(place);
        if inner.taken >= self.most || inner.queue.first() != Some(&place) {
            return None;
        }
        inner.queue.remove(&place);
        inner.taken += 1;
        Some(Slot { slots: Arc::clone(self) })
    }

    /// Takes a free slot for the goal that waits longest.
    pub(crate) fn grant(self: &Arc<Self>) -> Option<(GoalId, Slot)> {
        let mut inner = self.lock();
        if inner.taken >= self.most {
            return None;
        }
        let (_, goal) = inner.queue.pop_first()?;
        inner.taken += 1;
        Some((goal, Slot { slots: Arc::clone(self) }))
    }

    /// The goal does not wait for a slot any more.
    pub(crate) fn withdraw(&self, place: Place) {
        if self.lock().queue.remove(&place) {
            // It may have been first in front of a free slot.
            self.freed.notify_one();
        }
    }

    /// Waits until a slot may be granted.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to work; releasing is dropping.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.lock().taken -= 1;
        self.slots.freed.notify_one();
    }
}
