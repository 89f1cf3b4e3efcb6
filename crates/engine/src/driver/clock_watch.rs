//! Notices that the system's clock was set, or that the machine was suspended.
//!
//! The budget `wall` counts from a time that is stored. Time in which nothing could run is subtracted again.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use towline_core::Event;

use super::Driver;
use crate::error::EngineError;

/// Smaller differences are left alone until they have added up: clocks are corrected a little all the time.
const NOTEWORTHY: SignedDuration = SignedDuration::from_secs(10);

/// The time of day at a moment.
pub(super) struct ClockWatch {
    wall: Timestamp,
    at: Instant,
}

impl ClockWatch {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { wall: now, at: Instant::now() }
    }

    /// How far the clock has moved beyond the time that passed, if that is worth a note. It is reported once.
    fn moved(&mut self, now: Timestamp) -> Option<SignedDuration> {
        let passed = SignedDuration::try_from(self.at.elapsed()).ok()?;
        let moved = now.duration_since(self.wall).checked_sub(passed)?;
        if moved.abs() < NOTEWORTHY {
            return None;
        }
        *self = Self::new(now);
        Some(moved)
    }
}

impl Driver {
    /// Records that the clock has moved, before anything else is judged by it.
    pub(super) async fn note_moved_clock(&mut self) -> Result<(), EngineError> {
        match self.clock.moved(self.shared.clock.now()) {
            Some(by) => {
                let by_ms = i64::try_from(by.as_millis()).unwrap_or(0);
                self.take_in(vec![self.own(Event::ClockMoved { by_ms })]).await
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_set_is_reported_once_and_time_that_passes_is_not() {
        let begun = Timestamp::from_second(1_800_000_000).expect("in range");
        let at = |second: i64| begun + SignedDuration::from_secs(second);
        let mut watch = ClockWatch::new(begun);
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(watch.moved(at(100)), None);
        assert_eq!(watch.moved(at(104)), None, "a correction");
        assert_eq!(watch.moved(at(7_300)), Some(SignedDuration::from_secs(7_200)));
        assert_eq!(watch.moved(at(7_300)), None);
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(watch.moved(at(150)), Some(SignedDuration::from_secs(-7_200)));
    }
}
