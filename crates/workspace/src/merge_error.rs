//! Why a merge was refused. Whatever it is, nothing was changed.

use std::path::PathBuf;

use crate::WorkspaceError;
use crate::words::listed;

/// How many files an error names.
const NAMED: usize = 12;

/// Why a goal's work was not merged. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Git, the disk or the repository.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The checkout is on no branch.
    #[error(
        "{} has no branch checked out (detached HEAD), so that nothing would hold on to the merge; \
         check one out (`git switch BRANCH`), or name it", root.display()
    )]
    Detached { root: PathBuf },
    /// Somebody is in the middle of something.
    #[error("{what} is under way in {}; finish it first: {way_out}", root.display())]
    Unfinished {
        root: PathBuf,
        /// What is under way.
        what: &'static str,
        /// How to come to its end.
        way_out: &'static str,
    },
    /// Somebody is in the middle of something with the branch, although it is checked out nowhere.
    #[error("`{branch}` is in use: {what} is under way in {}; finish it first: {way_out}", root.display())]
    InUse {
        branch: String,
        /// The worktree in which that is.
        root: PathBuf,
        /// What is under way.
        what: &'static str,
        /// How to come to its end.
        way_out: &'static str,
    },
    /// The branch does not exist.
    #[error("there is no branch `{branch}` in {}; `git branch` lists them", root.display())]
    NoSuchBranch {
        /// The name that was given.
        branch: String,
        root: PathBuf,
    },
    /// What is checked out has nothing to do with what the goal started from.
    #[error(
        "`{into}` is checked out, which does not have the commit {base} that the goal started from{}; \
         check out the branch that is meant, or name it",
        having(holding)
    )]
    OtherBranch {
        /// The branch that is checked out.
        into: String,
        /// What the goal started from.
        base: String,
        /// Branches that have it.
        holding: Vec<String>,
    },
    /// Both sides changed the same places.
    #[error("the work and `{into}` changed the same places in {}", listed(files, NAMED))]
    Conflicts { into: String, files: Vec<String> },
    /// Something in the checkout is in no commit, and would be written over.
    #[error("{} in {} {} uncommitted changes; {}", listed(files, NAMED), root.display(), have(files), origin.words())]
    InTheWay {
        root: PathBuf,
        files: Vec<String>,
        /// Where they come from.
        origin: UncommittedFrom,
    },
    /// A hook of the user's does not want the commit.
    #[error("the hook `{hook}` refused the commit: {detail}")]
    RefusedByHook {
        hook: &'static str,
        /// What it printed.
        detail: String,
    },
    /// The branch is not where it was when the merge was worked out.
    #[error(
        "`{into}` was at {before} and has moved meanwhile, or a checkout came to it or left it; try again"
    )]
    Moved {
        into: String,
        /// Where it was.
        before: String,
    },
}

/// Where files that are in no commit come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UncommittedFrom {
    /// They are what the goal started from: the work contains them.
    GoalsStart,
    /// From somewhere else.
    Elsewhere,
}

impl UncommittedFrom {
    const fn words(self) -> &'static str {
        match self {
            Self::GoalsStart => {
                "the goal started from them, and the work builds on them: commit them (`git add -A && git commit`), then merge"
            }
            Self::Elsewhere => "commit them, put them aside (`git stash -u`) or move them away, then merge",
        }
    }
}

const fn have(files: &[String]) -> &'static str {
    if files.len() == 1 { "has" } else { "have" }
}

fn having(branches: &[String]) -> String {
    match branches {
        [] => String::new(),
        branches => format!(" ({} has it)", listed(branches, NAMED)),
    }
}
