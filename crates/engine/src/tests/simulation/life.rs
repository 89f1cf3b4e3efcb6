//! The life of a server, which can end at any point.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// A server passes points: before and after each write to the store and each effect. It may die at one of them.
#[derive(Clone)]
pub(super) struct Life {
    passed: Arc<AtomicUsize>,
    dies_at: Option<usize>,
    dead: watch::Sender<bool>,
}

impl Life {
    pub(super) fn immortal() -> Self {
        Self { passed: Arc::default(), dies_at: None, dead: watch::Sender::new(false) }
    }

    /// One that ends at this point, counted from 1.
    pub(super) fn ending_at(point: usize) -> Self {
        Self { dies_at: Some(point), ..Self::immortal() }
    }

    /// Ends it now.
    pub(super) fn end(&self) {
        self.dead.send_replace(true);
    }

    /// How many points were passed.
    pub(super) fn points(&self) -> usize {
        self.passed.load(Ordering::Relaxed)
    }

    /// Passes a point, unless the server is dead: then nothing happens any more.
    pub(super) async fn point(&self) {
        self.live().await;
        let point = self.passed.fetch_add(1, Ordering::Relaxed) + 1;
        if self.dies_at == Some(point) {
            self.end();
        }
        self.live().await;
    }

    /// Goes on only if the server lives.
    pub(super) async fn live(&self) {
        if *self.dead.borrow() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the server is dead.
    pub(super) async fn death(&self) {
        let mut dead = self.dead.subscribe();
        // The sender is ours.
        let _ = dead.wait_for(|dead| *dead).await;
    }
}
