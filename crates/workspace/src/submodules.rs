//! Work inside the submodules of a workspace. No candidate can hold it, so it would go with the workspace: a candidate has
//! only a commit's name for each, and the commits themselves are in a repository that is removed with the workspace.
//!
//! Used by `snapshot`, which warns about it, and by `removal`, which leaves such workspaces alone. Nothing is changed
//! here, and no git command uses a submodule's repository as its git directory: it is an agent's.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use towline_core::Commit;

use crate::agent_head::{Head, head_of};
use crate::git::{Git, shown};
use crate::git_dir::alternates_of;
use crate::paths::from_bytes;
use crate::private_index::PrivateIndex;
use crate::refs::refs_of;
use crate::tree::{Files, prove_files};
use crate::{Workspace, WorkspaceError, embedded, walk};

/// How many object directories may borrow from one another.
const LONGEST_CHAIN: usize = 5;

impl Workspace {
    /// The submodules that have changes in no commit of theirs, or commits that none of their remotes has.
    pub(crate) fn submodules_with_work(&self) -> Result<Vec<String>, WorkspaceError> {
        let git = self.repository.git().with_work_tree(self.path());
        let declared = embedded::submodules(&git, self.base())?;
        if declared.is_empty() {
            return Ok(Vec::new());
        }
        let pinned = embedded::pinned(&git, self.base())?;
        let mut found: BTreeSet<Vec<u8>> = self.snapshot()?.dirty_submodules;
        for path in declared {
            let inner = Submodule::at(&git, &path);
            if inner.is_some_and(|inner| inner.has_own_commits(pinned.get(&path))) {
                found.insert(path);
            }
        }
        Ok(found.iter().map(|path| shown(path)).collect())
    }
}

fn changed_files(index: &PrivateIndex, head: &Commit) -> Result<Vec<u8>, WorkspaceError> {
    index.git.command("read-tree").arg(head.as_str()).run()?;
    index.git.command("ls-files").args(["--modified", "--others", "--exclude-standard", "-z"]).run()
}

/// The repository of a submodule that is filled.
pub(crate) struct Submodule {
    /// Git of ours in its working tree.
    outer: Git,
    git_dir: PathBuf,
    common_dir: PathBuf,
}

impl Submodule {
    /// The one in a directory of `top`, if it is filled.
    pub(crate) fn at(top: &Git, path: &[u8]) -> Option<Self> {
        let place = top.directory.join(from_bytes(path));
        fs::symlink_metadata(place.join(".git")).ok()?;
        let mut directories = walk::directories_of(&place.join(".git")).into_iter();
        let git_dir = directories.next()?;
        let common_dir = directories.next().unwrap_or_else(|| git_dir.clone());
        Some(Self { outer: top.with_work_tree(&place), git_dir, common_dir })
    }

    /// The commit that it is on.
    pub(crate) fn head(&self) -> Head {
        head_of(&self.git_dir, &self.common_dir)
    }

    /// The files of a commit of it. None when they cannot be determined.
    pub(crate) fn files_of(&self, commit: &Commit) -> Result<Option<Files>, WorkspaceError> {
        match self.git().map(|git| prove_files(&git, commit)).transpose() {
            Err(WorkspaceError::Git { .. } | WorkspaceError::Damaged { .. }) => Ok(None),
            files => files,
        }
    }

    /// Whether it has files that are not as in the commit that it is on. When that is unknown, it has.
    pub(crate) fn is_dirty(&self, git_dir: &Path) -> Result<bool, WorkspaceError> {
        let (Head::Commit(head), Some(git)) = (self.head(), self.git()) else { return Ok(true) };
        match changed_files(&PrivateIndex::empty(&git, git_dir)?, &head) {
            Err(WorkspaceError::Git { .. }) => Ok(true),
            changed => Ok(!changed?.is_empty()),
        }
    }

    /// Git of ours that sees its objects, if they can be read.
    fn git(&self) -> Option<Git> {
        let objects = self.common_dir.join("objects");
        are_readable(&objects, LONGEST_CHAIN).then(|| self.outer.borrowing([objects]))
    }

    /// Whether it has commits that are in none of its remotes, nor below the one that the base asks for. When that is
    /// unknown, it has.
    fn has_own_commits(&self, pinned: Option<&String>) -> bool {
        let (Head::Commit(head), Some(refs), Some(git)) =
            (self.head(), refs_of(&self.common_dir), self.git())
        else {
            return true;
        };
        let is_theirs = |name: &str| name.starts_with("refs/remotes/") || name.starts_with("refs/tags/");
        let mut commits = format!("{head}\n");
        for (name, id) in refs {
            let sign = if is_theirs(&name) { "^" } else { "" };
            commits.push_str(&format!("{sign}{id}\n"));
        }
        commits.extend(pinned.map(|id| format!("^{id}\n")));
        let list = git.command("rev-list").args(["--max-count=1", "--ignore-missing", "--stdin"]);
        list.input(commits.into_bytes()).line().map_or(true, |commit| !commit.is_empty())
    }
}

/// Whether git can read an object directory, and those that it borrows from, without waiting.
fn are_readable(objects: &Path, chain: usize) -> bool {
    if chain == 0 || !walk::holds_special(objects).is_ok_and(|holds| !holds) {
        return false;
    }
    match alternates_of(objects) {
        Ok(list) => list.unwrap_or_default().split(|byte| *byte == b'\n').all(|line| {
            line.is_empty() || line[0] == b'#' || are_readable(&objects.join(from_bytes(line)), chain - 1)
        }),
        Err(_) => false,
    }
}
