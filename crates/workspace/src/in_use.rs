//! Branches that somebody is in the middle of moving: while a rebase or a bisection is under way, no worktree has the
//! branch checked out, and yet git will put it somewhere or come back to it.
//!
//! Neighbour: `merge` refuses to move such a branch, as git does. Nothing is changed here.

use std::fs;
use std::path::Path;

use crate::{MergeError, Repository, worktrees};

/// Files of git's in which a branch is named, what is under way then, and the way out.
const MARKS: [(&str, &str, &str); 4] = [
    ("rebase-merge/head-name", "a rebase of it", "`git rebase --continue` or `git rebase --abort`"),
    ("rebase-apply/head-name", "a rebase of it", "`git rebase --continue` or `git rebase --abort`"),
    ("rebase-merge/update-refs", "a rebase that moves it", "`git rebase --continue` or `git rebase --abort`"),
    ("BISECT_START", "a bisection of it", "`git bisect reset`"),
];

/// Refuses a branch that a rebase or a bisection will come back to, in whatever worktree of the repository.
pub(crate) fn refuse_in_use(repo: &Repository, branch: &str) -> Result<(), MergeError> {
    let common = &repo.common_dir;
    let main_root = if common.ends_with(".git") { common.parent().unwrap_or(common) } else { common };
    let linked = worktrees::all(repo)?.into_iter().map(|linked| (linked.record, linked.path));
    for (record, root) in [(common.to_path_buf(), main_root.to_path_buf())].into_iter().chain(linked) {
        if let Some((_, what, way_out)) =
            MARKS.into_iter().find(|(mark, ..)| names(&record.join(mark), branch))
        {
            return Err(MergeError::InUse { branch: branch.to_owned(), root, what, way_out });
        }
    }
    Ok(())
}

/// Whether one of the lines is the branch. A file that is not there, or is just being removed, names none.
fn names(file: &Path, branch: &str) -> bool {
    let text = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().any(|line| line.strip_prefix("refs/heads/").unwrap_or(line) == branch)
}
