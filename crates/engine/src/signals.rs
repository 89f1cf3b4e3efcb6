//! Signals to the tasks of an engine that it is time to look. Nothing is lost: whoever looks reads the store.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;
use towline_core::GoalId;

/// The signals of an engine.
#[derive(Debug)]
pub(crate) struct Signals {
    appended: watch::Sender<()>,
    moved: watch::Sender<()>,
    draining: watch::Sender<bool>,
    closing: watch::Sender<bool>,
    /// Drivers that have ended since the last look of the pool, with the errors of those that failed. Nobody adds to it without a
    /// pool.
    ended: Mutex<Vec<(GoalId, Option<String>)>>,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            appended: watch::Sender::new(()),
            moved: watch::Sender::new(()),
            draining: watch::Sender::new(false),
            closing: watch::Sender::new(false),
            ended: Mutex::default(),
        }
    }
}

impl Signals {
    /// Events were recorded.
    pub(crate) fn note_append(&self) {
        self.appended.send_replace(());
    }

    /// Something has changed that decides which goals start.
    pub(crate) fn note_move(&self) {
        self.moved.send_replace(());
    }

    /// The driver of this goal has ended.
    pub(crate) fn note_end(&self, goal: GoalId, error: Option<String>) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push((goal, error));
        self.note_move();
    }

    /// The drivers that have ended since this was asked, with the errors of those that failed.
    pub(crate) fn take_ended(&self) -> Vec<(GoalId, Option<String>)> {
        std::mem::take(&mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another process has written to the store.
    pub(crate) fn note_foreign_write(&self) {
        self.note_append();
        self.note_move();
    }

    /// No goal is to start any more.
    pub(crate) fn drain(&self) {
        self.draining.send_replace(true);
        self.note_move();
    }

    /// The engine ends.
    pub(crate) fn close(&self) {
        // First, so that whoever wakes up sees it.
        self.closing.send_replace(true);
        self.drain();
        self.note_append();
    }

    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Whether no goal is to start any more.
    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Changes when events were recorded.
    pub(crate) fn appended(&self) -> watch::Receiver<()> {
        self.appended.subscribe()
    }

    /// Changes when it is time to look who is next.
    pub(crate) fn moved(&self) -> watch::Receiver<()> {
        self.moved.subscribe()
    }
}
