//! The files through which git finds out what a repository is, looked at before git opens them: an agent that works in place
//! can put a FIFO or a device there, and git would wait for it for ever.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::WorkspaceError;
use crate::paths::settle;
use crate::walk::directories_of;

/// What git does not read for any of our commands, or what others look after: repositories of submodules are looked at where
/// they are checked out.
const NOT_READ: [&str; 4] = ["hooks", "lfs", "modules", "towline"];

/// Fails when git would wait for something in the data of the repository that `from` is in, upward from there.
pub(crate) fn must_not_wait(from: &Path) -> Result<(), WorkspaceError> {
    let Ok(from) = std::path::absolute(from) else { return Ok(()) };
    for directory in from.ancestors() {
        let dot_git = directory.join(".git");
        refuse(&dot_git)?;
        // What it leads to, where it is a symlink.
        let mut places = dot_git.canonicalize().map(|real| directories_of(&real)).unwrap_or_default();
        // The search may begin inside of git's own directory.
        places.push(directory.to_path_buf());
        let repositories: Vec<PathBuf> =
            places.iter().filter(|place| is_git_dir(place)).map(|place| settle(place)).collect();
        repositories.iter().try_for_each(|place| must_hold_nothing_to_wait_for(place))?;
        if !repositories.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Whether git takes a directory for its own. One of a linked worktree has only its own HEAD.
fn is_git_dir(directory: &Path) -> bool {
    let has = |name: &str| fs::symlink_metadata(directory.join(name)).is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

fn must_hold_nothing_to_wait_for(git_dir: &Path) -> Result<(), WorkspaceError> {
    let mut seen = BTreeSet::new();
    let mut pending = vec![git_dir.to_path_buf()];
    while let Some(directory) = pending.pop() {
        // Some repositories share parts by symlinks to directories. What cannot be read is git's to report.
        let is_new = directory.canonicalize().is_ok_and(|real| seen.insert(real));
        let entries = if is_new { fs::read_dir(&directory).ok() } else { None };
        for entry in entries.into_iter().flatten().flatten() {
            let is_read = directory != git_dir || NOT_READ.iter().all(|name| entry.file_name() != *name);
            match entry.file_type() {
                Ok(kind) if kind.is_file() || !is_read => {}
                Ok(kind) if kind.is_dir() => pending.push(entry.path()),
                _ if entry.path().is_dir() => pending.push(entry.path()),
                _ => refuse(&entry.path())?,
            }
        }
    }
    Ok(())
}

/// A socket holds nobody up, and git's own file system monitor has one in the directory.
fn refuse(path: &Path) -> Result<(), WorkspaceError> {
    let waits = |kind: fs::FileType| kind.is_fifo() || kind.is_char_device() || kind.is_block_device();
    match fs::metadata(path) {
        Ok(about) if waits(about.file_type()) => {
            Err(WorkspaceError::SpecialFile { path: path.to_path_buf() })
        }
        _ => Ok(()),
    }
}
