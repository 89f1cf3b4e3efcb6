//! Why goals wait that only the scheduler of a running engine knows about: they failed, or their directory is taken. Whoever shows
//! reasons asks the engine for them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use towline_core::{GoalId, HoldReason};
use towline_store::WorkerName;

use crate::control::{Reply, Request, ask_engine};
use crate::home::Home;

/// The reasons as of the last look.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<BTreeMap<GoalId, HoldReason>>);

impl Held {
    pub(crate) fn set(&self, reasons: BTreeMap<GoalId, HoldReason>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reasons;
    }

    pub(crate) fn get(&self) -> BTreeMap<GoalId, HoldReason> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What an engine does about the queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolState {
    /// Whether it starts no goal any more.
    pub is_draining: bool,
    /// Why goals wait, beyond what the store and the configuration show.
    pub held: BTreeMap<GoalId, HoldReason>,
}

/// What the engine of this name does about the queue; none if it does not answer.
pub async fn pool_state(home: &Home, worker: &WorkerName) -> Option<PoolState> {
    match ask_engine(home, worker, &Request::PoolState).await {
        Ok(Some(Reply::PoolState { state })) => Some(state),
        // One that is about to end, or hangs, knows nothing more about the queue.
        _ => None,
    }
}
