//! How long to wait and how often to try: pure functions of what happened.

use std::time::Duration;

use jiff::Timestamp;

use crate::clock::later;

/// The numbers behind the decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy;

impl Policy {
    /// Attempts in a row that may die before they have a session.
    pub const FAILED_STARTS: u32 = 3;
    /// Verdicts in a row on the same files with the same failures.
    pub const NO_PROGRESS: u32 = 3;
    /// Refused credentials in a row. The first may be a token being refreshed.
    pub const AUTH_FAILURES: u32 = 2;
    /// How long an agent waits for an answer, ours or a person's, before its attempt is ended.
    pub const ANSWER_PATIENCE: Duration = Duration::from_secs(10 * 60);
    /// The wait for a quota whose reset time nobody told us.
    const GUESSED_LIMIT: Duration = Duration::from_secs(5 * 60);
    /// No announced reset is believed beyond this.
    const LONGEST_LIMIT: Duration = Duration::from_secs(8 * 24 * 3_600);

    /// The pause before attempt after the `failures`th bad ending in a row: 2, 4, 8 … up to 300 seconds.
    pub fn backoff(failures: u32) -> Duration {
        Duration::from_secs(2_u64.saturating_pow(failures.clamp(1, 9)).min(300))
    }

    /// When to go on after a limit, and whether that is a guess. A reset time in the past, or further away than
    /// any quota window, is not believed.
    pub fn limited_until(announced: Option<Timestamp>, now: Timestamp) -> (Timestamp, bool) {
        match announced {
            Some(reset) if reset > now && reset <= later(now, Self::LONGEST_LIMIT) => (reset, false),
            _ => (later(now, Self::GUESSED_LIMIT), true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_five_minutes() {
        let pauses = [0, 1, 2, 3, 8, 9, 1_000].map(|failures| Policy::backoff(failures).as_secs());
        assert_eq!(pauses, [2, 2, 4, 8, 256, 300, 300]);
    }

    #[test]
    fn only_a_believable_reset_time_is_believed() {
        let now = Timestamp::from_second(1_800_000_000).expect("in range");
        let hour = Duration::from_secs(3_600);
        let guess = (later(now, Policy::GUESSED_LIMIT), true);
        assert_eq!(Policy::limited_until(Some(later(now, hour)), now), (later(now, hour), false));
        assert_eq!(Policy::limited_until(None, now), guess);
        assert_eq!(Policy::limited_until(Some(now), now), guess);
        assert_eq!(Policy::limited_until(Some(later(now, hour * 24 * 365)), now), guess);
    }
}
