//! Keeping a private clone usable when the user's repository loses objects that it borrows.

use std::path::Path;

use crate::agent_head::{Head, head_of};
use crate::paths::is_there;
use crate::refs::PackedRefs;
use crate::{Repository, Workspace, WorkspaceError, unless_git_failed};

impl Workspace {
    /// Gives the clone back what its commits have lost, and removes refs whose objects are gone: `git log` and `git fetch`
    /// would fail. A clone that the agent has damaged stays as it is.
    pub fn repair_clone(&self) -> Result<(), WorkspaceError> {
        let git_dir = self.path().join(".git");
        if self.is_in_place() || !is_there(&git_dir).unwrap_or(false) {
            return Ok(());
        }
        let objects = git_dir.join("objects");
        if !self.repository.may_borrow(&objects)? {
            return Ok(());
        }
        if let Some(users) = self.repository.lender() {
            self.give_back(&git_dir, &objects, users)?;
        }
        self.forget_gone_refs(&git_dir, &objects)
    }

    /// Brings objects of the agent's commits back that it had only borrowed, as far as we have them.
    fn give_back(&self, git_dir: &Path, objects: &Path, users: &Repository) -> Result<(), WorkspaceError> {
        let Head::Commit(head) = head_of(git_dir, git_dir) else { return Ok(()) };
        if head == *self.base() {
            return Ok(());
        }
        let seen_by_clone = users.plain_git().borrowing([objects.to_path_buf()]);
        let walk = ["--objects", "--quiet", head.as_str(), "--not", self.base().as_str()];
        if unless_git_failed(seen_by_clone.command("rev-list").args(walk).run())?.is_some() {
            return Ok(());
        }
        let revisions = format!("{head}\n^{}\n", self.base()).into_bytes();
        let own = self.repository.git();
        let pack = own.command("pack-objects").args(["--revs", "--quiet"]).arg(objects.join("pack/pack"));
        // We may not have them either.
        unless_git_failed(pack.input(revisions).run()).map(drop)
    }

    /// Only packed refs are looked at, as those that came from the user's repository are.
    fn forget_gone_refs(&self, git_dir: &Path, objects: &Path) -> Result<(), WorkspaceError> {
        let Ok(packed) = PackedRefs::read(git_dir) else { return Ok(()) };
        // The agent's objects only show which of its own refs can stay.
        let git = self.repository.git().borrowing([objects.to_path_buf()]);
        // Its objects may not be what they should be.
        let gone = unless_git_failed(git.missing(packed.entries().map(|(_, id)| id)))?.unwrap_or_default();
        if gone.is_empty() {
            return Ok(());
        }
        let file = git_dir.join("packed-refs");
        let text = packed.without(&gone);
        towline_files::replace(&file, text.as_bytes()).map_err(WorkspaceError::io("write", &file))
    }
}
