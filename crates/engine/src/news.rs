//! How executors tell the driver what happened.

use tokio::sync::{mpsc, oneshot};
use towline_core::{AttemptNo, Event, Generation, Incoming, Source, Stamp};

/// News that belongs together: recorded in one transaction.
#[derive(Debug)]
pub(crate) struct Batch {
    /// What happened, in order.
    pub(crate) incoming: Vec<Incoming>,
    /// Told once it is recorded, for whoever must not act before.
    pub(crate) recorded: Option<oneshot::Sender<()>>,
}

/// An executor's way to the driver. Bounded: an executor that reads faster than the store writes waits.
#[derive(Debug, Clone)]
pub(crate) struct EventSender {
    sender: mpsc::Sender<Batch>,
    stamp: Stamp,
}

/// The driver is gone; there is nobody left to work for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DriverGone;

impl EventSender {
    /// A line for the executor of one effect.
    pub(crate) const fn new(
        sender: mpsc::Sender<Batch>,
        generation: Generation,
        attempt: Option<AttemptNo>,
    ) -> Self {
        Self { sender, stamp: Stamp { generation, attempt } }
    }

    /// The stamp that this line's news carries.
    pub(crate) const fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Tells the driver.
    pub(crate) async fn send(&self, incoming: Vec<Incoming>) -> Result<(), DriverGone> {
        if incoming.is_empty() {
            return Ok(());
        }
        self.sender.send(Batch { incoming, recorded: None }).await.map_err(|_| DriverGone)
    }

    /// Tells the driver and waits until it is recorded.
    pub(crate) async fn send_and_wait(&self, incoming: Vec<Incoming>) -> Result<(), DriverGone> {
        if incoming.is_empty() {
            return Ok(());
        }
        let (done, recorded) = oneshot::channel();
        self.sender.send(Batch { incoming, recorded: Some(done) }).await.map_err(|_| DriverGone)?;
        recorded.await.map_err(|_| DriverGone)
    }

    /// Tells the driver one thing that Towline did.
    pub(crate) async fn send_own(&self, event: Event) -> Result<(), DriverGone> {
        self.send(vec![own(self.stamp, event)]).await
    }
}

/// Something that Towline did, as news.
pub(crate) const fn own(stamp: Stamp, event: Event) -> Incoming {
    Incoming { stamp, source: Source::Towline, parent: None, raw: None, event }
}

/// How urgently running work is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum StopLevel {
    /// Go on.
    #[default]
    Run,
    /// End, with a chance to end well.
    Stop,
    /// End at once.
    Kill,
}
