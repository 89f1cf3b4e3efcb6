//! Time, read in one place. Everything that takes a certain time is measured with `Instant`, which nobody can set and which
//! does not advance while the machine is suspended: a program that could not run has used none of its time. Wall time is only for
//! what people and other processes compare.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch; zero on a machine whose clock precedes it.
pub(crate) fn unix_ms() -> u64 {
    millis(since_epoch())
}

#[expect(clippy::disallowed_methods, reason = "a supervisor has no other clock")]
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Whole milliseconds, as many as fit.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The time of one run: wall time at its start, and from there on the time that has passed. A clock that is set meanwhile
/// changes nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunClock {
    /// Since the Unix epoch.
    started_at: Duration,
    started: Instant,
}

impl RunClock {
    pub(crate) fn start() -> Self {
        Self { started_at: since_epoch(), started: Instant::now() }
    }

    pub(crate) fn started_at_ms(self) -> u64 {
        millis(self.started_at)
    }

    /// Milliseconds since the Unix epoch, as far as this run is concerned.
    pub(crate) fn now_ms(self) -> u64 {
        self.at_ms(Instant::now())
    }

    fn at_ms(self, now: Instant) -> u64 {
        millis(self.started_at.saturating_add(now.saturating_duration_since(self.started)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_run_is_its_start_and_what_has_passed_since() {
        let clock = RunClock { started_at: Duration::from_secs(1_800_000_000), started: Instant::now() };
        assert_eq!(clock.at_ms(clock.started + Duration::from_millis(1_500)), 1_800_000_001_500);
        let endless = RunClock { started_at: Duration::MAX, ..clock };
        assert_eq!(endless.at_ms(clock.started + Duration::from_secs(1)), u64::MAX);
    }
}
