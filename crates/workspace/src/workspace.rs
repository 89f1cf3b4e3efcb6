//! The directory an agent works in, once it is there: opening it again and looking at it.
//!
//! Neighbours: `create` makes it, `candidate` and `diff` read the work in it, `removal` takes it away. Its `.git` and its
//! files belong to the agent: they are read as hostile input and never written here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use towline_core::Commit;

use crate::agent_head::{Head, head_of};
use crate::compare::{Comparison, Found};
use crate::embedded::Nested;
use crate::git::shown;
use crate::paths::{is_directory, is_there, place_of};
use crate::snapshot::{Snapshot, Source};
use crate::walk::Special;
use crate::{Protect, Repository, Stop, WorkspaceError};

/// The commit that new work is on top of.
#[derive(Debug)]
pub(crate) struct Parent {
    pub(crate) commit: Commit,
    pub(crate) tree: String,
    /// What is odd about the workspace.
    pub(crate) warnings: Vec<String>,
}

/// A goal's workspace.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Our own, with the base and the candidates.
    pub(crate) repository: Repository,
    goal: String,
    /// None when the directory is the user's own.
    branch: Option<String>,
    base: Commit,
    path: PathBuf,
    warnings: Vec<String>,
    /// The message of candidates.
    message: Option<String>,
}

impl Workspace {
    /// Opens the workspace of a goal from what was stored about it. The repository is our own for the goal.
    pub fn open(
        repository: &Repository,
        goal: &str,
        path: &Path,
        branch: &str,
        base: &Commit,
    ) -> Result<Self, WorkspaceError> {
        let path = place_of(path);
        if !is_there(&path)? {
            return Err(WorkspaceError::Broken { path, what: "the directory is gone".to_owned() });
        }
        Ok(Self::from_parts(repository, goal, Some(branch), base, path, Vec::new()))
    }

    pub(crate) fn from_parts(
        repository: &Repository,
        goal: &str,
        branch: Option<&str>,
        base: &Commit,
        path: PathBuf,
        warnings: Vec<String>,
    ) -> Self {
        let repository = repository.clone();
        Self {
            repository,
            goal: goal.to_owned(),
            branch: branch.map(str::to_owned),
            base: base.clone(),
            path,
            warnings,
            message: None,
        }
    }

    /// The same, whose candidates have this commit message.
    pub fn with_message(self, message: String) -> Self {
        Self { message: Some(message), ..self }
    }

    /// The message of a candidate.
    pub(crate) fn message(&self, n: u32) -> String {
        let plain = || format!("Work of goal {}, attempt {n}\n", self.goal);
        self.message.clone().unwrap_or_else(plain)
    }

    /// The same, whose work with git ends when somebody wants it.
    pub fn until(&self, stop: &Stop) -> Self {
        Self { repository: self.repository.until(stop), ..self.clone() }
    }

    /// The directory the agent works in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The branch that the agent began on; none when it works in place. The agent may have switched to another one.
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

    /// What new work is on top of.
    pub(crate) fn parent(&self) -> Result<Parent, WorkspaceError> {
        let (commit, warnings) = match self.agents_head()? {
            (Head::Commit(head), _) if head == self.base => (self.base.clone(), Vec::new()),
            (Head::Commit(head), objects) => self.on_top_of(head, objects.as_deref())?,
            (Head::Unborn, _) => {
                let warning = "the workspace is on a branch without commits; its files are put on the base";
                (self.base.clone(), vec![warning.to_owned()])
            }
            (Head::Unreadable, _) => {
                let warning = "the workspace's .git was deleted, replaced or damaged; commits in it are not \
                               taken, its files are";
                (self.base.clone(), vec![warning.to_owned()])
            }
        };
        let tree = self.repository.tree_of(&commit)?;
        Ok(Parent { commit, tree, warnings })
    }

