//! Index files of our own, beside the one that belongs to a working tree's user.
//!
//! Neighbours: `snapshot` fills one with everything in a working tree. Nothing here moves a HEAD or a branch, or writes to a
//! working tree.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::git::Git;
use crate::tree::TrackedFile;
use crate::{WorkspaceError, unless_git_failed};

/// Private index directories that a killed process left behind are removed after this time.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// More than the index of any repository.
const LARGEST: u64 = 2 * 1024 * 1024 * 1024;

/// An index file that nobody else uses; it is gone when the value is.
#[derive(Debug)]
pub(crate) struct PrivateIndex {
    /// Git with this index.
    pub(crate) git: Git,
    directory: PathBuf,
}

impl PrivateIndex {
    /// An empty index in a fresh directory below git's own.
    pub(crate) fn empty(git: &Git, git_dir: &Path) -> Result<Self, WorkspaceError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parent = git_dir.join("towline");
        fs::create_dir_all(&parent).map_err(WorkspaceError::io("create", &parent))?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let directory = parent.join(format!("index-{}-{number}", std::process::id()));
            match fs::create_dir(&directory) {
                Ok(()) => {
                    remove_abandoned(&parent, &directory);
                    return Ok(Self { git: git.with_index(&directory.join("index")), directory });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(WorkspaceError::io("create", &directory)(error)),
            }
        }
    }

    /// A copy of an index: the cached file times of our own spare hashing everything. None when there is none, or something
    /// that cannot be one.
    pub(crate) fn copy_of(
        original: &Path,
        git: &Git,
        git_dir: &Path,
    ) -> Result<Option<Self>, WorkspaceError> {
        let Ok(mut source) = towline_files::open(original) else { return Ok(None) };
        if source.metadata().is_ok_and(|about| about.len() > LARGEST) {
            return Ok(None);
        }
        let index = Self::empty(git, git_dir)?;
        copy_index(&mut source, &index.directory.join("index"))
            .map_err(WorkspaceError::io("copy", original))?;
        Ok(Some(index))
    }

    /// Writes what the index holds as a tree object.
    pub(crate) fn write_tree(&self) -> Result<String, WorkspaceError> {
        self.git.command("write-tree").line()
    }

    /// Makes it the index at `path`, in the place of what is there.
    pub(crate) fn install(&self, path: &Path) -> Result<(), WorkspaceError> {
        fs::rename(self.directory.join("index"), path).map_err(WorkspaceError::io("write", path))
    }

    /// Takes paths out of the index.
    pub(crate) fn forget<'a>(&self, paths: impl IntoIterator<Item = &'a [u8]>) -> Result<(), WorkspaceError> {
        self.update(&["--force-remove"], paths)
    }

    /// Puts entries into the index, in the place of what is there.
    pub(crate) fn insert<'a>(
        &self,
        entries: impl IntoIterator<Item = (&'a [u8], &'a TrackedFile)>,
    ) -> Result<(), WorkspaceError> {
        let line = |(path, entry): (&[u8], &TrackedFile)| {
            [entry.mode.as_git(), b" ", entry.id.as_bytes(), b"\t", path, b"\0"].concat()
        };
        let lines: Vec<Vec<u8>> = entries.into_iter().map(line).collect();
        if !lines.is_empty() {
            let insert = self.git.command("update-index").args(["--add", "--replace", "-z", "--index-info"]);
            insert.input(lines.concat()).run()?;
        }
        Ok(())
    }

    /// Runs `update-index` with options on a list of paths, if there are any.
    pub(crate) fn update<'a>(
        &self,
        options: &[&str],
        paths: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), WorkspaceError> {
        let input = joined(paths);
        if !input.is_empty() {
            self.git.command("update-index").args(options).args(["-z", "--stdin"]).input(input).run()?;
        }
        Ok(())
    }

    /// Adds files, ignored or not, by names that somebody else has chosen. Those that git does not take are left out.
    pub(crate) fn add_leniently<'a>(
        &self,
        paths: impl IntoIterator<Item = &'a Vec<u8>>,
    ) -> Result<(), WorkspaceError> {
        let patterns: Vec<Vec<u8>> =
            paths.into_iter().map(|path| [b":(top,literal)", path.as_slice()].concat()).collect();
        if patterns.is_empty() {
            return Ok(());
        }
        let add = self.git.command("add").args(["--force", "--sparse", "--ignore-errors"]);
        let add = add.args(["--pathspec-from-file=-", "--pathspec-file-nul"]);
        unless_git_failed(add.input(joined(patterns.iter().map(Vec::as_slice))).query()).map(drop)
    }

    /// Puts a tree into the index below a directory.
    pub(crate) fn graft(&self, directory: &[u8], tree: &str) -> Result<(), WorkspaceError> {
        let mut prefix = std::ffi::OsString::from("--prefix=");
        prefix.push(crate::paths::from_bytes(directory));
        prefix.push("/");
        self.git.command("read-tree").arg(prefix).arg(tree).run()?;
        Ok(())
    }
}

fn copy_index(source: &mut File, target: &Path) -> io::Result<()> {
    let mut target = File::create(target)?;
    io::copy(source, &mut target)?;
    // Git takes a file for changed when it is not older than the index. With a younger copy it would overlook
    // edits of the same size made in the second in which the original was written.
    target.set_modified(source.metadata()?.modified()?)
}

impl Drop for PrivateIndex {
    fn drop(&mut self) {
        // What cannot be removed now is removed as abandoned by a later call.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A list as commands with `-z --stdin` read it.
pub(crate) fn joined<'a>(paths: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut input = Vec::new();
    for path in paths {
        input.extend_from_slice(path);
        input.push(0);
    }
    input
}

/// Removes directories of processes that are long gone, by the age difference to one that was just made.
fn remove_abandoned(parent: &Path, fresh: &Path) {
    let made = |path: &Path| fs::symlink_metadata(path).and_then(|about| about.modified());
    let (Ok(now), Ok(entries)) = (made(fresh), fs::read_dir(parent)) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let age = made(&path).ok().and_then(|then| now.duration_since(then).ok());
        if age.is_some_and(|age| age > ABANDONED_AFTER) {
            // Another process may be at the same; what stays is met again next time.
            let _ = fs::remove_dir_all(&path);
        }
    }
}
