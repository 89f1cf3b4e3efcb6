//! Notes in our own repository of a goal about the directories that were made for it, so that nothing else is ever taken
//! for one of them.

use crate::{Repository, WorkspaceError};

/// The note about the workspace. Its text is one of those below.
pub(crate) const WORKSPACE: &str = "towline-workspace";
/// No agent has been in it yet.
pub(crate) const MAKING: &[u8] = b"making";
/// It was a worktree, and something of that is left in the user's repository.
pub(crate) const CONVERTED: &[u8] = b"converted";
pub(crate) const READY: &[u8] = b"ready";

/// The note about clean checkouts. Its text is the paths of the last ones, with a NUL between them.
pub(crate) const CHECKOUT: &str = "towline-checkout";

/// The note about a checkout that is left for the next verdict. Its text is its commit, a NUL and its path.
pub(crate) const WARM: &str = "towline-warm-checkout";

/// More than any note holds.
const LONGEST: u64 = 64 * 1024;

impl Repository {
    /// What a note contains, if it is there.
    pub(crate) fn note(&self, name: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
        let path = self.git_dir.join(name);
        towline_files::read_if_present(&path, LONGEST).map_err(WorkspaceError::io("read", &path))
    }

    /// Writes a note, whole or not at all.
    pub(crate) fn write_note(&self, name: &str, text: &[u8]) -> Result<(), WorkspaceError> {
        let path = self.git_dir.join(name);
        towline_files::replace(&path, text).map_err(WorkspaceError::io("write", &path))
    }

    /// Removes a note.
    pub(crate) fn remove_note(&self, name: &str) -> Result<(), WorkspaceError> {
        crate::paths::remove_tree(&self.git_dir.join(name))
    }
}
