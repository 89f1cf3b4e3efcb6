//! Goals that could not be driven, and when each is tried again. Whoever fails each time must not keep the pool busy.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use towline_core::{GoalId, HoldReason};

/// The pause after the first failure; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long after its pause a goal is remembered: one that fails again waits longer.
const REMEMBERED: Duration = Duration::from_secs(300);

#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<GoalId, Refusal>);

#[derive(Debug)]
struct Refusal {
    pause: Duration,
    until: Timestamp,
    error: String,
}

impl Refusals {
    /// The goal could not be driven.
    pub(super) fn add(&mut self, goal: GoalId, error: String, now: Timestamp) {
        let pause = self.0.get(&goal).map_or(FIRST_PAUSE, |before| (before.pause * 2).min(LONGEST_PAUSE));
        self.0.insert(goal, Refusal { pause, until: after(now, pause), error });
    }

    /// The goal was driven without a failure.
    pub(super) fn forget(&mut self, goal: GoalId) {
        self.0.remove(&goal);
    }

    /// Whether the goal is to be left alone for now.
    pub(super) fn holds(&self, goal: GoalId, now: Timestamp) -> bool {
        self.0.get(&goal).is_some_and(|refusal| refusal.until > now)
    }

    /// The goals that are to be left alone for now. Those that failed long ago are forgotten.
    pub(super) fn held(&mut self, now: Timestamp) -> impl Iterator<Item = GoalId> {
        self.0.retain(|_, refusal| after(refusal.until, REMEMBERED) > now);
        self.0.iter().filter(move |(_, refusal)| refusal.until > now).map(|(goal, _)| *goal)
    }

    /// Why goals are left alone for now.
    pub(super) fn reasons(&self, now: Timestamp) -> impl Iterator<Item = (GoalId, HoldReason)> {
        let held = self.0.iter().filter(move |(_, refusal)| refusal.until > now);
        held.map(|(goal, Refusal { until, error, .. })| {
            (*goal, HoldReason::Retry { error: error.clone(), until: *until })
        })
    }

    /// When the next one can be tried again.
    pub(super) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.0.values().map(|refusal| refusal.until).filter(|until| *until > now).min()
    }
}

fn after(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_that_fails_each_time_is_tried_less_and_less_often_and_forgotten_after_a_while() {
        let goal: GoalId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().expect("an id");
        let mut refusals = Refusals::default();
        let mut now = Timestamp::from_second(1_800_000_000).expect("in range");
        let mut pauses = Vec::new();
        for _ in 0..8 {
            refusals.add(goal, "disk I/O error".into(), now);
            let next = refusals.next(now).expect("a next try");
            assert!(refusals.holds(goal, now) && !refusals.holds(goal, next));
            let why = HoldReason::Retry { error: "disk I/O error".into(), until: next };
            assert_eq!(refusals.reasons(now).collect::<Vec<_>>(), [(goal, why)]);
            pauses.push(next.duration_since(now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!((refusals.held(now).count(), refusals.0.len()), (0, 1));
        assert_eq!(refusals.held(after(now, REMEMBERED)).count(), 0);
        assert!(refusals.0.is_empty());
    }
}
