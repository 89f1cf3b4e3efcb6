//! The work of a commit taken back, but for some of its files.

use towline_core::Commit;

use crate::candidate::changes_since;
use crate::paths::from_bytes;
use crate::private_index::PrivateIndex;
use crate::{Candidate, Protect, Repository, WorkspaceError};

impl Repository {
    /// The commit with its changes since `base` taken back, but for files that `spared` covers. None if there are no others. No ref
    /// protects what is made here: it is needed for one checkout.
    pub fn reverted(
        &self,
        base: &Commit,
        commit: &Commit,
        spared: &Protect,
    ) -> Result<Option<Candidate>, WorkspaceError> {
        let index = PrivateIndex::empty(&self.plain_git(), &self.git_dir)?;
        index.git.command("read-tree").arg(commit.as_str()).run()?;
        let mut changes = changes_since(&index, base)?;
        changes.retain(|path, _| !spared.covers(from_bytes(path)));
        if changes.is_empty() {
            return Ok(None);
        }
        // Removals first, so that nothing is in the place of what comes back.
        index.forget(changes.keys().map(Vec::as_slice))?;
        let before =
            changes.iter().filter_map(|(path, changed)| Some((path.as_slice(), changed.before.as_ref()?)));
        index.insert(before)?;
        let reverted = self.commit_tree(&index.write_tree()?, base, "The work without its change\n")?;
        Ok(Some(self.as_candidate(&reverted)?))
    }
}
