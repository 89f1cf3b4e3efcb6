//! Walking a tree that an agent could write to, before git does: FIFOs, sockets and devices would hold git for ever.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::WorkspaceError;

/// Files that git opens wherever it meets them, whether or not they are part of the work.
const READ_BY_GIT: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];

/// What happens to FIFOs and the like in places that git reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    /// They are removed: the directory is an agent's, and nothing is in them that could be lost.
    Remove,
    /// They are an error: the directory is the user's.
    Refuse,
}

/// What a walk has met that git cannot take.
#[derive(Debug, Default)]
pub(crate) struct Met {
    /// FIFOs, sockets and devices, relative to the top.
    pub(crate) special: Vec<Vec<u8>>,
    /// Repositories below the top whose own data holds such things.
    pub(crate) unreadable_repositories: Vec<Vec<u8>>,
}

impl Met {
    /// Whether it was nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.special.is_empty() && self.unreadable_repositories.is_empty()
    }
}

/// Looks at everything below `top` but its own `.git`. Directories that their owner may not read are opened up.
pub(crate) fn prepare_for_git(top: &Path, special: Special) -> Result<Met, WorkspaceError> {
    let mut met = Met::default();
    let mut pending = vec![PathBuf::new()];
    while let Some(directory) = pending.pop() {
        for entry in entries(&top.join(&directory))? {
            let name = directory.join(entry.file_name());
            let kind = entry.file_type().map_err(WorkspaceError::io("look at", &entry.path()))?;
            let is_git = entry.file_name() == ".git";
            if is_git && directory.as_os_str().is_empty() {
                continue;
            }
            if kind.is_dir() && is_git {
                if holds_special(&entry.path())? {
                    met.unreadable_repositories.push(directory.as_os_str().as_bytes().to_vec());
                }
            } else if kind.is_dir() {
                pending.push(name);
            } else if !kind.is_file() && !kind.is_symlink() {
                if is_git || READ_BY_GIT.iter().any(|read| entry.file_name() == *read) {
                    let path = entry.path();
                    if special == Special::Refuse {
                        return Err(WorkspaceError::SpecialFile { path });
                    }
                    fs::remove_file(&path).map_err(WorkspaceError::io("remove", &path))?;
                }
                met.special.push(name.as_os_str().as_bytes().to_vec());
            }
        }
    }
    met.special.sort();
    Ok(met)
}

/// Removes everything below a directory of our own that is neither a file nor a directory: we make no such things.
pub(crate) fn remove_special(directory: &Path) -> Result<(), WorkspaceError> {
    let mut pending = vec![directory.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in entries(&directory)? {
            let kind = entry.file_type().map_err(WorkspaceError::io("look at", &entry.path()))?;
            if kind.is_dir() {
                pending.push(entry.path());
            } else if !kind.is_file() {
                let path = entry.path();
                fs::remove_file(&path).map_err(WorkspaceError::io("remove", &path))?;
            }
        }
    }
    Ok(())
}

/// Whether something below a directory is neither a file nor a directory.
pub(crate) fn holds_special(directory: &Path) -> Result<bool, WorkspaceError> {
    let mut pending = vec![directory.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in entries(&directory)? {
            let kind = entry.file_type().map_err(WorkspaceError::io("look at", &entry.path()))?;
            if kind.is_dir() {
                pending.push(entry.path());
            } else if !kind.is_file() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn entries(directory: &Path) -> Result<Vec<fs::DirEntry>, WorkspaceError> {
    let read = || fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = match read() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).and_then(|()| read())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other,
    };
    entries.map_err(WorkspaceError::io("read", directory))
}
