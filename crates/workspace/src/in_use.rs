//! Branches that somebody is in the middle of moving: while a rebase or a bisection is under way, no worktree has the
//! branch checked out, and yet git will put it somewhere or come back to it.
//!
//! Neighbour: `merge` refuses to move such a branch, as git does. Nothing is changed here.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Repository, WorkspaceError, worktrees};

/// Files of git's in which a branch is named, what is under way then, and the way out.
const MARKS: [(&str, &str, &str); 4] = [
    ("rebase-merge/head-name", "a rebase of it", "`git rebase --continue` or `git rebase --abort`"),
    ("rebase-apply/head-name", "a rebase of it", "`git rebase --continue` or `git rebase --abort`"),
    ("rebase-merge/update-refs", "a rebase that moves it", "`git rebase --continue` or `git rebase --abort`"),
    ("BISECT_START", "a bisection of it", "`git bisect reset`"),
];

/// What is under way with a branch, in some worktree of the repository.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InUse {
    pub(crate) root: PathBuf,
    /// What it is.
    pub(crate) what: &'static str,
    /// How to come to its end.
    pub(crate) way_out: &'static str,
}

/// Looks for a rebase or a bisection that will come back to this branch.
pub(crate) fn in_use(repo: &Repository, branch: &str) -> Result<Option<InUse>, WorkspaceError> {
    let common = repo.common_dir();
    let main_root = if common.ends_with(".git") { common.parent().unwrap_or(common) } else { common };
    let linked = worktrees::all(repo)?.into_iter().map(|linked| (linked.record, linked.path));
    let all = [(common.to_path_buf(), main_root.to_path_buf())].into_iter().chain(linked);
    Ok(all.into_iter().find_map(|(record, root)| {
        let (_, what, way_out) = MARKS.into_iter().find(|(mark, ..)| names(&record.join(mark), branch))?;
        Some(InUse { root, what, way_out })
    }))
}

/// Whether one of the lines is the branch. A file that is not there, or is just being removed, names none.
fn names(file: &Path, branch: &str) -> bool {
    let text = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().any(|line| line.strip_prefix("refs/heads/").unwrap_or(line) == branch)
}
