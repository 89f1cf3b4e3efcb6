//! What one beat of the driver records.

use jiff::Timestamp;
use towline_core::{Effect, Envelope, GoalId, GoalState, Incoming, Moved, Source};
use towline_mask::Mask;

use crate::secrecy::hide;

/// What is to be recorded: one transaction.
pub(super) struct Transition {
    pub(super) events: Vec<Envelope>,
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
    pub(super) fn add(&mut self, goal: GoalId, incoming: Incoming, moved: Moved, at: Timestamp, mask: &Mask) {
        let attempt = incoming.stamp.attempt;
        let mut event = moved.recorded_as.map_or(incoming.event, |event| *event);
        if incoming.source == Source::Operator {
            hide(mask, &mut event);
        }
        let (parent, raw) = (incoming.parent, incoming.raw);
        self.events.push(Envelope {
            attempt,
            parent,
            raw,
            ..Envelope::new(goal, at, incoming.source, event)
        });
        let derived = moved.events.into_iter();
        self.events.extend(derived.map(|mut event| {
            hide(mask, &mut event);
            Envelope { attempt, ..Envelope::new(goal, at, Source::Towline, event) }
        }));
        self.effects.extend(moved.effects);
        self.settled.extend(moved.settled);
    }
}
