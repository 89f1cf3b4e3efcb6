//! Counts frames that are not understood, so that a flood of them does not become a flood of events.
//!
//! What is told depends on the frames alone, not on when they were read: a log read again tells the same.

use std::collections::BTreeMap;

use towline_core::AgentEvent;

use crate::protocol::Action;
use crate::text;

/// How many of a kind are told of one by one; after that, each time their number has doubled.
const ONE_BY_ONE: u64 = 64;
/// How many kinds are told apart.
const KINDS: usize = 100;
/// What further kinds are counted under.
const OTHER: &str = "other";

/// The frames of one conversation that were not understood.
#[derive(Debug, Default)]
pub(crate) struct Unrecognised {
    kinds: BTreeMap<String, Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    total: u64,
    untold: u64,
    last: String,
}

impl Unrecognised {
    /// Takes note of a frame; told of when it is its turn.
    pub(crate) fn note(&mut self, what: String, raw: &str) -> Option<Action> {
        let known = self.kinds.len() < KINDS || self.kinds.contains_key(&what);
        let what = if known { what } else { OTHER.to_owned() };
        let seen = self.kinds.entry(what.clone()).or_default();
        seen.total += 1;
        seen.untold += 1;
        seen.last = text::raw_head(raw);
        (seen.total <= ONE_BY_ONE || seen.total.is_power_of_two()).then(|| seen.tell(what))
    }

    /// What was not told of yet.
    pub(crate) fn rest(&mut self) -> Vec<Action> {
        let untold = self.kinds.iter_mut().filter(|(_, seen)| seen.untold > 0);
        untold.map(|(what, seen)| seen.tell(what.clone())).collect()
    }
}

impl Seen {
    fn tell(&mut self, what: String) -> Action {
        let count = std::mem::take(&mut self.untold);
        Action::emit(AgentEvent::Unrecognised { what, raw: self.last.clone(), count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(action: &Action) -> u64 {
        match action {
            Action::Emit { event: AgentEvent::Unrecognised { count, .. }, .. } => *count,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_flood_is_told_of_in_few_events_that_count_every_frame() {
        let mut unrecognised = Unrecognised::default();
        let mut told: Vec<Action> =
            (0..1_000_000).filter_map(|n| unrecognised.note("flood".into(), &format!("frame {n}"))).collect();
        told.extend(unrecognised.rest());
        assert!(told.len() < 100, "{}", told.len());
        assert_eq!(told.iter().map(count).sum::<u64>(), 1_000_000);
        assert!(told[..64].iter().all(|action| count(action) == 1));
        assert_eq!(unrecognised.rest(), []);
    }

    #[test]
    fn kinds_without_end_are_counted_together() {
        let mut unrecognised = Unrecognised::default();
        let told = (0..100_000).filter_map(|n| unrecognised.note(format!("kind {n}"), "")).count();
        assert!(told < 200, "{told}");
        assert_eq!(unrecognised.kinds.len(), KINDS + 1);
    }
}
