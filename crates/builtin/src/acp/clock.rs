//! The current time, and jitter for delays.

use std::time::Duration;

use jiff::Timestamp;

/// The wall-clock time.
#[expect(clippy::disallowed_methods, reason = "a process of its own: this is its edge")]
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}

/// The delay plus or minus a quarter, so that clients that failed together do not retry together.
pub(super) fn jittered(delay: Duration) -> Duration {
    let [chance, ..] = *uuid::Uuid::new_v4().as_bytes();
    delay.mul_f64(0.75 + f64::from(chance) / 510.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_within_a_quarter() {
        for _ in 0..1000 {
            let delay = jittered(Duration::from_secs(4));
            assert!((Duration::from_secs(3)..=Duration::from_secs(5)).contains(&delay), "{delay:?}");
        }
    }
}
