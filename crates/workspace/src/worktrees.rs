//! Git's records of linked worktrees, and removing trees for good.
//!
//! A worktree is found by the path in its record, not by the `.git` file inside it: an agent can delete or
//! replace that file, the record it cannot mistake. Used by workspaces and verification checkouts alike.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::git::{self, Git};
use crate::records::{self, On};
use crate::{Repository, WorkspaceError};

/// How often the list of worktrees is asked for while another process changes it, and the pause in between.
const TURN_TRIES: u32 = 600;
const TURN_PAUSE: Duration = Duration::from_millis(50);

/// One linked worktree of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Linked {
    /// Git's directory about it: its HEAD, its index, and our marks.
    pub(crate) record: PathBuf,
    /// Where its files are.
    pub(crate) path: PathBuf,
}

impl Linked {
    /// What a mark of ours on this worktree says, if it is there.
    pub(crate) fn mark(&self, name: &str) -> Result<Option<String>, WorkspaceError> {
        let file = self.record.join(name);
        match fs::read_to_string(&file) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(WorkspaceError::io("read", &file)(error)),
        }
    }

    /// Leaves a mark of ours on this worktree, whole or not at all.
    pub(crate) fn set_mark(
        &self,
        name: &str,
        text: &str,
        durability: Durability,
    ) -> Result<(), WorkspaceError> {
        let file = self.record.join(name);
        let draft = self.record.join(format!("{name}.new"));
        let write = || {
            let mut target = File::create(&draft)?;
            target.write_all(text.as_bytes())?;
            if durability == Durability::AtOnce {
                target.sync_all()?;
            }
            fs::rename(&draft, &file)?;
            if durability == Durability::AtOnce {
                File::open(&self.record)?.sync_all()?;
            }
            Ok(())
        };
        write().map_err(WorkspaceError::io("write", &file))
    }
}

/// What becomes of a mark in a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It is there from the moment it is made.
    AtOnce,
    /// It is there if what was made after it is: file systems keep the order of such changes. Its text may be lost.
    WithTheRest,
}

/// All linked worktrees. Records that another process is just making or removing are left out.
pub(crate) fn all(repo: &Repository) -> Result<Vec<Linked>, WorkspaceError> {
    matching(repo, |_| true)
}

/// The worktree whose files are at `path` (settled), if git has a record of one.
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

/// Where a record says that the files of its worktree are.
fn recorded_place(record: &Path) -> Option<PathBuf> {
    let mut dot_git = fs::read(record.join("gitdir")).ok()?;
    if dot_git.last() == Some(&b'\n') {
        dot_git.pop();
    }
    // Relative when the user has set worktree.useRelativePaths.
    record.join(OsString::from_vec(dot_git)).parent().map(Path::to_path_buf)
}

/// Where a branch is checked out, if it is.
pub(crate) fn checkout_of(repo: &Repository, branch: &str) -> Result<Option<PathBuf>, WorkspaceError> {
    let _turn = Turn::take(repo)?;
    let list = repo.git().command("worktree").args(["list", "--porcelain", "-z"]).run()?;
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

/// Makes a worktree at a free place, without files in it; they are written later, beside those of other worktrees.
pub(crate) fn add(repo: &Repository, path: &Path, on: On<'_>) -> Result<Linked, WorkspaceError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(WorkspaceError::io("create", parent))?;
    }
    let _turn = Turn::take(repo)?;
    if look_at(path)? != Place::Free {
        let what = "something was put there while the worktree was prepared".to_owned();
        return Err(WorkspaceError::PathTaken { path: path.to_path_buf(), what });
    }
    if let Some(record) = records::make(repo, path, on)? {
        return Ok(Linked { record, path: path.to_path_buf() });
    }
    let git = repo.git();
    let add = git.command("worktree").args(["add", "--no-checkout"]);
    match on {
        On::Commit(commit) => add.arg("--detach").arg(path).arg(commit.as_str()).run()?,
        On::Branch(branch) => add.arg(path).arg(branch).run()?,
    };
    find(repo, path)?.ok_or_else(|| WorkspaceError::Broken {
        path: path.to_path_buf(),
        what: "git has no record of it".to_owned(),
    })
}

/// Writes all tracked files of a worktree as they are in its HEAD, over whatever is there.
pub(crate) fn check_out(linked: &Linked) -> Result<(), WorkspaceError> {
    let git = Git::at(&linked.record, &linked.path);
    git.command("read-tree").args(["--reset", "-u", "HEAD"]).run()?;
    Ok(())
}

