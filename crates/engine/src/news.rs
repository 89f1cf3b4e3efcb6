//! How executors report to the driver.

use tokio::sync::{mpsc, oneshot};
use towline_core::{AttemptNo, Event, Generation, Incoming, Source, Stamp};

/// Events that are recorded in one transaction.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) incoming: Vec<Incoming>,
    /// Notified once the batch is recorded, for an executor that must not act before.
    pub(crate) recorded: Option<oneshot::Sender<()>>,
}

/// Sends an executor's events to the driver. Bounded: an executor that reads faster than the store writes waits.
#[derive(Debug, Clone)]
pub(crate) struct EventSender {
    sender: mpsc::Sender<Batch>,
    stamp: Stamp,
}

/// The driver has ended, and the executor should end too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DriverGone;

impl EventSender {
    /// A sender for the executor of one effect.
    pub(crate) const fn new(
        sender: mpsc::Sender<Batch>,
        generation: Generation,
        attempt: Option<AttemptNo>,
    ) -> Self {
        Self { sender, stamp: Stamp { generation, attempt } }
    }

    /// The stamp of every event of this sender.
    pub(crate) const fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Sends events to the driver.
    pub(crate) async fn send(&self, incoming: Vec<Incoming>) -> Result<(), DriverGone> {
        if incoming.is_empty() {
            return Ok(());
        }
        self.sender.send(Batch { incoming, recorded: None }).await.map_err(|_| DriverGone)
    }

    /// Sends events to the driver and waits until they are recorded, and everything that was sent before.
    pub(crate) async fn send_and_wait(&self, incoming: Vec<Incoming>) -> Result<(), DriverGone> {
        let (done, recorded) = oneshot::channel();
        self.sender.send(Batch { incoming, recorded: Some(done) }).await.map_err(|_| DriverGone)?;
        recorded.await.map_err(|_| DriverGone)
    }

    /// Sends one event of Towline's own.
    pub(crate) async fn send_own(&self, event: Event) -> Result<(), DriverGone> {
        self.send(vec![own(self.stamp, event)]).await
    }
}

/// An event of Towline's own.
pub(crate) const fn own(stamp: Stamp, event: Event) -> Incoming {
    Incoming { stamp, source: Source::Towline, parent: None, raw: None, event }
}

/// How urgently running work has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum StopLevel {
    #[default]
    Run,
    /// End, with time to end gracefully.
    Stop,
    /// The same, but nothing more may be spent: what cannot be asked to end its turn ends at once.
    StopSpending,
    /// End at once.
    Kill,
}
