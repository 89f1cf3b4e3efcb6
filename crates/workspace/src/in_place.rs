//! Working in the user's own directory, in a repository or in a folder that is in none.
//!
//! There is no clone and no branch here. What was there before is a commit, the base, and so is every candidate; all of them
//! are in Towline's own repository of the goal, which has the directory as its working tree. HEAD, index and branches of the
//! user stay theirs: only [`Workspace::restore`] ever writes files, when asked to.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use towline_core::Commit;

use crate::agent_head::{Head, head_of};
use crate::create::base_ref;
use crate::embedded::{self, Nested};
use crate::git::records;
use crate::measure::{Consent, measure};
use crate::own::OWN_BRANCH;
use crate::paths::{from_bytes, parents};
use crate::private_index::PrivateIndex;
use crate::repository::SNAPSHOT_MESSAGE;
use crate::walk::{self, Special};
use crate::{Repository, Workspace, WorkspaceError};

/// A directory as it was before anybody worked there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// Everything in it that is not ignored.
    pub base: Commit,
    /// What a person should know about how it was taken.
    pub warnings: Vec<String>,
}

impl Repository {
    /// Keeps everything in the working tree that is not ignored, so that work can begin right there. It is our own
    /// repository; index, HEAD and files of the user stay as they are.
    pub fn keep_before(&self, consent: Consent) -> Result<Before, WorkspaceError> {
        let seen = self.lender().unwrap_or(self);
        walk::prepare_for_git(self.root(), Special::Refuse)?;
        seen.refuse_conflicts()?;
        let found = embedded::untracked(&seen.git())?;
        measure(self.root(), found.files.iter().chain(&found.nested), consent)?;
        let head = if self.lender().is_some() { seen.resolve("HEAD")? } else { self.resolve(OWN_BRANCH)? };
        self.begin_with_index_of(seen)?;
        let snapshot = self.snapshot(&head, Nested::AsFiles)?;
        let tree = snapshot.index.write_tree()?;
        let is_head = tree == self.tree_of(&head)?;
        let base = if is_head { head } else { self.commit_tree(&tree, &head, SNAPSHOT_MESSAGE)? };
        self.git().command("update-ref").args([OWN_BRANCH, base.as_str()]).run()?;
        // What is known about the files by now spares reading all of them again.
        snapshot.index.install(&self.index())?;
        self.store_whole(&base)?;
        Ok(Before { base, warnings: snapshot.warnings })
    }

    /// What the user's index knows about the files spares reading all of them. Nobody else has been here yet.
    fn begin_with_index_of(&self, users: &Self) -> Result<(), WorkspaceError> {
        let index = users.index();
        if self.lender().is_some() && index.is_file() {
            fs::copy(&index, self.index()).map_err(WorkspaceError::io("copy", &index))?;
        }
        Ok(())
    }