/// Removes the files and then git's record of a worktree. The order matters: a crash in between leaves the
/// record, by which the next call finds it again.
pub(crate) fn remove(repo: &Repository, linked: &Linked) -> Result<(), WorkspaceError> {
    must_be_removable(repo, &linked.path)?;
    remove_tree(&linked.path)?;
    let _turn = Turn::take(repo)?;
    // Somebody may have pruned the record since, and another worktree may have got its name.
    match recorded_place(&linked.record) {
        Some(path) if place_of(&path) == linked.path => records::remove(repo, &linked.record),
        _ => Ok(()),
    }
}

/// Whether a directory is there. A link or a file in its place is an error: it is not what git has a record of, and what
/// a link leads to is somebody else's.
pub(crate) fn is_there(path: &Path) -> Result<bool, WorkspaceError> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => Ok(true),
        Ok(_) => Err(WorkspaceError::Broken {
            path: path.to_path_buf(),
            what: "there is a link or a file in its place; see what it is, and delete it by hand".to_owned(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(WorkspaceError::io("look at", path)(error)),
    }
}

/// Fails when more would go with a worktree than itself.
fn must_be_removable(repo: &Repository, path: &Path) -> Result<(), WorkspaceError> {
    if !is_there(path)? {
        return Ok(());
    }
    let real = settle(path);
    if repo.own_places().iter().any(|own| settle(own).starts_with(&real)) {
        return Err(WorkspaceError::Broken {
            path: path.to_path_buf(),
            what: "the repository itself is in it, so it is not removed".to_owned(),
        });
    }
    Ok(())
}

/// Removes a directory and all below it, read-only directories too, without following links.
pub(crate) fn remove_tree(path: &Path) -> Result<(), WorkspaceError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path).and_then(|()| fs::remove_dir_all(path)).map_err(WorkspaceError::io("remove", path))
        }
        other => other.map_err(WorkspaceError::io("remove", path)),
    }
}

/// Gives the owner every right on the directories of a tree; build tools like to leave read-only caches.
fn open_up(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

/// The right to change or list the worktrees of a repository, held by one of us at a time: git itself fails
/// when it meets the record of a worktree that another git process is just making.
struct Turn {
    _lock: File,
}

impl Turn {
    /// Waits for a bounded time. The system gives a turn back when its holder dies.
    fn take(repo: &Repository) -> Result<Self, WorkspaceError> {
        let path = repo.worktree_lock();
        let file = File::create(&path).map_err(WorkspaceError::io("create", &path))?;
        for _ in 0..TURN_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _lock: file }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(TURN_PAUSE),
                Err(TryLockError::Error(error)) => return Err(WorkspaceError::io("lock", &path)(error)),
            }
        }
        Err(WorkspaceError::Locked {
            command: "worktree".to_owned(),
            directory: repo.root().to_path_buf(),
            detail: format!("another process of Towline holds {}", path.display()),
        })
    }
}

/// What stands at a place where a worktree is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing, or an empty directory.
    Free,
    /// A directory with a lone `.git` file: git was killed before it checked anything out.
    HalfMade,
    /// Anything else.
    Taken,
}

/// Looks at a place without changing it.
pub(crate) fn look_at(path: &Path) -> Result<Place, WorkspaceError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Place::Free),
        Err(error) => return Err(WorkspaceError::io("look at", path)(error)),
        Ok(about) if !about.is_dir() => return Ok(Place::Taken),
        Ok(_) => {}
    }
    let names: Vec<OsString> = fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.file_name())).collect())
        .map_err(WorkspaceError::io("read", path))?;
    Ok(match names.as_slice() {
        [] => Place::Free,
        [only] if only == ".git" && path.join(".git").is_file() => Place::HalfMade,
        _ => Place::Taken,
    })
}

/// The path as git records it: absolute, with the links in its existing part resolved.
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

/// Where a worktree is, as git records it: like [`settle`], but what stands there itself is never followed. A link that
/// somebody put in the place of a worktree is not the directory that it leads to.
pub(crate) fn place_of(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => settle(parent).join(name),
        _ => settle(path),
    }
}

/// The path as bytes without a trailing slash, as git prints it.
pub(crate) fn from_bytes(path: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(path))
}
