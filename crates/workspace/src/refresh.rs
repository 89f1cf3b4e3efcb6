//! Keeping a private clone usable when the user's repository loses objects that it borrows.

use std::collections::BTreeSet;

use crate::paths::is_there;
use crate::{Repository, Workspace, WorkspaceError};

/// The most that is read of the file with the packed refs.
const LONGEST_PACKED: u64 = 64 * 1024 * 1024;

impl Workspace {
    /// Removes refs whose objects are gone from the clone: `git fetch` and `git log --all` would fail on them. Only refs that
    /// came from the user's repository are looked at, and nothing is written when all of them are there.
    pub fn forget_gone_refs(&self) -> Result<(), WorkspaceError> {
        let file = self.path().join(".git/packed-refs");
        if self.is_in_place() || !is_there(&self.path().join(".git")).unwrap_or(false) {
            return Ok(());
        }
        // A clone that the agent has damaged stays as it is.
        let Ok(packed) = towline_files::read(&file, LONGEST_PACKED) else { return Ok(()) };
        let packed = String::from_utf8_lossy(&packed).into_owned();
        let ids: BTreeSet<&str> = packed.lines().filter_map(id_of).collect();
        let gone = gone(self.repository(), &ids)?;
        if gone.is_empty() {
            return Ok(());
        }
        let stays = |line: &&str| id_of(line).is_none_or(|id| !gone.contains(id));
        let text: String = packed.lines().filter(stays).map(|line| format!("{line}\n")).collect();
        towline_files::replace(&file, text.as_bytes()).map_err(WorkspaceError::io("write", &file))
    }
}

/// The id in a line like `<id> refs/heads/main`.
fn id_of(line: &str) -> Option<&str> {
    let (id, _) = line.split_once(' ')?;
    (!id.starts_with('#')).then_some(id)
}

/// Which of the objects are not there, without those that the agent made itself.
fn gone(own: &Repository, ids: &BTreeSet<&str>) -> Result<BTreeSet<String>, WorkspaceError> {
    if ids.is_empty() {
        return Ok(BTreeSet::new());
    }
    let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let git = own.git();
    let found = git.command("cat-file").arg("--batch-check").input(input.into_bytes()).line()?;
    let missing = found.lines().filter_map(|line| line.strip_suffix(" missing"));
    Ok(missing.map(str::to_owned).collect())
}
