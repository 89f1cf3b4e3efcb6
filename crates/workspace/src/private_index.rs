//! Index files of our own: everything in a working tree that is not ignored, as a git tree, without touching
//! the index that belongs to the tree's user.
//!
//! Neighbours: `embedded` deals with repositories inside the working tree, `candidate` restores protected
//! paths in the result. Nothing here moves a HEAD or a branch, or writes to the working tree.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use towline_core::Commit;

use crate::embedded::{self, Nested, Untracked};
use crate::git::{Git, records, shown};
use crate::hints::Hints;
use crate::raw_diff::Entry;
use crate::walk::{self, Special};
use crate::{WorkspaceError, submodules, words};

/// Private index directories that a killed process left behind are removed after this time.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// How many special files a warning names.
const NAMED: usize = 8;

/// More than the index of any repository.
const LARGEST: u64 = 2 * 1024 * 1024 * 1024;

/// Mode of an entry that stands for a commit of another repository.
const GITLINK: &[u8] = b"160000";

/// An index file that nobody else uses; it is gone when the value is.
#[derive(Debug)]
pub(crate) struct PrivateIndex {
    git: Git,
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

    /// Git with this index.
    pub(crate) fn git(&self) -> &Git {
        &self.git
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
        entries: impl IntoIterator<Item = (&'a [u8], &'a Entry)>,
    ) -> Result<(), WorkspaceError> {
        let line = |(path, entry): (&[u8], &Entry)| {
            [&entry.mode, &b" "[..], &entry.hash, b"\t", path, b"\0"].concat()
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

    /// Adds files by names that somebody else has chosen. Whether git takes them.
    pub(crate) fn try_add<'a>(
        &self,
        paths: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<bool, WorkspaceError> {
        match self.update(&["--add"], paths) {
            Ok(()) => Ok(true),
            Err(WorkspaceError::Git { .. }) => Ok(false),
            Err(error) => Err(error),
        }
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

/// Everything in a working tree that is not ignored.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The index that holds it.
    pub(crate) index: PrivateIndex,
    /// Submodules with work inside that is in no commit of theirs; the snapshot cannot hold it.
    pub(crate) dirty_submodules: BTreeSet<Vec<u8>>,
    /// Files that are missing because their owner wants a sparse checkout. The snapshot does not have them.
    pub(crate) left_out: BTreeSet<Vec<u8>>,
    /// What a person should know about how it was taken.
    pub(crate) warnings: Vec<String>,
}

/// What a snapshot is taken of.
pub(crate) struct Source<'a> {
    /// Git in the working tree.
    pub(crate) git: &'a Git,
    /// The git directory that has the index.
    pub(crate) git_dir: &'a Path,
    /// The index of whoever works there, if it is another one.
    pub(crate) hints: Option<PathBuf>,
    /// Where git has its records of other worktrees of the repository.
    pub(crate) worktrees: &'a Path,
    /// What to do about special files in places that git reads.
    pub(crate) special: Special,
    /// What is in it when no index says so. It is rarely asked for.
    pub(crate) head: &'a dyn Fn() -> Result<Commit, WorkspaceError>,
    pub(crate) base: &'a Commit,
    pub(crate) nested: Nested,
}

impl Source<'_> {
    /// Takes the snapshot.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, WorkspaceError> {
        let special = walk::prepare_for_git(self.git.directory(), self.special)?;
        let first = match PrivateIndex::copy_of(&self.git_dir.join("index"), self.git, self.git_dir)? {
            Some(copy) => self.fill(copy, &special),
            None => self.fill(self.head_index()?, &special),
        };
        match first {
            // A damaged index, or files that came and went while git looked: once more, trusting only HEAD.
            Err(WorkspaceError::Git { .. }) if !is_sparse(self.git)? => {
                self.fill(self.head_index()?, &special)
            }
            other => other,
        }
    }

    fn head_index(&self) -> Result<PrivateIndex, WorkspaceError> {
        if is_sparse(self.git)? {
            // Without the flags in the old index, the files it leaves out would count as deleted.
            return Err(WorkspaceError::Broken {
                path: self.git.directory().to_path_buf(),
                what: "its index is gone, and it is a sparse checkout; `git reset` there makes a new one"
                    .to_owned(),
            });
        }
        let index = PrivateIndex::empty(self.git, self.git_dir)?;
        index.git.command("read-tree").arg((self.head)()?.as_str()).run()?;
        Ok(index)
    }

