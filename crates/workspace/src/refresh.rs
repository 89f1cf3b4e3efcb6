//! Keeping a private clone usable when the user's repository loses objects that it borrows.

use std::collections::BTreeSet;

use crate::git::Git;
use crate::paths::is_there;
use crate::refs::PackedRefs;
use crate::{Workspace, WorkspaceError};

impl Workspace {
    /// Removes refs whose objects are gone from the clone: `git fetch` and `git log --all` would fail on them. Only packed
    /// refs are looked at, as those that came from the user's repository are. A clone that the agent has damaged stays as it is.
    pub fn forget_gone_refs(&self) -> Result<(), WorkspaceError> {
        let git_dir = self.path().join(".git");
        if self.is_in_place() || !is_there(&git_dir).unwrap_or(false) {
            return Ok(());
        }
        let objects = git_dir.join("objects");
        let Ok(packed) = PackedRefs::read(&git_dir) else { return Ok(()) };
        if !self.repository().may_borrow(&objects)? {
            return Ok(());
        }
        // The agent's objects only show which of its own refs can stay.
        let gone = gone(&self.repository().git().borrowing([objects]), &packed)?;
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
