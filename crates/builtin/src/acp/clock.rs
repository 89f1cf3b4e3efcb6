//! What time it is, and a little chance.

use std::time::Duration;

use jiff::Timestamp;

/// The time on the wall.
#[expect(clippy::disallowed_methods, reason = "a process of its own: this is its edge")]
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}

/// The delay, give or take a quarter: so that those who failed together do not come back together.
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
