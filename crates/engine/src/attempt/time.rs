//! The time by which an attempt's clocks run: wall time at its start, moved on by the time that has passed.
//!
//! A clock that is set meanwhile, or a machine that was suspended, makes no agent late. Its supervisor keeps the same time and
//! writes it into the `index`, so an engine that adopts the attempt asks the supervisor.

use jiff::Timestamp;
use tokio::time::Instant;

pub(super) struct AttemptTime {
    /// The time at a moment.
    time: Timestamp,
    at: Instant,
    is_known: bool,
}

impl AttemptTime {
    /// Of an attempt that starts now.
    pub(super) fn started(now: Timestamp) -> Self {
        Self { time: now, at: Instant::now(), is_known: true }
    }

    /// Of an attempt that another engine started. It is wall time until its supervisor was heard.
    pub(super) fn adopted(now: Timestamp) -> Self {
        Self { is_known: false, ..Self::started(now) }
    }

    /// Takes over the supervisor's time, if that is needed and known.
    pub(super) fn hear(&mut self, run_time_ms: Option<u64>) {
        let time = run_time_ms.and_then(|ms| Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok());
        if let Some(time) = time
            && !self.is_known
        {
            *self = Self::started(time);
        }
    }

    /// Whether anything can be late by this time.
    pub(super) const fn is_known(&self) -> bool {
        self.is_known
    }

    pub(super) fn now(&self) -> Timestamp {
        self.time.checked_add(self.at.elapsed()).unwrap_or(self.time)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("in range")
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_is_as_old_as_the_time_that_passed_whatever_the_clock_shows() {
        let time = AttemptTime::started(at(0));
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(time.now(), at(90));
    }

    #[tokio::test(start_paused = true)]
    async fn an_adopted_attempt_has_the_time_of_its_supervisor() {
        let mut time = AttemptTime::adopted(at(7_200));
        time.hear(None);
        assert!(!time.is_known());
        time.hear(Some(1_800_000_030_000));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(time.is_known());
        assert_eq!(time.now(), at(35));
        time.hear(Some(1_800_009_999_000));
        assert_eq!(time.now(), at(35), "it is asked once");
    }
}
