//! What a goal that an engine looks after is asked to do.

use tokio::sync::oneshot;
use towline_core::{AgentEvent, Event, Illegal};

use crate::slots::Slot;

/// What the operator wants of a goal that is being driven.
#[derive(Debug)]
pub(crate) enum Order {
    /// An event that the operator requests.
    Event {
        event: Event,
        /// Receives the result once the event is recorded or refused.
        done: oneshot::Sender<Result<(), Illegal>>,
    },
    /// A report that an agent makes through a tool.
    Word {
        /// Proves which attempt the agent belongs to.
        token: String,
        event: AgentEvent,
        /// Receives `true` once it is recorded, `false` if no living attempt has this token.
        done: oneshot::Sender<bool>,
    },
    /// A slot for the goal, which waits for one.
    Slot(Slot),
    /// End whatever still runs at once.
    Kill,
}
