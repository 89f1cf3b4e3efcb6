//! How long to wait and how often to try: pure functions of what happened.

use std::time::Duration;

use jiff::Timestamp;

use crate::clock::later;
use crate::{SessionLimits, Tokens};

/// The numbers behind the decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy;

impl Policy {
    /// Summaries in a row that may not come about before a new conversation is begun.
    pub const FAILED_COMPACTIONS: u32 = 2;
    /// How often a conversation that no longer fits is summarised before a new one is begun.
    pub const COMPACTIONS_AFTER_OVERFLOW: u32 = 2;
    /// What a summary is to keep.
    pub const COMPACTION_FOCUS: &'static str = "Keep the goal, how it is checked, what was tried and why it failed, \
                                                what the operator said, and what is still to be done; you go on with \
                                                the goal right after this.";
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

    /// Whether a context that is used so far is to be summarised before the conversation goes on.
    pub fn compacts(context: Option<(Tokens, Option<Tokens>)>, threshold: f64) -> bool {
        match context {
            Some((used, Some(size))) if size.0 > 0 => used.0 as f64 >= threshold * size.0 as f64,
            _ => false,
        }
    }

    /// Why a conversation that began at `since` and was last used at `last_used` is not gone on with.
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
        let limits = SessionLimits { context_threshold: 0.7, idle: hours(24), age: hours(72) };
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
        let guess = (later(now, Policy::GUESSED_LIMIT), true);
        assert_eq!(Policy::limited_until(Some(later(now, hour)), now), (later(now, hour), false));
        assert_eq!(Policy::limited_until(None, now), guess);
        assert_eq!(Policy::limited_until(Some(now), now), guess);
        assert_eq!(Policy::limited_until(Some(later(now, hour * 24 * 365)), now), guess);
    }
}