    /// Brings an index that starts from an older state up to the working tree.
    fn fill(&self, index: PrivateIndex, special: &[Vec<u8>]) -> Result<Snapshot, WorkspaceError> {
        index.forget(special.iter().map(Vec::as_slice))?;
        let mut entries = Entries::of(&index)?;
        let Hints { tracked, untracked, left_out, unmerged } = self.hints(&entries)?;
        let mut dropped = embedded::ignored(self.git, untracked.iter().map(Vec::as_slice))?;
        dropped.extend(untracked.intersection(&entries.gitlinks).cloned());
        if !dropped.is_empty() {
            index.forget(dropped.iter().map(Vec::as_slice))?;
            entries = Entries::of(&index)?;
        }
        let is_clean = special.is_empty() && tracked.is_empty() && dropped.is_empty();
        if is_clean && entries.are_as_in_the_working_tree() {
            let (dirty_submodules, warnings) = (BTreeSet::new(), Vec::new());
            return Ok(Snapshot { index, dirty_submodules, left_out, warnings });
        }
        let mut warnings = conflict_warning(&entries.unmerged.union(&unmerged).collect());
        warnings.extend(self.special_warning(special)?);
        self.clear_blind_spots(&index, &entries)?;

        let mut inner = self.undeclared(&entries)?;
        index.forget(inner.iter().map(Vec::as_slice))?;
        inner.extend(entries.untracked.nested.iter().cloned());
        add_all_but(index.git(), inner.iter().chain(special))?;
        let hinted = tracked.iter().map(Vec::as_slice).filter(|path| !is_below(path, &inner));
        if !index.try_add(hinted)? {
            warnings
                .push("files that are staged although they are ignored are left out of the work".to_owned());
        }
        if self.nested == Nested::AsFiles {
            for directory in &inner {
                warnings.push(embedded::take_in(self.worktrees, &index, self.git_dir, directory)?);
            }
        }
        let mut dirty_submodules = BTreeSet::new();
        for path in entries.gitlinks.difference(&inner) {
            if submodules::is_dirty(self.git, self.git_dir, path)? {
                let path_shown = shown(path);
                warnings.push(format!(
                    "submodule {path_shown} has uncommitted changes; they are not taken along"
                ));
                dirty_submodules.insert(path.clone());
            }
        }
        Ok(Snapshot { index, dirty_submodules, left_out, warnings })
    }

    /// What whoever works there says about files that the entries do not have.
    fn hints(&self, entries: &Entries) -> Result<Hints, WorkspaceError> {
        match &self.hints {
            Some(index) => Hints::from_index(self.git, self.git_dir, index, &entries.tracked),
            None => Ok(Hints::default()),
        }
    }

    /// Entries can be flagged so that git does not look at their files. We always look, except at files that
    /// a sparse checkout has left out.
    fn clear_blind_spots(&self, index: &PrivateIndex, entries: &Entries) -> Result<(), WorkspaceError> {
        index.update(&["--no-assume-unchanged"], entries.assumed.iter().map(Vec::as_slice))?;
        if !entries.skipped.is_empty() && !is_sparse(self.git)? {
            index.update(&["--no-skip-worktree"], entries.skipped.iter().map(Vec::as_slice))?;
        }
        Ok(())
    }

    /// FIFOs and the like that the work would have held. What git ignores anyway is not worth a word.
    fn special_warning(&self, special: &[Vec<u8>]) -> Result<Vec<String>, WorkspaceError> {
        let ignored = embedded::ignored(self.git, special.iter().map(Vec::as_slice))?;
        let names: Vec<String> =
            special.iter().filter(|path| !ignored.contains(*path)).map(|path| shown(path)).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let names = words::listed(&names, NAMED);
        Ok(vec![format!("FIFOs, sockets and devices are left out of the work: {names}")])
    }

