//! How long to wait and how often to try: pure functions of what happened.

use std::time::Duration;

use jiff::Timestamp;

use crate::deadlines::later;
use crate::{SessionLimits, Tokens};

/// The numbers behind the decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy;

impl Policy {
    /// How long the first attempt waits for the checks on the base.
    pub const BASELINE_HEAD_START: Duration = Duration::from_secs(10);
    /// Summaries in a row that may not come about before a new conversation is begun.
    pub const FAILED_COMPACTIONS: u32 = 2;
    /// How often a conversation that no longer fits is summarised before a new one is begun.
    pub const COMPACTIONS_AFTER_OVERFLOW: u32 = 2;
    /// What a summary is to keep.
    pub const COMPACTION_FOCUS: &'static str = "Keep the goal, how it is checked, what was tried and why it failed, \
                                                messages of the operator, and what is still to be done; you continue with \
                                                the goal right after this.";
    /// Bad endings in a row after which another agent goes on, where the goal lists one.
    pub const ERRORS_BEFORE_HANDOVER: u32 = 3;
    /// How long an agent that failed so often is left alone.
    pub const FAILING_AGENT_PAUSE: Duration = Duration::from_secs(15 * 60);
    /// Attempts in a row that may die before they have a session.
    pub const FAILED_STARTS: u32 = 3;
    /// Verdicts in a row on the same files with the same failures.
    pub const NO_PROGRESS: u32 = 3;
    /// Refused credentials in a row. The first may be a token being refreshed.
    pub const AUTH_FAILURES: u32 = 2;
    /// How long an agent waits for an answer, ours or a person's, before its attempt is ended.
    pub const ANSWER_PATIENCE: Duration = Duration::from_secs(10 * 60);
    /// Refusals of a conversation in a row after which a new session starts.
    pub const REFUSALS: usize = 2;
    /// Resumed attempts in a row that crash without a trace of work before a new session starts.
    pub const FAILED_RESUMES: usize = 2;
    /// Times in a row that a judge may use something and give no verdict: as many as an agent may end badly by default.
    pub const JUDGE_FAILURES: u32 = 5;
    /// How many conversations with judges are part of a goal's state.
    pub const JUDGES_LISTED: usize = 50;
    /// How long a provider that does not answer is asked again before a person is needed.
    pub const LONGEST_OUTAGE: Duration = Duration::from_secs(12 * 3_600);
    /// The first wait for a quota whose reset time is unknown. Each further one in a row is twice as long.
    const FIRST_GUESS: Duration = Duration::from_secs(60);
    /// The longest wait for a quota whose reset time is unknown.
    const LONGEST_GUESS: Duration = Duration::from_secs(30 * 60);
    /// No announced reset is believed beyond this.
    const LONGEST_LIMIT: Duration = Duration::from_secs(8 * 24 * 3_600);
    /// Jitter is at most this part of what it is added to: a tenth.
    const JITTER_PART: u32 = 10;
    /// A deadline is met this closely, however far away it is.
    const LONGEST_JITTER: Duration = Duration::from_secs(30);

    /// The pause before attempt after the `failures`th bad ending in a row: 2, 4, 8 … up to 300 seconds.
    pub fn backoff(failures: u32) -> Duration {
        Duration::from_secs(2_u64.saturating_pow(failures.clamp(1, 9)).min(300))
    }

    /// The pause before work is checked again whose judge did not answer for the `tries`th time in a row: 1, 2, 4 … up to 30 minutes.
    /// All checks run again, and a judge is asked several times before it counts as out of reach.
    pub fn judge_pause(tries: u32) -> Duration {
        Self::guessed_limit(tries.saturating_sub(1))
    }

    /// Whether a context that is used so far is to be summarised before the conversation goes on.
    pub fn compacts(context: Option<(Tokens, Option<Tokens>)>, threshold: f64) -> bool {
        match context {
            Some((used, Some(size))) if size.0 > 0 => used.0 as f64 >= threshold * size.0 as f64,
            _ => false,
        }
    }

    /// Why a conversation that began at `since` and was last used at `last_used` is not continued.
    pub fn worn_out(
        limits: &SessionLimits,
        since: Timestamp,
        last_used: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<&'static str> {
        if later(last_used.unwrap_or(since), limits.idle) <= now {
            Some("it was not used for longer than `session_idle_limit`")
        } else if later(since, limits.age) <= now {
            Some("it is older than `session_age_limit`")
        } else {
            None
        }
    }

    /// When to go on after a limit, and whether that is a guess. A reset time in the past, or further away than
    /// any quota window, is not believed. `guesses` is the number of guesses in a row before this one.
    pub fn limited_until(announced: Option<Timestamp>, guesses: u32, now: Timestamp) -> (Timestamp, bool) {
        match announced {
            Some(reset) if reset > now && reset <= later(now, Self::LONGEST_LIMIT) => (reset, false),
            _ => (later(now, Self::guessed_limit(guesses)), true),
        }
    }

