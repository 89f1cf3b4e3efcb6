//! The caller's request to stop, which may arrive at any time.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use crate::CheckError;

/// A request that stays true once it has arrived, so that every step can check it.
pub(crate) struct Stop<F> {
    request: Pin<Box<F>>,
    came: bool,
}

impl<F: Future<Output = ()>> Stop<F> {
    pub(crate) fn new(request: F) -> Self {
        Self { request: Box::pin(request), came: false }
    }

    /// Waits for it. May be dropped and called again.
    pub(crate) async fn wait(&mut self) {
        if !self.came {
            self.request.as_mut().await;
            self.came = true;
        }
    }

    /// Fails if it has come by now.
    pub(crate) async fn must_not_have_come(&mut self) -> Result<(), CheckError> {
        if !self.came {
            self.came = poll_fn(|context| Poll::Ready(self.request.as_mut().poll(context).is_ready())).await;
        }
        if self.came { Err(CheckError::Stopped) } else { Ok(()) }
    }
}