    /// Commits of other repositories that are no submodules: in a checkout their directories would be empty.
    fn undeclared(&self, entries: &Entries) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
        let mut links = entries.gitlinks.clone();
        links.retain(|path| {
            let directory = self.git.directory().join(crate::paths::from_bytes(path));
            fs::symlink_metadata(directory.join(".git")).is_ok()
        });
        if !links.is_empty() {
            let declared = embedded::submodules(self.git, self.base)?;
            links.retain(|path| !declared.contains(path));
        }
        Ok(links)
    }
}

/// What is special about the entries of an index, and what the working tree has besides.
#[derive(Debug, Default)]
struct Entries {
    /// Whether files differ from their entries or are gone.
    modified: bool,
    tracked: HashSet<Vec<u8>>,
    untracked: Untracked,
    assumed: Vec<Vec<u8>>,
    skipped: Vec<Vec<u8>>,
    unmerged: BTreeSet<Vec<u8>>,
    gitlinks: BTreeSet<Vec<u8>>,
}

impl Entries {
    /// Reads lines like `H 100644 <hash> 0<tab>path`, the same with a `C` for what is modified, and `? path` for what is
    /// in no entry.
    fn of(index: &PrivateIndex) -> Result<Self, WorkspaceError> {
        let everything = ["-v", "--stage", "--modified", "--others", "--exclude-standard", "-z"];
        let listing = index.git.command("ls-files").args(everything).run()?;
        let mut entries = Self::default();
        for line in records(&listing) {
            if let Some(path) = line.strip_prefix(b"? ") {
                entries.untracked.insert(path);
                continue;
            }
            let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
            let (about, path) = (&line[..tab], &line[tab + 1..]);
            let tag = about.first().copied().unwrap_or_default();
            if tag.is_ascii_lowercase() {
                entries.assumed.push(path.to_vec());
            }
            entries.modified |= tag.eq_ignore_ascii_case(&b'C');
            if tag.eq_ignore_ascii_case(&b'S') {
                entries.skipped.push(path.to_vec());
            }
            if !about.ends_with(b" 0") {
                entries.unmerged.insert(path.to_vec());
            }
            if about.get(2..8) == Some(GITLINK) {
                entries.gitlinks.insert(path.to_vec());
            }
            entries.tracked.insert(path.to_vec());
        }
        Ok(entries)
    }

    /// Whether there is nothing to bring up to date: git has looked at every file, and found it as its entry says.
    fn are_as_in_the_working_tree(&self) -> bool {
        let Self { modified, tracked: _, untracked, assumed, skipped, unmerged, gitlinks } = self;
        !modified
            && untracked.files.is_empty()
            && untracked.nested.is_empty()
            && assumed.is_empty()
            && skipped.is_empty()
            && unmerged.is_empty()
            && gitlinks.is_empty()
    }
}

fn conflict_warning(unmerged: &BTreeSet<&Vec<u8>>) -> Vec<String> {
    if unmerged.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = unmerged.iter().map(|path| shown(path)).collect();
    vec![format!(
        "unfinished merge: {} taken as in the working tree, conflict marks and all",
        names.join(", ")
    )]
}

/// Stages every change of the working tree except at and below the given paths.
fn add_all_but<'a>(git: &Git, left_out: impl Iterator<Item = &'a Vec<u8>>) -> Result<(), WorkspaceError> {
    let mut patterns = vec![b":/".to_vec()];
    patterns.extend(left_out.map(|path| [b":(top,exclude,literal)", path.as_slice()].concat()));
    let add = git.command("add").args(["--all", "--sparse"]);
    if patterns.len() == 1 {
        add.run()?;
        return Ok(());
    }
    add.args(["--pathspec-from-file=-", "--pathspec-file-nul"])
        .input(joined(patterns.iter().map(Vec::as_slice)))
        .run()?;
    Ok(())
}

/// Whether a path is in one of the directories.
fn is_below(path: &[u8], directories: &BTreeSet<Vec<u8>>) -> bool {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.map(|end| &path[..end]).any(|parent| directories.contains(parent))
}

fn is_sparse(git: &Git) -> Result<bool, WorkspaceError> {
    let setting = git.command("config").args(["--type=bool", "--get", "core.sparseCheckout"]).query()?;
    Ok(setting.is_some_and(|value| value.trim_ascii_end() == b"true"))
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
