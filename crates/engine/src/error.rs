//! What can go wrong while goals are driven.

use std::io;
use std::path::PathBuf;

use towline_core::{GoalId, Illegal};
use towline_process::ProcessError;
use towline_store::StoreError;

use crate::reads::NoAnswer;

/// Why the engine could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The request does not fit the phase of the goal.
    #[error("goal {}: {illegal}", goal.short())]
    Illegal { goal: GoalId, illegal: Illegal },
    /// Another engine drives the goal.
    #[error("goal {} is driven by another towline process", goal.short())]
    Busy { goal: GoalId },
    /// A person is in the agent's own session of the goal.
    #[error("a person is in the session of goal {} (`towline enter`)", goal.short())]
    Entered { goal: GoalId },
    /// Another goal is at work in the same directory.
    #[error("goal {} is at work in {folder}, and there can be only one at a time", goal.short())]
    PlaceTaken {
        /// The directory of the other goal.
        folder: String,
        /// The other goal.
        goal: GoalId,
    },
    /// The directory of a goal's project cannot be read in time.
    #[error("cannot read {directory}: {why}")]
    NoAnswer { directory: String, why: NoAnswer },
    /// The state directory cannot be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Home {
        /// What was tried.
        action: &'static str,
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// The state directory, or something in it without which nothing can be recorded, is not there any more.
    #[error("{} was removed or replaced while towline was using it", path.display())]
    StateGone {
        /// What is gone.
        path: PathBuf,
    },
    /// Another engine has taken the place of this one. What runs is left to it.
    #[error("another server has taken over, because this one was suspended")]
    TakenOver,
    /// A directory of a goal is not there any more.
    #[error("{} was removed while goal {} was running", path.display(), goal.short())]
    GoalFilesGone {
        goal: GoalId,
        /// What is gone.
        path: PathBuf,
    },
    /// The store failed until the lease had expired. A running agent is left to its supervisor.
    #[error("goal {} was given up, because nothing could be stored for too long: {source}", goal.short())]
    LeaseExpired {
        goal: GoalId,
        /// The store's last error.
        source: StoreError,
    },
    /// The operator stopped the goal. What ran is ended, but the store failed, so the log does not show it yet.
    #[error("goal {} was stopped and its agent ended, but this is not recorded: {source}", goal.short())]
    StopUnrecorded {
        goal: GoalId,
        /// The operator's command: `cancel` or `pause`.
        request: &'static str,
        /// The store's last error.
        source: StoreError,
    },
    /// What an earlier engine left of the goal could not be ended.
    #[error("goal {}: {source}", goal.short())]
    Processes {
        goal: GoalId,
        /// What went wrong.
        source: ProcessError,
    },
    /// The driver of a goal ended without a word.
    #[error("the driver of goal {} ended unexpectedly", goal.short())]
    DriverLost { goal: GoalId },
}
