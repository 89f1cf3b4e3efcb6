//! Working in the user's own directory, in a repository or in a folder that is in none.
//!
//! There is no worktree and no branch here. What was there before is a commit, the base, and so is every candidate; in a
//! folder without git they are in a repository of Towline's own, somewhere else, that has the folder as its working
//! tree. HEAD, index and branches of the user stay theirs: only [`Workspace::restore`] ever writes files, when asked to.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use towline_core::Commit;

use crate::embedded::{self, Nested};
use crate::git::{Git, records};
use crate::measure::{Consent, measure};
use crate::private_index::{PrivateIndex, joined};
use crate::repository::{Owner, SNAPSHOT_MESSAGE};
use crate::worktrees::{Linked, from_bytes, settle};
use crate::{Repository, Workspace, WorkspaceError};

/// The branch of a repository of our own. It is never checked out anywhere.
const OWN_BRANCH: &str = "refs/heads/towline";

/// A directory as it was before anybody worked there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// Everything in it that is not ignored.
    pub base: Commit,
    /// What a person should know about how it was taken.
    pub warnings: Vec<String>,
}

impl Repository {
    /// A repository of our own at `git_dir`, whose working tree is a folder of the user's. Made when it is missing, or
    /// when an earlier call was cut off.
    pub fn create_own(folder: &Path, git_dir: &Path) -> Result<Self, WorkspaceError> {
        fs::create_dir_all(git_dir).map_err(WorkspaceError::io("create", git_dir))?;
        let git = Git::at(git_dir, folder);
        git.command("init").args(["--quiet", "--initial-branch=towline", "--template="]).run()?;
        let repository = Self::open_own(folder, git_dir)?;
        if repository.find_commit(OWN_BRANCH)?.is_none() {
            let tree = git.command("mktree").line()?;
            let empty = git.command("commit-tree").args([&tree, "-m", "towline: an empty folder"]).line()?;
            git.command("update-ref").args([OWN_BRANCH, &empty]).run()?;
        }
        Ok(repository)
    }

    /// A repository that [`Self::create_own`] has made.
    pub fn open_own(folder: &Path, git_dir: &Path) -> Result<Self, WorkspaceError> {
        let (folder, git_dir) = (settle(folder), settle(git_dir));
        let broken = |what: String| Err(WorkspaceError::Broken { path: folder.clone(), what });
        if !folder.is_dir() {
            return broken("the directory is gone".to_owned());
        }
        if !git_dir.join("HEAD").exists() {
            return broken(format!("its history in {} is gone", git_dir.display()));
        }
        Ok(Self::from_parts(folder, git_dir.clone(), git_dir, Owner::Towline))
    }

    /// Keeps everything in the working tree that is not ignored, so that work can begin right there. Index, HEAD and
    /// files stay as they are.
    pub fn keep_before(&self, consent: Consent) -> Result<Before, WorkspaceError> {
        self.refuse_conflicts()?;
        let git = self.git();
        let found = embedded::untracked(&git)?;
        measure(self.root(), found.files.iter().chain(&found.nested), consent)?;
        let head = self.resolve("HEAD")?;
        let snapshot = self.snapshot(&head, Nested::AsFiles)?;
        let tree = snapshot.index.write_tree()?;
        let is_head = tree == self.tree_of(&head)?;
        let base = if is_head { head } else { self.commit_tree(&tree, &head, SNAPSHOT_MESSAGE)? };
        if self.owner() == Owner::Towline {
            git.command("update-ref").args([OWN_BRANCH, base.as_str()]).run()?;
            // What is known about the files by now spares reading all of them again.
            snapshot.index.install(&self.git_dir().join("index"))?;
        }
        Ok(Before { base, warnings: snapshot.warnings })
    }

    /// The commit that an agent's own commits are on top of. A base that was made of changes which were in no commit is in
    /// nobody's history but ours; the commit below it is.
    pub fn committed_base(&self, base: &Commit) -> Result<Commit, WorkspaceError> {
        let about = self.git().command("log").args(["-1", "--format=%P%n%s", base.as_str()]).line()?;
        Ok(match about.split_once('\n') {
            Some((parent, SNAPSHOT_MESSAGE)) if !parent.is_empty() => Commit::new(parent),
            _ => base.clone(),
        })
    }
}

