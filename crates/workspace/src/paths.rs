//! Paths as git sees them, and removing trees for good.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::WorkspaceError;

/// Whether a directory is there, and not a symlink to one.
pub(crate) fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_dir())
}

/// Whether a directory is there. A symlink or a file in its place is an error: what a symlink leads to is somebody else's.
pub(crate) fn is_there(path: &Path) -> Result<bool, WorkspaceError> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => Ok(true),
        Ok(_) => Err(WorkspaceError::Broken {
            path: path.to_path_buf(),
            what: "there is a symlink or a file in its place; see what it is, and delete it by hand"
                .to_owned(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(WorkspaceError::io("look at", path)(error)),
    }
}

/// Removes what is at a path: a directory with all below it, read-only directories too, or a file or symlink. No symlink is
/// followed.
pub(crate) fn remove_tree(path: &Path) -> Result<(), WorkspaceError> {
    towline_files::remove_tree(path).map_err(WorkspaceError::io("remove", path))
}

/// The path made absolute, with the symlinks in its existing part resolved.
pub(crate) fn settle(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for ancestor in absolute.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            let rest = absolute.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    absolute
}

/// Like [`settle`], but what is at the path itself is never followed: a symlink that somebody put in the place of a
/// workspace is not the directory that it leads to.
pub(crate) fn place_of(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => settle(parent).join(name),
        _ => settle(path),
    }
}

/// The directories that a path lies in, the outermost first.
pub(crate) fn parents(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| &path[..end])
}

/// A path as git prints it.
pub(crate) fn from_bytes(path: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(path))
}
