//! Walking a tree that an agent could write to, before git does: FIFOs, sockets and devices would hold git for ever.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::WorkspaceError;
use crate::directory::{Directory, Pending};
use crate::paths::{remove_tree, settle};

/// Files that git opens wherever it meets them, whether or not they are part of the work.
const READ_BY_GIT: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];

/// What git reads of a repository that it meets inside a working tree, to know which commit it is on.
const READ_OF_REPOSITORIES: [&str; 10] = [
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "index",
    "info",
    "packed-refs",
    "refs",
    "reftable",
];

/// The most that is read of a file that names a directory.
const LONGEST_GIT_FILE: u64 = 8 * 1024;

/// The rights of an owner on a directory that git can read, and on one that something can be removed from.
const READABLE: u32 = 0o500;
const WRITABLE: u32 = 0o700;

/// What happens to FIFOs and the like in places that git reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    /// They are removed: the directory is an agent's, and nothing is in them that could be lost.
    Remove,
    /// They are an error: the directory is the user's.
    Refuse,
}

/// Looks at everything below `top` but its own `.git`, and sees to it that git can read it without waiting. Gives the FIFOs,
/// sockets and devices that are left, relative to the top. Directories of an agent that their owner may not read or search are
/// opened up.
pub(crate) fn prepare_for_git(top: &Path, special: Special) -> Result<Vec<Vec<u8>>, WorkspaceError> {
    let walk = Walk { top: settle(top), special };
    let mut met = Vec::new();
    let mut pending = vec![Pending::top(top)];
    while let Some(directory) = pending.pop().map(Pending::enter) {
        let is_top = directory.path() == top;
        for (entry, kind) in walk.entries_of(&directory)? {
            let path = directory.path().join(&entry);
            let is_git = entry == ".git";
            if is_git && is_top {
                continue;
            }
            if is_git && (kind.is_dir() || kind.is_file() || kind.is_symlink()) {
                walk.prepare_repository(&path)?;
            } else if kind.is_dir() {
                pending.push(directory.pending(entry));
            } else if !kind.is_file() && !kind.is_symlink() {
                if is_git || READ_BY_GIT.iter().any(|read| entry == *read) {
                    walk.give_way(&path)?;
                }
                met.push(path.strip_prefix(top).unwrap_or(&path).as_os_str().as_bytes().to_vec());
            }
        }
    }
    met.sort();
    Ok(met)
}

struct Walk {
    top: PathBuf,
    special: Special,
}

impl Walk {
    /// Sees to it that git can find out which commit a repository inside the tree is on.
    fn prepare_repository(&self, dot_git: &Path) -> Result<(), WorkspaceError> {
        self.open_up(dot_git, READABLE)?;
        for directory in directories_of(dot_git) {
            let is_inside = settle(&directory).starts_with(&self.top);
            if is_inside {
                self.open_up(&directory, READABLE)?;
            }
            for name in READ_OF_REPOSITORIES {
                for path in self.special_below(&directory.join(name), is_inside)? {
                    // What is elsewhere is nobody's to remove; without its `.git` the directory is one like any other.
                    self.give_way(if is_inside { &path } else { dot_git })?;
                }
            }
        }
        Ok(())
    }

    /// The path itself or everything below it that git would wait for, or that is a symlink to such a thing or to a directory.
    /// Directories that are closed are opened up if they are inside the tree, and are in the way if they are not.
    fn special_below(&self, path: &Path, is_inside: bool) -> Result<Vec<PathBuf>, WorkspaceError> {
        let mut found = Vec::new();
        let mut pending = vec![path.to_path_buf()];
        while let Some(path) = pending.pop() {
            let Ok(about) = fs::symlink_metadata(&path) else { continue };
            if about.is_dir() {
                match if is_inside { self.entries(&path) } else { listed(&path) } {
                    Err(error) if is_denied(&error) => found.push(path),
                    entries => pending.extend(entries?.iter().map(fs::DirEntry::path)),
                }
            } else if about.is_symlink() {
                // One that leads nowhere holds nobody up.
                found.extend(fs::metadata(&path).is_ok_and(|about| !about.is_file()).then_some(path));
            } else if !about.is_file() {
                found.push(path);
            }
        }
        Ok(found)
    }

    fn give_way(&self, path: &Path) -> Result<(), WorkspaceError> {
        match self.special {
            Special::Remove => {
                self.open_up(path.parent().unwrap_or(path), WRITABLE)?;
                remove_tree(path)
            }
            Special::Refuse => Err(WorkspaceError::SpecialFile { path: path.to_path_buf() }),
        }
    }

    fn entries_of(&self, directory: &Directory) -> Result<Vec<(OsString, fs::FileType)>, WorkspaceError> {
        self.open_up_by(&directory.way(), directory.path(), READABLE)?;
        self.unless_closed(present(directory.entries(), directory.path()))
    }

    fn entries(&self, directory: &Path) -> Result<Vec<fs::DirEntry>, WorkspaceError> {
        self.open_up(directory, READABLE)?;
        self.unless_closed(listed(directory))
    }

    fn unless_closed<T>(&self, entries: Result<Vec<T>, WorkspaceError>) -> Result<Vec<T>, WorkspaceError> {
        match entries {
            // Git leaves such a directory out, too.
            Err(error) if is_denied(&error) && self.special == Special::Refuse => Ok(Vec::new()),
            other => other,
        }
    }