    /// What the agent's HEAD contains, and where the objects of its commits are if not with ours.
    fn agents_head(&self) -> Result<(Head, Option<PathBuf>), WorkspaceError> {
        if self.is_in_place() {
            return Ok((self.head_in_place()?, None));
        }
        let git_dir = self.path.join(".git");
        if !is_directory(&git_dir) {
            return Ok((Head::Unreadable, None));
        }
        Ok((head_of(&git_dir, &git_dir), Some(git_dir.join("objects"))))
    }

    /// Takes the agent's commits over, if they are whole and have the base below them.
    fn on_top_of(
        &self,
        head: Commit,
        objects: Option<&Path>,
    ) -> Result<(Commit, Vec<String>), WorkspaceError> {
        let on_base = |warning: &str| {
            let warning = format!("{warning}; its files are put on the base");
            Ok((self.base.clone(), vec![warning]))
        };
        let own = &self.repository;
        let below = own.committed_base(&self.base)?;
        if head == below {
            // In place, HEAD is where the user had it until somebody commits; the base may hold more.
            return Ok((self.base.clone(), Vec::new()));
        }
        let is_commit = || Ok::<_, WorkspaceError>(own.find_commit(head.as_str())?.as_ref() == Some(&head));
        let is_on_base = || own.is_on_top(&head, &below);
        let beside_base = || on_base("the agent's commits are not on top of the base");
        // Another branch of the user's may have a long history, and nothing of it is taken.
        let is_known = is_commit()?;
        if is_known && !is_on_base()? {
            return beside_base();
        }
        if let Err(why) = own.take_over(&head, &self.base, objects)? {
            return on_base(&format!("the agent's commits cannot be used: {why}"));
        }
        if !is_known && !is_commit()? {
            return on_base("the agent's commits cannot be used: HEAD is not a commit");
        }
        if !is_known && !is_on_base()? {
            return beside_base();
        }
        let warnings = own.warn_of_merged(&self.goal, &head, &self.base)?;
        Ok((head, warnings.into_iter().filter(|_| !self.is_in_place()).collect()))
    }

    /// What differs from the base in a workspace that no agent has worked in yet: what setup changed, by path, with the id
    /// of what is there now.
    pub fn setup_changes(
        &self,
        protect: &Protect,
    ) -> Result<BTreeMap<String, Option<String>>, WorkspaceError> {
        let files = self.repository.files_of(&self.base)?;
        let found = Comparison::differences(&self.repository, &self.path, (*files).clone(), protect)?;
        let now = |found| match found {
            Found::Changed(now) | Found::Added(now) => now,
            Found::Deleted => None,
        };
        Ok(found.into_iter().map(|(path, found)| (shown(&path), now(found))).collect())
    }

    /// Whether the directory is the user's own.
    pub(crate) const fn is_in_place(&self) -> bool {
        self.branch.is_none()
    }

    /// Everything in the workspace that is not ignored.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, WorkspaceError> {
        let source = Source {
            git: &self.repository.git().with_work_tree(&self.path).with_attributes_of(self.base.as_str()),
            git_dir: &self.repository.git_dir,
            hints: self.agents_index(),
            worktrees: &self.worktree_records(),
            base: &self.base,
            nested: Nested::AsFiles,
            special: if self.is_in_place() { Special::Refuse } else { Special::Remove },
        };
        source.snapshot()
    }

    /// The index that the agent's git uses; there is none of a folder in no repository.
    fn agents_index(&self) -> Option<PathBuf> {
        match self.repository.lender() {
            Some(users) if self.is_in_place() => Some(users.index()),
            None if self.is_in_place() => None,
            _ => Some(self.path.join(".git/index")),
        }
    }

    /// Where git has its records of worktrees that the agent made of its own repository.
    fn worktree_records(&self) -> PathBuf {
        match self.repository.lender().filter(|_| self.is_in_place()) {
            Some(users) => users.worktree_records(),
            None => self.path.join(".git/worktrees"),
        }
    }
}
