//! The worktree an agent works in, once it is there: opening it again and looking at it.
//!
//! Neighbours: `create` makes it, `candidate` and `diff` read the work in it, `removal` takes it away. Its index, HEAD, branch and
//! files belong to the agent and are never written here.

use std::fs;
use std::path::{Path, PathBuf};

use towline_core::Commit;

use crate::embedded::Nested;
use crate::git::Git;
use crate::private_index::{Snapshot, Source};
use crate::repository::{find_commit, find_objects};
use crate::worktrees::{self, Linked, place_of};
use crate::{Repository, WorkspaceError};

/// The commit that new work is on top of.
#[derive(Debug)]
pub(crate) struct Parent {
    pub(crate) commit: Commit,
    pub(crate) tree: String,
    /// What is odd about the worktree.
    pub(crate) warnings: Vec<String>,
}

/// A goal's worktree.
#[derive(Debug, Clone)]
pub struct Workspace {
    repository: Repository,
    goal: String,
    /// None when the directory is the user's own.
    branch: Option<String>,
    base: Commit,
    linked: Linked,
    warnings: Vec<String>,
}

impl Workspace {
    /// Opens the workspace of a goal from what was stored about it.
    pub fn open(
        repository: &Repository,
        goal: &str,
        path: &Path,
        branch: &str,
        base: &Commit,
    ) -> Result<Self, WorkspaceError> {
        let path = place_of(path);
        let broken = |what: &str| WorkspaceError::Broken { path: path.clone(), what: what.to_owned() };
        if !worktrees::is_there(&path)? {
            return Err(broken("the directory is gone"));
        }
        let Some(linked) = worktrees::find(repository, &path)? else {
            return Err(broken("git has no record of it"));
        };
        Ok(Self::from_parts(repository, goal, Some(branch), base, linked, Vec::new()))
    }

    pub(crate) fn from_parts(
        repository: &Repository,
        goal: &str,
        branch: Option<&str>,
        base: &Commit,
        linked: Linked,
        warnings: Vec<String>,
    ) -> Self {
        let repository = repository.clone();
        Self {
            repository,
            goal: goal.to_owned(),
            branch: branch.map(str::to_owned),
            base: base.clone(),
            linked,
            warnings,
        }
    }

    /// The directory the agent works in.
    pub fn path(&self) -> &Path {
        &self.linked.path
    }

    /// The branch that was made for the goal; none when it works in place. The agent may have switched to another one.
    pub fn branch(&self) -> Option<&str> {
        self.branch.as_deref()
    }

    /// The commit the goal started from.
    pub fn base(&self) -> &Commit {
        &self.base
    }

    /// The goal's id, as used in refs.
    pub fn goal(&self) -> &str {
        &self.goal
    }

    /// What a person should know about how the workspace was made, like files to copy that are missing.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The commit the worktree is on; none when the agent has switched to a branch without commits.
    pub fn head(&self) -> Result<Option<Commit>, WorkspaceError> {
        find_commit(&self.git(), "HEAD")
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// What new work is on top of.
    pub(crate) fn parent(&self) -> Result<Parent, WorkspaceError> {
        if self.is_in_place() {
            return self.parent_in_place();
        }
        let mut warnings = Vec::new();
        if !self.is_linked_from_inside() {
            warnings.push(
                "the workspace's .git was deleted or replaced; commits made in another repository there are \
                 not seen, its files are"
                    .to_owned(),
            );
        }
        let base = &self.base;
        let names =
            ["HEAD^{commit}", "HEAD^{tree}", &format!("{base}^{{commit}}"), &format!("{base}^{{tree}}")];
        match find_objects(&self.git(), names.map(str::to_owned))? {
            [Some(head), Some(tree), Some(_), _] => Ok(Parent { commit: Commit::new(head), tree, warnings }),
            [_, _, Some(_), Some(tree)] => {
                warnings.push(
                    "the workspace is on a branch without commits; its files are put on the base".to_owned(),
                );
                Ok(Parent { commit: base.clone(), tree, warnings })
            }
            _ => Err(self.repository.commit_gone(base)),
        }
    }

    /// In the user's own directory, HEAD is where the user has it. While nobody has committed anything new, the work is on
    /// top of the base, which may hold more.
    fn parent_in_place(&self) -> Result<Parent, WorkspaceError> {
        let before = self.repository.committed_base(&self.base)?;
        let commit = self.head()?.filter(|head| *head != before).unwrap_or_else(|| self.base.clone());
        let tree = self.repository.tree_of(&commit)?;
        Ok(Parent { commit, tree, warnings: Vec::new() })
    }

    /// Whether the directory is the user's own.
    pub(crate) const fn is_in_place(&self) -> bool {
        self.branch.is_none()
    }

    /// Everything in the worktree that is not ignored.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, WorkspaceError> {
        let source = Source {
            repo: &self.repository,
            git: &self.git(),
            git_dir: &self.linked.record,
            head: &|| Ok(self.parent()?.commit),
            base: &self.base,
            nested: Nested::AsFiles,
        };
        source.snapshot()
    }

    fn git(&self) -> Git {
        Git::at(&self.linked.record, &self.linked.path)
    }

    fn is_linked_from_inside(&self) -> bool {
        let Ok(text) = fs::read(self.linked.path.join(".git")) else { return false };
        let target =
            text.strip_prefix(b"gitdir: ").map(|target| worktrees::from_bytes(target.trim_ascii_end()));
        let same = |target: &Path| {
            let target: PathBuf = self.linked.path.join(target);
            target.canonicalize().ok() == self.linked.record.canonicalize().ok()
        };
        target.is_some_and(same)
    }
}

/// Keeps the last commit of a workspace that was removed.
pub(crate) fn removed_ref(goal: &str) -> String {
    format!("refs/towline/{goal}/removed")
}
