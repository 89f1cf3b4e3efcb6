//! The caller's wish to stop, which may come at any time.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// A wish that is remembered once it has come, so that it can be asked for at every step.
pub(crate) struct Stop<F> {
    wish: Pin<Box<F>>,
    came: bool,
}

impl<F: Future<Output = ()>> Stop<F> {
    pub(crate) fn new(wish: F) -> Self {
        Self { wish: Box::pin(wish), came: false }
    }

    /// Waits for it. May be dropped and called again.
    pub(crate) async fn wait(&mut self) {
        if !self.came {
            self.wish.as_mut().await;
            self.came = true;
        }
    }

    /// Whether it has come by now.
    pub(crate) async fn has_come(&mut self) -> bool {
        if !self.came {
            self.came = poll_fn(|context| Poll::Ready(self.wish.as_mut().poll(context).is_ready())).await;
        }
        self.came
    }
}