    /// Stores all files of a commit in our own repository, so that nothing that happens to the user's loses them.
    fn store_whole(&self, commit: &Commit) -> Result<(), WorkspaceError> {
        if self.lender().is_none() {
            return Ok(());
        }
        let list = ["--objects", "--no-object-names", "--no-walk", commit.as_str()];
        let objects = self.git().command("rev-list").args(list).run()?;
        let name = self.objects().join("pack/pack");
        self.git().command("pack-objects").arg("--quiet").arg(name).input(objects).run()?;
        self.lend_large_files(&self.pointers(commit)?, &self.large_files())
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
    /// The user's own directory as the workspace of a goal. A private ref protects its base.
    pub fn in_place(repository: &Repository, goal: &str, base: &Commit) -> Result<Self, WorkspaceError> {
        if !repository.root().is_dir() {
            let path = repository.root().to_path_buf();
            return Err(WorkspaceError::Broken { path, what: "the directory is gone".to_owned() });
        }
        repository.require(base)?;
        // In the user's repository as well, where they can look at it. An agent may have damaged that; ours has the base, too.
        let published = repository.publish(base, &base_ref(goal));
        if let Err(error @ (WorkspaceError::Stopped | WorkspaceError::TimedOut { .. })) = published {
            return Err(error);
        }
        let path = repository.root().to_path_buf();
        Ok(Self::from_parts(repository, goal, None, base, path, Vec::new()))
    }

    /// Where HEAD of the user's repository is; of a folder in none there is nothing but the base. Refs in tables are in a
    /// format of git's own, so git is asked.
    pub(crate) fn head_in_place(&self) -> Result<Head, WorkspaceError> {
        let Some(users) = self.repository.lender() else { return Ok(Head::Commit(self.base().clone())) };
        if !users.common_dir.join("reftable").is_dir() {
            return Ok(head_of(&users.git_dir, &users.common_dir));
        }
        Ok(users.find_commit("HEAD")?.map_or(Head::Unborn, Head::Commit))
    }

    /// Puts the files back as they were in the base: all that are not ignored, or those at these paths. What is there now
    /// is preserved in the commit that is returned. Index, HEAD and branches of the user stay as they are.
    pub fn restore(&self, paths: &[String]) -> Result<Commit, WorkspaceError> {
        let parent = self.parent()?.commit;
        let snapshot = self.snapshot()?;
        self.add_what_is_in_the_way(&snapshot.index)?;
        let repository = &self.repository;
        let tree = snapshot.index.write_tree()?;
        let now = repository.commit_tree(&tree, &parent, "towline: what was there before it was put back")?;
        repository.store(&now, &parent)?;
        repository.keep(&repository.next_replaced(self.goal())?, &now)?;
        let mut patterns: Vec<String> = paths.iter().map(|path| format!(":(top,literal){path}")).collect();
        if patterns.is_empty() {
            patterns.push(":/".to_owned());
        }
        let git = &snapshot.index.git;
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

    /// The paths at which these files, which a restoration replaced, differ from the base: those of files that it put back, and
    /// those of files that it removed, because the base has none there.
    pub fn replaced_paths(
        &self,
        replaced: &Commit,
        paths: &[String],
    ) -> Result<(Vec<String>, Vec<String>), WorkspaceError> {
        let differing = |filter| self.differing_paths(filter, replaced, paths);
        Ok((differing("--diff-filter=a")?, differing("--diff-filter=A")?))
    }

    fn differing_paths(
        &self,
        filter: &str,
        replaced: &Commit,
        paths: &[String],
    ) -> Result<Vec<String>, WorkspaceError> {
        let repository = &self.repository;
        let only = paths.iter().map(|path| format!(":(top,literal){path}"));
        let list = repository
            .git()
            .command("diff-tree")
            .args([
                "-r",
                "--name-only",
                "--no-renames",
                filter,
                "-z",
                self.base().as_str(),
                replaced.as_str(),
                "--",
            ])
            .args(only)
            .run()?;
        Ok(records(&list).map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Adds what would be written over and is ignored by now, so that it is preserved like everything else.
    fn add_what_is_in_the_way(&self, index: &PrivateIndex) -> Result<(), WorkspaceError> {
        let known = index.git.command("ls-files").args(["-z"]).run()?;
        let known: BTreeSet<&[u8]> = records(&known).collect();
        let base = self.base().as_str();
        let base = index.git.command("ls-tree").args(["-r", "-z", "--name-only", base]).run()?;
        let unknown = records(&base).filter(|path| !known.contains(path));
        let there: BTreeSet<&[u8]> = unknown.filter_map(|path| in_the_way(self.path(), path)).collect();
        let unknown = there.into_iter().filter(|path| !known.contains(path));
        let mut files = Vec::new();
        for path in unknown {
            files.extend(walk::files_at(self.path(), path)?);
        }
        // Unlike `git add`, this takes the files of repositories as they are.
        index.update(&["--add", "--replace"], files.iter().map(Vec::as_slice))
    }

    /// Where the history of the work is, for people who want to look into it with git itself.
    pub fn history(&self) -> PathBuf {
        self.repository.git_dir.to_path_buf()
    }
}

/// What is in the place of a path to write: the path itself, or the file or symlink that is one of its parents by now.
fn in_the_way<'a>(root: &Path, path: &'a [u8]) -> Option<&'a [u8]> {
    for part in parents(path).chain([path]) {
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
