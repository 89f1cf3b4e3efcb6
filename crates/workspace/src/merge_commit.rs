//! The commit that a merge makes, where it makes one: in the user's name, with their hooks, and signed if they sign.
//!
//! Neighbour: `merge` works out what is in it and moves the branch. Nothing but the commit is made here.

use std::fs;
use std::path::{Path, PathBuf};

use towline_core::Commit;

use crate::git::Git;
use crate::private_index::PrivateIndex;
use crate::{MergeError, Repository, WorkspaceError};

/// Longer than any commit message.
const LONGEST_MESSAGE: u64 = 1024 * 1024;

/// What a commit is made of.
#[derive(Debug, Clone)]
pub(crate) struct Join {
    /// All the files, as a tree or a commit that has them.
    pub(crate) tree: String,
    pub(crate) parents: Vec<Commit>,
    pub(crate) message: String,
}

/// Whether the user's hooks run for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hooks {
    Run,
    /// The merge changes the hooks themselves.
    Skip,
}

impl Repository {
    /// Makes the commit. A hook that refuses it leaves everything as it was.
    pub(crate) fn commit_merge(&self, join: &Join, hooks: Hooks) -> Result<Commit, MergeError> {
        let users = self.users_git();
        let is_known = users.command("var").arg("GIT_AUTHOR_IDENT").run().is_ok();
        let git = if is_known { users } else { self.git() };
        let signs = git.command("config").args(["--type=bool", "--get", "commit.gpgSign"]).query()?;
        let sign = signs.is_some_and(|answer| answer.trim_ascii() == b"true");
        let message = match hooks {
            Hooks::Run => self.ask_hooks(join)?,
            Hooks::Skip => join.message.clone().into_bytes(),
        };
        let parents = join.parents.iter().flat_map(|parent| ["-p", parent.as_str()]);
        let commit = git.command("commit-tree").args(sign.then_some("-S")).arg(&join.tree).args(parents);
        Ok(commit.input(message).line().map(Commit::new)?)
    }

    /// Runs the hooks that git runs before it makes a merge commit. Gives the message, which a hook may have changed.
    fn ask_hooks(&self, join: &Join) -> Result<Vec<u8>, MergeError> {
        let index = PrivateIndex::empty(&self.users_git(), &self.git_dir)?;
        index.git.command("read-tree").arg(&join.tree).run()?;
        run_hook(&index.git, "pre-merge-commit", None)?;
        let file = MessageFile::write(self, &join.message)?;
        run_hook(&index.git, "commit-msg", Some(&file.0))?;
        Ok(file.read()?)
    }

    /// Opens the user's editor on a message, without the lines that begin with `#`. An empty one means that they do not want
    /// the commit.
    pub fn edit_message(&self, message: &str) -> Result<Option<String>, WorkspaceError> {
        let git = self.users_git();
        let editor = git.command("var").arg("GIT_EDITOR").line()?;
        let file = MessageFile::write(self, message)?;
        git.edit(&editor, &file.0)?;
        let cleaned = git.command("stripspace").arg("--strip-comments").input(file.read()?).line()?;
        Ok(Some(cleaned).filter(|text| !text.trim().is_empty()))
    }
}

fn run_hook(git: &Git, name: &'static str, file: Option<&Path>) -> Result<(), MergeError> {
    let file = file.into_iter().flat_map(|file| [Path::new("--"), file]);
    match git.command("hook").args(["run", "--ignore-missing", name]).args(file).run() {
        Ok(_) => Ok(()),
        Err(WorkspaceError::Git { detail, .. }) => Err(MergeError::RefusedByHook { hook: name, detail }),
        Err(error) => Err(error.into()),
    }
}

/// A message in a file beside git's own, which is removed with the value.
struct MessageFile(PathBuf);

impl MessageFile {
    fn write(repository: &Repository, message: &str) -> Result<Self, WorkspaceError> {
        let path = repository.git_dir.join("TOWLINE_EDITMSG");
        towline_files::replace(&path, message.as_bytes()).map_err(WorkspaceError::io("write", &path))?;
        Ok(Self(path))
    }

    fn read(&self) -> Result<Vec<u8>, WorkspaceError> {
        towline_files::read(&self.0, LONGEST_MESSAGE).map_err(WorkspaceError::io("read", &self.0))
    }
}

impl Drop for MessageFile {
    fn drop(&mut self) {
        // The next message takes its place.
        let _ = fs::remove_file(&self.0);
    }
}
