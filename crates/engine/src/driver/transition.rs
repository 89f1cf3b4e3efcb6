//! What one beat of the driver records.

use jiff::Timestamp;
use towline_core::{Effect, GoalState, Incoming, Moved, Source};
use towline_mask::Mask;
use towline_store::NewEvent;

use crate::secrecy::hide;

/// What is to be recorded: one transaction.
pub(super) struct Transition {
    pub(super) events: Vec<NewEvent>,
    pub(super) state: GoalState,
    pub(super) effects: Vec<Effect>,
    pub(super) settled: Vec<String>,
}

impl From<GoalState> for Transition {
    fn from(state: GoalState) -> Self {
        Self { events: Vec::new(), state, effects: Vec::new(), settled: Vec::new() }
    }
}

impl Transition {
    pub(super) fn add(&mut self, incoming: Incoming, moved: Moved, at: Timestamp, mask: &Mask) {
        let attempt = incoming.stamp.attempt;
        let mut event = moved.recorded_as.map_or(incoming.event, |event| *event);
        if incoming.source == Source::Operator {
            hide(mask, &mut event);
        }
        self.events.push(NewEvent {
            at,
            attempt,
            source: incoming.source,
            parent: incoming.parent,
            raw: incoming.raw,
            event,
        });
        let derived = moved.events.into_iter();
        self.events.extend(derived.map(|mut event| {
            hide(mask, &mut event);
            NewEvent { at, attempt, source: Source::Towline, parent: None, raw: None, event }
        }));
        self.effects.extend(moved.effects);
        self.settled.extend(moved.settled);
    }
}
