//! Linked worktrees of the user's repository: which branches they have checked out, and the ones that goals of earlier
//! versions worked in.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::paths::{place_of, remove_tree};
use crate::{Repository, WorkspaceError, git};

/// The most that is read of one of git's small files.
const LONGEST: u64 = 64 * 1024;

/// One linked worktree of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Linked {
    /// Git's directory about it: its HEAD and its index.
    pub(crate) record: PathBuf,
    /// Where its files are.
    pub(crate) path: PathBuf,
}

/// All linked worktrees. Records that another process is just making or removing are left out.
pub(crate) fn all(repo: &Repository) -> Result<Vec<Linked>, WorkspaceError> {
    matching(repo, |_| true)
}

/// The worktree whose files are at `path`, if git has a record of one.
pub(crate) fn find(repo: &Repository, path: &Path) -> Result<Option<Linked>, WorkspaceError> {
    // There may be hundreds, and finding out where one really is takes time. Its own name is always as it is recorded.
    let named_alike = matching(repo, |recorded| recorded.file_name() == path.file_name())?;
    Ok(named_alike.into_iter().find(|linked| linked.path == path))
}

/// The linked worktrees whose recorded place passes.
fn matching(repo: &Repository, passes: impl Fn(&Path) -> bool) -> Result<Vec<Linked>, WorkspaceError> {
    let directory = repo.worktree_records();
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(WorkspaceError::io("read", &directory)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let record = entry.map_err(WorkspaceError::io("read", &directory))?.path();
        if let Some(path) = recorded_place(&record).filter(|path| passes(path)) {
            found.push(Linked { path: place_of(&path), record });
        }
    }
    Ok(found)
}

/// Where the files of a worktree are, by its record.
fn recorded_place(record: &Path) -> Option<PathBuf> {
    let mut dot_git = towline_files::read(&record.join("gitdir"), LONGEST).ok()?;
    if dot_git.last() == Some(&b'\n') {
        dot_git.pop();
    }
    // Relative when the user has set worktree.useRelativePaths.
    record.join(OsString::from_vec(dot_git)).parent().map(Path::to_path_buf)
}

/// Removes git's record of a worktree whose files are gone or have become something else.
pub(crate) fn forget(linked: &Linked) -> Result<(), WorkspaceError> {
    // Somebody may have pruned the record since, and another worktree may have got its name.
    match recorded_place(&linked.record) {
        Some(path) if place_of(&path) == linked.path => remove_tree(&linked.record),
        _ => Ok(()),
    }
}

/// Where a branch is checked out, if it is.
pub(crate) fn checkout_of(repo: &Repository, branch: &str) -> Result<Option<PathBuf>, WorkspaceError> {
    let list = repo.plain_git().command("worktree").args(["list", "--porcelain", "-z"]).run()?;
    let wanted = format!("branch refs/heads/{branch}");
    let mut path = None;
    for line in git::records(&list) {
        if let Some(worktree) = line.strip_prefix(b"worktree ") {
            path = Some(PathBuf::from(OsString::from_vec(worktree.to_vec())));
        } else if line == wanted.as_bytes() {
            return Ok(path);
        }
    }
    Ok(None)
}