    /// Gives the owner of an agent's directory all rights on it, unless it has the ones that are needed.
    fn open_up(&self, directory: &Path, needed: u32) -> Result<(), WorkspaceError> {
        self.open_up_by(directory, directory, needed)
    }

    /// The same through a shorter path to it; an error names the directory.
    fn open_up_by(&self, way: &Path, directory: &Path, needed: u32) -> Result<(), WorkspaceError> {
        let Ok(about) = fs::symlink_metadata(way) else { return Ok(()) };
        let mode = about.permissions().mode();
        if self.special == Special::Refuse || !about.is_dir() || mode & needed == needed {
            return Ok(());
        }
        fs::set_permissions(way, fs::Permissions::from_mode(mode | WRITABLE))
            .map_err(WorkspaceError::io("open up", directory))
    }
}

fn is_denied(error: &WorkspaceError) -> bool {
    matches!(error, WorkspaceError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
}

/// The files below `top` that lead to the data of a repository which is elsewhere, as those of submodules do.
pub(crate) fn git_files(top: &Path) -> Result<Vec<PathBuf>, WorkspaceError> {
    let mut found = Vec::new();
    let mut pending = vec![top.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in listed(&directory)? {
            let kind = entry.file_type().map_err(WorkspaceError::io("look at", &entry.path()))?;
            let is_git = entry.file_name() == ".git";
            if kind.is_dir() && !is_git {
                pending.push(entry.path());
            } else if kind.is_file() && is_git {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

/// The file or symlink at a path relative to `top`, or all of them below it. What git has about repositories is not among them.
pub(crate) fn files_at(top: &Path, path: &[u8]) -> Result<Vec<Vec<u8>>, WorkspaceError> {
    let mut found = Vec::new();
    let mut pending = vec![crate::paths::from_bytes(path).to_path_buf()];
    while let Some(name) = pending.pop() {
        let place = top.join(&name);
        let kind = fs::symlink_metadata(&place).map_err(WorkspaceError::io("look at", &place))?.file_type();
        if kind.is_dir() {
            let entries = listed(&place)?.into_iter().map(|entry| entry.file_name());
            pending.extend(entries.filter(|entry| entry != ".git").map(|entry| name.join(entry)));
        } else if kind.is_file() || kind.is_symlink() {
            found.push(name.into_os_string().into_vec());
        }
    }
    Ok(found)
}

/// Where the data of a repository is: at its `.git`, or where that leads to, and what it shares with others.
pub(crate) fn directories_of(dot_git: &Path) -> Vec<PathBuf> {
    let parent = dot_git.parent().unwrap_or(dot_git);
    let git_dir = match towline_files::read(dot_git, LONGEST_GIT_FILE) {
        Ok(text) => match text.strip_prefix(b"gitdir: ") {
            Some(target) => parent.join(crate::paths::from_bytes(target.trim_ascii_end())),
            None => return Vec::new(),
        },
        Err(_) => dot_git.to_path_buf(),
    };
    let common = towline_files::read(&git_dir.join("commondir"), LONGEST_GIT_FILE).ok();
    let common = common.map(|text| git_dir.join(crate::paths::from_bytes(text.trim_ascii_end())));
    [Some(git_dir), common].into_iter().flatten().collect()
}

/// Removes everything below a directory of our own that is neither a file nor a directory: we make no such things.
pub(crate) fn remove_special(directory: &Path) -> Result<(), WorkspaceError> {
    unusual_below(directory, |path| fs::remove_file(path).map_err(WorkspaceError::io("remove", path)))
}

/// Whether something at the place of a directory or below it is neither a file nor a directory, or cannot be looked at.
pub(crate) fn holds_special(directory: &Path) -> Result<bool, WorkspaceError> {
    let mut found = fs::symlink_metadata(directory).is_ok_and(|about| !about.is_dir());
    if found {
        return Ok(true);
    }
    let looked = unusual_below(directory, |_| {
        found = true;
        Ok(())
    });
    match looked {
        Err(error) if is_denied(&error) => Ok(true),
        looked => looked.map(|()| found),
    }
}

/// Calls for everything below a directory that is neither a file nor a directory.
fn unusual_below(
    directory: &Path,
    mut met: impl FnMut(&Path) -> Result<(), WorkspaceError>,
) -> Result<(), WorkspaceError> {
    let mut pending = vec![directory.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in listed(&directory)? {
            let kind = entry.file_type().map_err(WorkspaceError::io("look at", &entry.path()))?;
            if kind.is_dir() {
                pending.push(entry.path());
            } else if !kind.is_file() {
                met(&entry.path())?;
            }
        }
    }
    Ok(())
}

/// What is in a directory; nothing when it is not there.
fn listed(directory: &Path) -> Result<Vec<fs::DirEntry>, WorkspaceError> {
    present(fs::read_dir(directory).and_then(Iterator::collect), directory)
}

/// The entries of a directory; none when it is not there.
fn present<T>(entries: io::Result<Vec<T>>, directory: &Path) -> Result<Vec<T>, WorkspaceError> {
    match entries {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(WorkspaceError::io("read", directory)),
    }
}
