//! Keeping a private clone usable when the user's repository loses objects that it borrows.

use std::collections::BTreeSet;
use std::path::Path;

use crate::agent_head::{Head, head_of};
use crate::git::Git;
use crate::paths::is_there;
use crate::refs::PackedRefs;
use crate::{Repository, Workspace, WorkspaceError};

impl Workspace {
    /// Gives the clone back what its commits have lost, and removes refs whose objects are gone: `git log` and `git fetch`
    /// would fail. A clone that the agent has damaged stays as it is.
    pub fn repair_clone(&self) -> Result<(), WorkspaceError> {
        let git_dir = self.path().join(".git");
        if self.is_in_place() || !is_there(&git_dir).unwrap_or(false) {
            return Ok(());
        }
        let objects = git_dir.join("objects");
        if !self.repository().may_borrow(&objects)? {
            return Ok(());
        }
        if let Some(users) = self.repository().lender() {
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
        match seen_by_clone.command("rev-list").args(walk).run() {
            Err(WorkspaceError::Git { .. }) => {}
            other => return other.map(|_| ()),
        }
        let revisions = format!("{head}\n^{}\n", self.base()).into_bytes();
        let own = self.repository().git();
        let pack = own.command("pack-objects").args(["--revs", "--quiet"]).arg(objects.join("pack/pack"));
        match pack.input(revisions).run() {
            // We do not have them either.
            Err(WorkspaceError::Git { .. }) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Only packed refs are looked at, as those that came from the user's repository are.
    fn forget_gone_refs(&self, git_dir: &Path, objects: &Path) -> Result<(), WorkspaceError> {
        let Ok(packed) = PackedRefs::read(git_dir) else { return Ok(()) };
        // The agent's objects only show which of its own refs can stay.
        let gone = gone(&self.repository().git().borrowing([objects.to_path_buf()]), &packed)?;
        if gone.is_empty() {
            return Ok(());
        }
        let file = git_dir.join("packed-refs");
        let text = packed.without(&gone);
        towline_files::replace(&file, text.as_bytes()).map_err(WorkspaceError::io("write", &file))
    }
}

/// The ids of the objects that are not there.
fn gone(git: &Git, packed: &PackedRefs) -> Result<BTreeSet<String>, WorkspaceError> {
    let ids: BTreeSet<&str> = packed.entries().map(|(_, id)| id).collect();
    if ids.is_empty() {
        return Ok(BTreeSet::new());
    }
    let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let found = match git.command("cat-file").arg("--batch-check").input(input.into_bytes()).line() {
        // Its objects are not what they should be.
        Err(WorkspaceError::Git { .. }) => return Ok(BTreeSet::new()),
        found => found?,
    };
    let missing = found.lines().filter_map(|line| line.strip_suffix(" missing"));
    Ok(missing.map(str::to_owned).collect())
}
