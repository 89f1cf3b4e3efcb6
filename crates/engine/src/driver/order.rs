//! What a goal that an engine looks after is asked to do.

use tokio::sync::oneshot;
use towline_core::{AgentEvent, Event, Illegal};

use crate::slots::Slot;

/// What the operator wants of a goal that is being driven.
#[derive(Debug)]
pub(crate) enum Order {
    /// This is to happen to it.
    Event {
        /// What.
        event: Event,
        /// Told once it is recorded, or refused.
        done: oneshot::Sender<Result<(), Illegal>>,
    },
    /// The agent of an attempt says something by another way than its output.
    Word {
        /// What proves that it is that agent.
        token: String,
        /// What it says.
        event: AgentEvent,
        /// Told once it is recorded; not when nobody with this token is alive.
        done: oneshot::Sender<bool>,
    },
    /// A slot for the goal, which waits for one.
    Slot(Slot),
    /// End whatever still runs at once.
    Kill,
}
