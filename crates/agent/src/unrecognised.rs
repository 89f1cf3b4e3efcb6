//! Counts frames that are not understood, so that a flood of them does not become a flood of events.
//!
//! Events depend on the frames alone, not on when they were read: reading a log again gives the same events.

use std::collections::BTreeMap;

use towline_core::AgentEvent;

use crate::protocol::Action;
use crate::text;

/// How many frames of a kind are reported one by one. After that, each time their number has doubled.
const ONE_BY_ONE: u64 = 64;
/// The most kinds that are counted separately.
const KINDS: usize = 100;
/// The longest part of a frame in an event.
const RAW_HEAD: usize = 500;
/// The name that further kinds are counted under.
const OTHER: &str = "other";

/// The frames of one conversation that were not understood.
#[derive(Debug, Default)]
pub(crate) struct Unrecognised {
    kinds: BTreeMap<String, Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    total: u64,
    unreported: u64,
    last: String,
}

impl Unrecognised {
    /// Counts a frame, and reports it if it is due.
    pub(crate) fn note(&mut self, what: String, raw: &str) -> Option<Action> {
        let known = self.kinds.len() < KINDS || self.kinds.contains_key(&what);
        let what = if known { what } else { OTHER.to_owned() };
        let seen = self.kinds.entry(what.clone()).or_default();
        seen.total += 1;
        seen.unreported += 1;
        seen.last = text::head(raw, RAW_HEAD).to_owned();
        (seen.total <= ONE_BY_ONE || seen.total.is_power_of_two()).then(|| seen.report(what))
    }

    /// What was not reported yet.
    pub(crate) fn rest(&mut self) -> Vec<Action> {
        let unreported = self.kinds.iter_mut().filter(|(_, seen)| seen.unreported > 0);
        unreported.map(|(what, seen)| seen.report(what.clone())).collect()
    }
}

impl Seen {
    fn report(&mut self, what: String) -> Action {
        let count = std::mem::take(&mut self.unreported);
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
    fn a_flood_becomes_few_events_that_count_every_frame() {
        let mut unrecognised = Unrecognised::default();
        let mut reported: Vec<Action> =
            (0..1_000_000).filter_map(|n| unrecognised.note("flood".into(), &format!("frame {n}"))).collect();
        reported.extend(unrecognised.rest());
        assert!(reported.len() < 100, "{}", reported.len());
        assert_eq!(reported.iter().map(count).sum::<u64>(), 1_000_000);
        assert!(reported[..64].iter().all(|action| count(action) == 1));
        assert_eq!(unrecognised.rest(), []);
    }

    #[test]
    fn unlimited_kinds_are_counted_together() {
        let mut unrecognised = Unrecognised::default();
        let reported = (0..100_000).filter_map(|n| unrecognised.note(format!("kind {n}"), "")).count();
        assert!(reported < 200, "{reported}");
        assert_eq!(unrecognised.kinds.len(), KINDS + 1);
    }
}
