//! How far a goal's work and the branch that would get it have moved apart.

use towline_core::Commit;

use crate::merge::{Joined, current_branch};
use crate::{Repository, WorkspaceError};

/// Work beside the branch that is checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The branch that would get the work.
    pub into: String,
    /// Commits of the work that the branch does not have.
    pub ahead: usize,
    /// Commits of the branch that the work does not have.
    pub behind: usize,
    /// Paths in which the two conflict.
    pub conflicts: Vec<String>,
}

impl Repository {
    /// Compares work that started from `base` with the branch that is checked out here; none where no branch is. No
    /// branch, index or file changes.
    pub fn divergence(
        &self,
        candidate: &Commit,
        base: &Commit,
    ) -> Result<Option<Divergence>, WorkspaceError> {
        self.require(candidate)?;
        let Some(into) = current_branch(self)? else { return Ok(None) };
        let at = self.resolve("HEAD")?;
        let range = format!("{at}...{candidate}");
        let counted = self.git().command("rev-list").args(["--left-right", "--count", &range]).line()?;
        let mut counts = counted.split_whitespace().map(|count| count.parse().unwrap_or_default());
        let (behind, ahead) = (counts.next().unwrap_or_default(), counts.next().unwrap_or_default());
        let conflicts = match ahead > 0 && behind > 0 {
            true => match self.join(&at, candidate, base, &self.committed_base(base)?)? {
                Joined::Clean(_) => Vec::new(),
                Joined::Conflicts(paths) => paths,
            },
            false => Vec::new(),
        };
        Ok(Some(Divergence { into, ahead, behind, conflicts }))
    }
}
