//! Git's records of linked worktrees, written and removed as a whole.
//!
//! A record is what `git worktree add --no-checkout` makes (gitrepository-layout(5)); made here it is there without the
//! time that git takes to start, and at once: git itself fails when it meets one that is half made. Where a repository
//! is out of the ordinary, git is asked. Only for whoever has the turn (`worktrees`).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use towline_core::Commit;

use crate::worktrees::remove_tree;
use crate::{Repository, WorkspaceError};

/// What in a repository's configuration may mean that a record holds more than ours do.
const OUT_OF_THE_ORDINARY: [&str; 4] = ["[extensions", "[include", "sharedrepository", "sparsecheckout"];

/// The file in a record that keeps git from taking it away.
pub(crate) const LOCKED: &str = "locked";

/// What a new worktree is on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum On<'a> {
    /// A commit, on no branch.
    Commit(&'a Commit),
    /// A branch that is there and checked out nowhere.
    Branch(&'a str),
}

/// Makes the record of a worktree at `path`, which is free, and what leads there from it. None when git has to do it.
pub(crate) fn make(repo: &Repository, path: &Path, on: On<'_>) -> Result<Option<PathBuf>, WorkspaceError> {
    if !is_ordinary(repo) {
        return Ok(None);
    }
    let draft = staging(repo, "new-worktree")?;
    fs::create_dir(&draft).map_err(WorkspaceError::io("create", &draft))?;
    let head = match on {
        On::Commit(commit) => format!("{commit}\n"),
        On::Branch(branch) => format!("ref: refs/heads/{branch}\n"),
    };
    let dot_git = path.join(".git");
    write(&draft.join("HEAD"), head.as_bytes())?;
    write(&draft.join("commondir"), b"../..\n")?;
    write(&draft.join("gitdir"), &[dot_git.as_os_str().as_bytes(), b"\n"].concat())?;
    // Without it, anybody's `git worktree prune` takes a record for abandoned that leads nowhere yet.
    write(&draft.join(LOCKED), b"initializing")?;
    let record = install(repo, &draft, path)?;
    fs::create_dir_all(path).map_err(WorkspaceError::io("create", path))?;
    write(&dot_git, &[b"gitdir: ", record.as_os_str().as_bytes(), b"\n"].concat())?;
    let locked = record.join(LOCKED);
    fs::remove_file(&locked).map_err(WorkspaceError::io("remove", &locked))?;
    Ok(Some(record))
}

/// Removes a record.
pub(crate) fn remove(repo: &Repository, record: &Path) -> Result<(), WorkspaceError> {
    let aside = staging(repo, "old-worktree")?;
    match fs::rename(record, &aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(WorkspaceError::io("remove", record)(error)),
        Ok(()) => remove_tree(&aside),
    }
}

/// A free place for a record that is not to be seen yet, or no longer.
fn staging(repo: &Repository, name: &str) -> Result<PathBuf, WorkspaceError> {
    let parent = repo.common_dir().join("towline");
    fs::create_dir_all(&parent).map_err(WorkspaceError::io("create", &parent))?;
    let place = parent.join(name);
    // What a killed process has left there.
    remove_tree(&place)?;
    Ok(place)
}

/// Gives a record its place, under the first free name that is like the worktree's.
fn install(repo: &Repository, draft: &Path, path: &Path) -> Result<PathBuf, WorkspaceError> {
    let records = repo.worktree_records();
    let stem = path.file_name().map_or_else(|| OsString::from("worktree"), OsString::from);
    let mut record = records.join(&stem);
    let mut number = 0_u32;
    loop {
        while fs::symlink_metadata(&record).is_ok() {
            number += 1;
            let mut name = stem.clone();
            name.push(number.to_string());
            record = records.join(name);
        }
        fs::create_dir_all(&records).map_err(WorkspaceError::io("create", &records))?;
        match fs::rename(draft, &record) {
            // Whoever prunes removes the directory of all records when none is in it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && draft.exists() => {}
            renamed => {
                return renamed.map(|()| record.clone()).map_err(WorkspaceError::io("create", &record));
            }
        }
    }
}

fn write(file: &Path, content: &[u8]) -> Result<(), WorkspaceError> {
    fs::write(file, content).map_err(WorkspaceError::io("write", file))
}

/// Whether nothing in the repository says that its worktrees are to be more than a HEAD and the way to it. What is not
/// understood counts as out of the ordinary.
fn is_ordinary(repo: &Repository) -> bool {
    let common = repo.common_dir();
    let Ok(config) = fs::read_to_string(common.join("config")) else { return false };
    let config = config.to_lowercase();
    let has = |name: &str| [common, repo.git_dir()].iter().any(|directory| directory.join(name).exists());
    !OUT_OF_THE_ORDINARY.iter().any(|word| config.contains(word))
        && !has("config.worktree")
        && !has("info/sparse-checkout")
}
