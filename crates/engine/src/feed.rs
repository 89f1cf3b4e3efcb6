//! What a driver passes on to followers of its goal: events as they are recorded, and the message that is being written.
//!
//! Events come from the append itself. A follower that is new or too slow reads the store until it has caught up.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use towline_core::{Envelope, GoalId, Incoming, Seq};
use towline_mask::Mask;
use towline_store::{Store, StoreError};

use crate::live::{Live, LiveMessage, Writing};

/// How many appends may wait for a follower before it has to read the store.
const APPENDS: usize = 32;
/// How many events are read from the store at once.
const PAGE: usize = 500;
/// How long to wait before a store that fails for now is read again.
const STORE_PAUSE: Duration = Duration::from_millis(200);

/// The events of one append; none where the store has to be read.
pub(crate) type Appends = Arc<[Envelope]>;

/// The driver's side. Followers notice when it is dropped.
#[derive(Debug)]
pub(crate) struct Feed {
    appends: broadcast::Sender<Appends>,
    writing: watch::Sender<Writing>,
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self { appends: broadcast::Sender::new(APPENDS), writing: watch::Sender::default() }
    }

    /// Where followers subscribe.
    pub(crate) fn source(&self) -> FeedSource {
        FeedSource { appends: self.appends.downgrade(), writing: self.writing.subscribe() }
    }

    /// Passes on what was recorded.
    pub(crate) fn appended(&self, events: Vec<Envelope>) {
        // There may be no follower.
        let _ = self.appends.send(events.into());
    }

    /// Takes note of what an agent did, before it is recorded.
    pub(crate) fn saw(&self, incoming: &Incoming, mask: &Arc<Mask>) {
        self.writing.send_if_modified(|writing| writing.follow(incoming, mask));
    }

    /// Passes on a message from another process.
    pub(crate) fn pass_on(&self, message: LiveMessage) {
        self.writing.send_replace(Writing::passed_on(message));
    }
}

/// Where followers of a goal subscribe.
#[derive(Debug, Clone)]
pub(crate) struct FeedSource {
    appends: broadcast::WeakSender<Appends>,
    writing: watch::Receiver<Writing>,
}

impl FeedSource {
    /// Appends from now on; none when the driver has ended.
    pub(crate) fn appends(&self) -> Option<broadcast::Receiver<Appends>> {
        self.appends.upgrade().map(|sender| sender.subscribe())
    }

    /// The goal's log after `after` as it grows.
    pub(crate) fn events(&self, goal: GoalId, store: Arc<dyn Store>, after: Seq) -> Events {
        let appends = self.appends();
        Events { goal, store, appends, cursor: after, page: VecDeque::new(), is_behind: true }
    }

    /// The message that is being written.
    pub(crate) fn live(&self) -> Live {
        Live::new(self.writing.clone())
    }
}

/// A goal's log as it grows.
pub struct Events {
    goal: GoalId,
    store: Arc<dyn Store>,
    /// None once the driver has ended.
    appends: Option<broadcast::Receiver<Appends>>,
    /// The last event that was given.
    cursor: Seq,
    page: VecDeque<Envelope>,
    /// Whether the store has events that no append will bring.
    is_behind: bool,
}

impl Events {
    /// The next event; none once the goal's driver has ended and everything was given. Safe to drop while
    /// waiting.
    pub async fn next(&mut self) -> Result<Option<Envelope>, StoreError> {
        loop {
            if let Some(event) = self.page.pop_front() {
                self.cursor = event.seq;
                return Ok(Some(event));
            }
            if self.is_behind {
                self.read_store().await?;
            } else if let Some(appends) = &mut self.appends {
                match appends.recv().await {
                    Ok(events) => self.take(&events),
                    Err(RecvError::Lagged(_)) => self.is_behind = true,
                    Err(RecvError::Closed) => {
                        // The last word of a driver that is gone may not have reached us: the log has it.
                        self.appends = None;
                        self.is_behind = true;
                    }
                }
            } else {
                return Ok(None);
            }
        }
    }

    /// Takes over what follows the last event that was given.
    fn take(&mut self, events: &[Envelope]) {
        let new = events.iter().skip_while(|event| event.seq <= self.cursor);
        self.page.extend(new.cloned());
        self.is_behind = match self.page.front() {
            Some(first) => first.seq != self.cursor.next(),
            None => events.is_empty(),
        };
        if self.is_behind {
            self.page.clear();
        }
    }

    async fn read_store(&mut self) -> Result<(), StoreError> {
        match self.store.events(self.goal, self.cursor, PAGE).await {
            Ok(page) => {
                // Appends were subscribed to before this, so they bring all that is not there yet.
                self.is_behind = !page.is_empty();
                self.page = page.into();
            }
            // The driver waits for the store, too.
            Err(error) if error.is_passing() && self.appends.is_some() => {
                tokio::time::sleep(STORE_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