impl Workspace {
    /// The user's own directory as the workspace of a goal. Its base is kept alive by a private ref.
    pub fn in_place(repository: &Repository, goal: &str, base: &Commit) -> Result<Self, WorkspaceError> {
        if !repository.root().is_dir() {
            let path = repository.root().to_path_buf();
            return Err(WorkspaceError::Broken { path, what: "the directory is gone".to_owned() });
        }
        repository.require(base)?;
        repository.keep(&format!("refs/towline/{goal}/base"), base)?;
        let linked =
            Linked { record: repository.git_dir().to_path_buf(), path: repository.root().to_path_buf() };
        Ok(Self::from_parts(repository, goal, None, base, linked, Vec::new()))
    }

    /// Puts the files back as they were in the base: all that are not ignored, or those at these paths. What is there now
    /// is kept in the commit that is returned. Index, HEAD and branches of the user stay as they are.
    pub fn restore(&self, paths: &[String]) -> Result<Commit, WorkspaceError> {
        let parent = self.parent()?.commit;
        let snapshot = self.snapshot()?;
        self.add_what_is_in_the_way(&snapshot.index)?;
        let repository = self.repository();
        let tree = snapshot.index.write_tree()?;
        let now = repository.commit_tree(&tree, &parent, "towline: what was there before it was put back")?;
        repository.keep(&repository.next_replaced(self.goal())?, &now)?;
        let mut patterns: Vec<String> = paths.iter().map(|path| format!(":(top,literal){path}")).collect();
        if patterns.is_empty() {
            patterns.push(":/".to_owned());
        }
        let git = snapshot.index.git();
        git.command("restore")
            .arg(format!("--source={}", self.base()))
            .args(["--staged", "--worktree", "--"])
            .args(&patterns)
            .run()
            .map_err(|error| match error {
                WorkspaceError::Git { detail, .. } if !paths.is_empty() && is_about_paths(&detail) => {
                    WorkspaceError::NoSuchPath { paths: paths.join(", "), root: self.path().to_path_buf() }
                }
                error => error,
            })?;
        Ok(now)
    }

    /// Adds what would be written over and is ignored by now, so that it is kept like everything else.
    fn add_what_is_in_the_way(&self, index: &PrivateIndex) -> Result<(), WorkspaceError> {
        let known = index.git().command("ls-files").args(["-z"]).run()?;
        let known: BTreeSet<&[u8]> = records(&known).collect();
        let base = self.base().as_str();
        let base = index.git().command("ls-tree").args(["-r", "-z", "--name-only", base]).run()?;
        let unknown = records(&base).filter(|path| !known.contains(path));
        let there: BTreeSet<&[u8]> = unknown.filter_map(|path| in_the_way(self.path(), path)).collect();
        let patterns: Vec<Vec<u8>> = there
            .into_iter()
            .filter(|path| !known.contains(path))
            .map(|path| [b":(top,literal)", path].concat())
            .collect();
        if patterns.is_empty() {
            return Ok(());
        }
        index
            .git()
            .command("add")
            .args(["--force", "--all", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"])
            .input(joined(patterns.iter().map(Vec::as_slice)))
            .run()?;
        Ok(())
    }

    /// Where the history of the work is, for people who want to look into it with git itself.
    pub fn history(&self) -> PathBuf {
        self.repository().git_dir().to_path_buf()
    }
}

/// What stands where a path is to be written: the path itself, or the file or link that is one of its parents by now.
fn in_the_way<'a>(root: &Path, path: &'a [u8]) -> Option<&'a [u8]> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for part in ends.chain([path.len()]).map(|end| &path[..end]) {
        let about = fs::symlink_metadata(root.join(from_bytes(part))).ok()?;
        if !about.is_dir() {
            return Some(part);
        }
    }
    Some(path)
}

/// Whether git could not do anything with the paths it was given.
fn is_about_paths(detail: &str) -> bool {
    detail.contains("did not match any file") || detail.contains("outside repository")
}