    fn guessed_limit(guesses: u32) -> Duration {
        Self::FIRST_GUESS.saturating_mul(2_u32.saturating_pow(guesses)).min(Self::LONGEST_GUESS)
    }

    /// When a goal that began to wait at `since` comes back: a little after `until`, by up to a tenth of the wait and
    /// at most half a minute, and never before. Many goals that wait for the same thing must not all come back at
    /// once. The same seed gives the same time; [`GoalId::seed`](crate::GoalId::seed) makes one.
    pub fn wakes_at(since: Timestamp, until: Timestamp, seed: u64) -> Timestamp {
        let wait = Duration::try_from(until.duration_since(since)).unwrap_or_default();
        later(until, Self::jitter((wait / Self::JITTER_PART).min(Self::LONGEST_JITTER), seed))
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
    fn the_context_in_use_decides_when_it_is_summarised() {
        let context = |used, size: Option<u64>| Some((Tokens(used), size.map(Tokens)));
        assert!(Policy::compacts(context(140_000, Some(200_000)), 0.7));
        assert!(!Policy::compacts(context(139_999, Some(200_000)), 0.7));
        assert!(!Policy::compacts(context(1_000_000, None), 0.7));
        assert!(!Policy::compacts(context(1, Some(0)), 0.7));
        assert!(!Policy::compacts(None, 0.7));
    }

    #[test]
    fn a_conversation_wears_out_by_age_and_by_lying_unused() {
        let hours = |hours: u64| Duration::from_secs(hours * 3_600);
        let began = Timestamp::from_second(1_800_000_000).expect("in range");
        let limits = SessionLimits { idle: hours(24), age: hours(72), ..SessionLimits::default() };
        let worn_out = |used: u64, now: u64| {
            Policy::worn_out(&limits, began, Some(later(began, hours(used))), later(began, hours(now)))
        };
        assert_eq!(worn_out(2, 25), None);
        assert_eq!(worn_out(1, 25), Some("it was not used for longer than `session_idle_limit`"));
        assert_eq!(worn_out(70, 71), None);
        assert_eq!(worn_out(71, 72), Some("it is older than `session_age_limit`"));
        assert_eq!(Policy::worn_out(&limits, began, None, later(began, hours(24))), worn_out(0, 24));
    }

    #[test]
    fn only_a_believable_reset_time_is_believed() {
        let now = Timestamp::from_second(1_800_000_000).expect("in range");
        let hour = Duration::from_secs(3_600);
        let guess = (later(now, Policy::FIRST_GUESS), true);
        assert_eq!(Policy::limited_until(Some(later(now, hour)), 3, now), (later(now, hour), false));
        assert_eq!(Policy::limited_until(None, 0, now), guess);
        assert_eq!(Policy::limited_until(Some(now), 0, now), guess);
        assert_eq!(Policy::limited_until(Some(later(now, hour * 24 * 365)), 0, now), guess);
    }

    #[test]
    fn a_guessed_reset_starts_at_a_minute_and_doubles_up_to_half_an_hour() {
        let minutes = [0, 1, 2, 4, 5, 40].map(|guesses| Policy::guessed_limit(guesses).as_secs() / 60);
        assert_eq!(minutes, [1, 2, 4, 16, 30, 30]);
    }

    #[test]
    fn a_judge_that_does_not_answer_for_twelve_hours_is_asked_in_about_thirty_rounds() {
        let mut waited = Duration::ZERO;
        let rounds = (1..).take_while(|tries| {
            waited += Policy::judge_pause(*tries);
            waited < Policy::LONGEST_OUTAGE
        });
        assert_eq!(rounds.count(), 27);
        assert_eq!(
            [0, 1, 2, 6, 1_000].map(|tries| Policy::judge_pause(tries).as_secs() / 60),
            [1, 1, 2, 30, 30]
        );
    }

    #[test]
    fn goals_that_wait_for_the_same_time_come_back_a_little_after_it_one_by_one() {
        let now = Timestamp::from_second(1_800_000_000).expect("in range");
        let (minute, day) = (Duration::from_secs(60), Duration::from_secs(24 * 3_600));
        for (wait, most) in [(minute, minute / 10), (day, Duration::from_secs(30))] {
            let until = later(now, wait);
            let delay = |seed| {
                let delay = Policy::wakes_at(now, until, seed).duration_since(until);
                Duration::try_from(delay).expect("never earlier")
            };
            let delays: BTreeSet<Duration> = (0..1_000).map(delay).collect();
            assert_eq!(delays.len(), 1_000, "each has its own time");
            let tenths = delays.iter().map(|delay| delay.as_nanos() * 10 / most.as_nanos());
            assert_eq!(tenths.collect::<BTreeSet<_>>(), (0..10).collect(), "spread over {most:?}");
            assert_eq!(delay(7), delay(7));
        }
        assert_eq!(Policy::wakes_at(now, now, 7), now);
        assert_eq!(Policy::wakes_at(later(now, day), now, 7), now);
        assert_eq!(Policy::wakes_at(now, Timestamp::MAX, 7), Timestamp::MAX);
    }
}
