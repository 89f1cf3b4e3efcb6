//! Clean checkouts of a candidate, for the checks to run in.
//!
//! Nothing of the agent's ignored files, and nothing of an earlier run, is in one. Neighbours: `towline-check`
//! runs commands there; this module only makes and removes the place.

use std::path::Path;

use towline_core::Commit;

use crate::copy::CopyPlan;
use crate::records::On;
use crate::worktrees::{self, Durability, Linked, Place, place_of};
use crate::{Repository, WorkspaceError};

/// The mark in git's record of a worktree that is ours to delete; it is there before any file is.
const MARK: &str = "towline-verification";

/// A clean checkout. It stays on disk until it is removed or made anew.
#[derive(Debug)]
#[must_use]
pub struct Verification {
    repository: Repository,
    linked: Linked,
    commit: Commit,
    warnings: Vec<String>,
}

impl Verification {
    /// The directory to run checks in.
    pub fn path(&self) -> &Path {
        &self.linked.path
    }

    /// The candidate that is checked out.
    pub fn commit(&self) -> &Commit {
        &self.commit
    }

    /// What a person should know about how the checkout was made, like files to copy that are missing.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Removes the checkout and git's record of it.
    pub fn remove(self) -> Result<(), WorkspaceError> {
        worktrees::remove(&self.repository, &self.linked)
    }
}

/// Makes a fresh detached checkout of the candidate at `path`, after removing what an earlier call left there,
/// and copies the named files into it from the user's checkout `from`. Submodules are left empty; a setup
/// command can fill them. Anything at `path` that is not such a checkout is refused.
pub fn verification(
    repo: &Repository,
    path: &Path,
    candidate: &Commit,
    copy: &[String],
    from: &Path,
) -> Result<Verification, WorkspaceError> {
    let path = place_of(path);
    let files = CopyPlan::new(from, copy)?;
    clear(repo, &path, candidate)?;
    let missing = |error| match error {
        // Most of all it is the commit that may be missing; git's own words would not say so.
        WorkspaceError::Git { .. } => repo.require(candidate).err().unwrap_or(error),
        error => error,
    };
    let linked = worktrees::add(repo, &path, On::Commit(candidate)).map_err(missing)?;
    let marked = linked.set_mark(MARK, candidate.as_str(), Durability::WithTheRest);
    if let Err(error) = marked.and_then(|()| worktrees::check_out(&linked)) {
        // What cannot be removed now is removed by the next call.
        let _ = worktrees::remove(repo, &linked);
        return Err(missing(error));
    }
    let warnings = files.carry_out(&path)?;
    Ok(Verification { repository: repo.clone(), linked, commit: candidate.clone(), warnings })
}

/// Removes the checkout that was left at `path`, with git's record of it. Files that git has no record of are what is
/// left of one whose record is gone, so they go as well; a worktree that somebody else made there is left alone. Only
/// for a time when nobody makes or uses a checkout there.
pub fn discard_verification(repo: &Repository, path: &Path) -> Result<(), WorkspaceError> {
    let path = place_of(path);
    match worktrees::find(repo, &path)? {
        Some(linked) if is_ours(&linked, worktrees::look_at(&path)?)? => worktrees::remove(repo, &linked),
        Some(_) => Ok(()),
        None => worktrees::remove_tree(&path),
    }
}

/// Without the mark it is ours only when git was killed before the mark could be set, and then there is nothing in it.
fn is_ours(linked: &Linked, place: Place) -> Result<bool, WorkspaceError> {
    Ok(place != Place::Taken || linked.mark(MARK)?.is_some())
}

/// Makes the place free for the candidate if what is there is ours.
fn clear(repo: &Repository, path: &Path, candidate: &Commit) -> Result<(), WorkspaceError> {
    let place = worktrees::look_at(path)?;
    if let Some(linked) = worktrees::find(repo, path)?
        && is_ours(&linked, place)?
    {
        repo.require(candidate)?;
        return worktrees::remove(repo, &linked);
    }
    match place {
        Place::Free => Ok(()),
        Place::HalfMade => worktrees::remove_tree(path),
        Place::Taken => Err(WorkspaceError::PathTaken {
            path: path.to_path_buf(),
            what: "it exists and is not a verification checkout of this repository".to_owned(),
        }),
    }
}
