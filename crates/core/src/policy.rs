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
    /// Jitter is at most this part of what it is added to: a tenth.
    const JITTER_PART: u32 = 10;
    /// An announced reset is kept to this closely, however far away it is.
    const RESET_JITTER: Duration = Duration::from_secs(30);

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

    /// A little more than `duration`, up to a tenth, and never less: many goals that wait for the same thing must not
    /// all come back at once. The same seed gives the same time; [`GoalId::seed`](crate::GoalId::seed) makes one.
    pub fn jittered(duration: Duration, seed: u64) -> Duration {
        duration.saturating_add(Self::jitter(duration / Self::JITTER_PART, seed))
    }

    /// [`Self::backoff`] with jitter.
    pub fn backoff_jittered(failures: u32, seed: u64) -> Duration {
        Self::jittered(Self::backoff(failures), seed)
    }

    /// The pause before an attempt that goes on where a clock of ours ended the last one: none for the first bad ending
    /// in a row, as it may have been a hiccup that a resumed session is over at once, and a backoff from the second on.
    pub fn resume_pause(failures: u32, seed: u64) -> Duration {
        match failures {
            0 | 1 => Duration::ZERO,
            failures => Self::backoff_jittered(failures - 1, seed),
        }
    }

    /// [`Self::limited_until`] with jitter, of at most half a minute where the reset was announced.
    pub fn limited_until_jittered(
        announced: Option<Timestamp>,
        now: Timestamp,
        seed: u64,
    ) -> (Timestamp, bool) {
        let (until, guessed) = Self::limited_until(announced, now);
        let wait = Duration::try_from(until.duration_since(now)).unwrap_or_default();
        let most = if guessed { Duration::MAX } else { Self::RESET_JITTER };
        (later(until, Self::jitter((wait / Self::JITTER_PART).min(most), seed)), guessed)
    }

    /// Between nothing and `most`, evenly by the seed.
    fn jitter(most: Duration, seed: u64) -> Duration {
        let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        let share = (u128::from(scattered(seed)) * u128::from(most)) >> u64::BITS;
        Duration::from_nanos(u64::try_from(share).unwrap_or(most))
    }
}

/// Spreads neighbouring seeds over all numbers: the finishing steps of SplitMix64.
const fn scattered(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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

    /// How much later than without jitter, for each of many seeds.
    fn delays(wait: impl Fn(u64) -> Duration, plain: Duration) -> Vec<Duration> {
        (0..1_000)
            .map(|seed| wait(seed).checked_sub(plain).expect("jitter never makes a wait shorter"))
            .collect()
    }

    /// They lie within the bound and are spread over all of it.
    fn assert_spread(delays: &[Duration], most: Duration) {
        let tenths: BTreeSet<u128> =
            delays.iter().map(|delay| delay.as_nanos() * 10 / most.as_nanos()).collect();
        assert_eq!(tenths, (0..10).collect(), "of {most:?}");
        let distinct: BTreeSet<&Duration> = delays.iter().collect();
        assert_eq!(distinct.len(), delays.len());
    }

    #[test]
    fn jitter_adds_up_to_a_tenth_and_the_same_for_the_same_seed() {
        let minute = Duration::from_secs(60);
        assert_spread(&delays(|seed| Policy::jittered(minute, seed), minute), minute / 10);
        assert_eq!(Policy::jittered(minute, 7), Policy::jittered(minute, 7));
        assert_eq!(Policy::jittered(Duration::ZERO, 7), Duration::ZERO);
        assert_eq!(Policy::jittered(Duration::MAX, 7), Duration::MAX);
        let pause = Policy::backoff(9);
        assert_spread(&delays(|seed| Policy::backoff_jittered(9, seed), pause), pause / 10);
    }

    #[test]
    fn one_resume_is_free_and_the_next_ones_wait() {
        let pauses = [0, 1, 2, 3].map(|failures| Policy::resume_pause(failures, 7));
        let backoffs = [1, 2].map(|failures| Policy::backoff_jittered(failures, 7));
        assert_eq!(pauses, [Duration::ZERO, Duration::ZERO, backoffs[0], backoffs[1]]);
    }

    #[test]
    fn an_announced_reset_is_missed_by_half_a_minute_at_most_and_never_met_early() {
        let now = Timestamp::from_second(1_800_000_000).expect("in range");
        let wait = |announced: Option<Timestamp>, guess: bool| {
            move |seed| {
                let (until, guessed) = Policy::limited_until_jittered(announced, now, seed);
                assert_eq!(guessed, guess);
                Duration::try_from(until.duration_since(now)).expect("later")
            }
        };
        let (minute, day) = (Duration::from_secs(60), Duration::from_secs(24 * 3_600));
        assert_spread(&delays(wait(Some(later(now, day)), false), day), Duration::from_secs(30));
        assert_spread(&delays(wait(Some(later(now, minute)), false), minute), minute / 10);
        assert_spread(&delays(wait(None, true), Policy::GUESSED_LIMIT), Policy::GUESSED_LIMIT / 10);
    }
}
