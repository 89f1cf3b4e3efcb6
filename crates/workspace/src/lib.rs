//! Where a goal's work happens and what of it is judged: git worktrees for agents, candidates, clean
//! checkouts for the checks, protected paths, copied files and diffs.
//!
//! Neighbours: `towline-check` runs checks in a [`Verification`]; the engine makes a [`Workspace`] and asks it
//! for a [`Candidate`]. This crate decides nothing, runs no setup commands and no user hooks, and never
//! touches the user's own checkout: not its files, not its index, not its branch. A workspace that is the user's own
//! directory is only looked at, too, until somebody wants it back as it was.
//!
//! All calls block on the `git` program; asynchronous callers wrap them.

mod candidate;
mod copy;
mod create;
mod diff;
mod embedded;
mod error;
mod git;
mod in_place;
mod measure;
mod private_index;
mod protect;
mod repository;
mod verification;
mod workspace;
mod worktrees;

pub use candidate::Candidate;
pub use create::{WorkspacePlan, create};
pub use diff::{Change, ChangedPath, DiffStat, FileStat};
pub use error::WorkspaceError;
pub use in_place::Before;
pub use measure::Consent;
pub use protect::Protect;
pub use repository::Repository;
pub use towline_core::Commit;
pub use verification::{Verification, discard_verification, verification};
pub use workspace::Workspace;
