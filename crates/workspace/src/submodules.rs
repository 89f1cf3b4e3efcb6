//! Work inside the submodules of a worktree. No candidate can hold it, so it would go with the worktree: a candidate has
//! only a commit's name for each, and the commits themselves are in a repository that git removes with the worktree.
//!
//! Used by `removal`, which leaves such worktrees alone. Nothing is changed here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::embedded;
use crate::git::{Git, records, shown};
use crate::paths::from_bytes;
use crate::{Workspace, WorkspaceError};

impl Workspace {
    /// The submodules that have changes in no commit of theirs, or commits that none of their remotes has.
    pub(crate) fn submodules_with_work(&self) -> Result<Vec<String>, WorkspaceError> {
        let git = self.repository().git().with_work_tree(self.path());
        let declared = embedded::submodules(&git, self.base())?;
        if declared.is_empty() {
            return Ok(Vec::new());
        }
        let base = git.command("ls-tree").args(["-r", "-z", self.base().as_str()]).run()?;
        let pinned: BTreeMap<&[u8], String> = records(&base).filter_map(pinned).collect();
        let mut found: BTreeSet<Vec<u8>> = self.snapshot()?.dirty_submodules;
        for path in declared {
            let directory = self.path().join(from_bytes(&path));
            let is_filled = fs::symlink_metadata(directory.join(".git")).is_ok();
            if is_filled && has_own_commits(&directory, pinned.get(path.as_slice())) {
                found.insert(path);
            }
        }
        Ok(found.iter().map(|path| shown(path)).collect())
    }
}

/// Reads a line like `160000 commit <hash><tab>path`.
fn pinned(line: &[u8]) -> Option<(&[u8], String)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let hash = line[..tab].strip_prefix(b"160000 commit ")?;
    Some((&line[tab + 1..], shown(hash)))
}

/// Whether the repository in this directory has commits that are in none of its remotes, nor below the one that the base
/// asks for. When nobody can tell, it has.
fn has_own_commits(directory: &Path, pinned: Option<&String>) -> bool {
    let git = Git::discovering(directory);
    let list = git.command("rev-list").args(["--max-count=1", "--ignore-missing", "--all"]);
    let list = list.args(["--not", "--remotes", "--tags"]).args(pinned);
    list.line().map_or(true, |commit| !commit.is_empty())
}
