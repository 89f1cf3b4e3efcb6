//! Where a goal's work happens and what of it is judged: private clones for agents, candidates, clean checkouts for the
//! checks, protected paths, copied files and diffs.
//!
//! Neighbours: `towline-check` runs checks in a [`Verification`]; the engine makes a [`Workspace`] and asks it
//! for a [`Candidate`]. This crate decides nothing, runs no setup commands, and does not touch the user's own
//! checkout: not its files, not its index, not its branch. There are two exceptions, both only when the user asks: a merge
//! ([`MergePlan::carry_out`]), which git does in their name, and putting a directory back that a goal worked in.
//!
//! Everything an agent can write is hostile input: no git command uses its repository as the git directory.
//!
//! All calls block on the `git` program; asynchronous callers wrap them.

mod agent_head;
mod candidate;
mod clone_report;
mod compare;
mod control;
mod copy;
mod copy_digest;
mod create;
mod diff;
mod directory;
mod divergence;
mod embedded;
mod error;
mod file_at;
mod filters;
mod git;
mod git_dir;
mod guard;
mod hints;
mod in_place;
mod in_use;
mod large_files;
mod legacy;
mod legacy_modules;
mod lends;
mod marks;
mod measure;
mod merge;
mod merge_commit;
mod merge_error;
mod own;
mod partial;
mod paths;
mod private_clone;
mod private_index;
mod protect;
mod proven_commit;
mod publish;
mod push;
mod raw_diff;
mod refresh;
mod refs;
mod removal;
mod repository;
mod reverted;
mod section;
mod settings;
mod snapshot;
mod standing;
mod stored;
mod submodules;
mod take_over;
mod threads;
mod tree;
mod verification;
mod walk;
mod warm;
mod words;
mod workspace;
mod worktrees;

pub use candidate::Candidate;
pub use copy_digest::digest_of_copies;
pub use create::{WorkspacePlan, create};
pub use diff::{Change, ChangedPath, DiffStat, FileStat};
pub use divergence::Divergence;
pub use error::WorkspaceError;
pub(crate) use error::unless_git_failed;
pub use file_at::FileAt;
pub use git::{LOCATION_VARIABLES, Stop, find_git};
pub use in_place::Before;
pub use measure::Consent;
pub use merge::{MergePlan, MergeRequest, MergeStyle, MergeWay, MergedFiles};
pub use merge_error::{MergeError, UncommittedFrom};
pub use protect::{Protect, protects_more_than_always};
pub use proven_commit::ProvenCommit;
pub use removal::{AS_IT_IS_NOW, LeftBehind, PreservedWork, Remains, Unmerged, WorkKind};
pub use repository::Repository;
pub use section::{Section, SectionFormat};
pub use standing::{GoalWork, Standing};
pub use towline_core::Commit;
pub use verification::{Difference, Scope, Verification, reopened_verification, verification};
pub use warm::{aside_of, warm_verification};
pub use workspace::Workspace;
