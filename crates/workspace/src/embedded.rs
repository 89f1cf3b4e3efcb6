//! Git repositories inside a working tree: submodules, clones, `git init` in a subdirectory, worktrees.
//!
//! Git would record such a directory as a bare commit id, or refuse it, and its files would be missing from
//! every checkout. So the files of a stray repository are taken in as plain files; declared submodules stay
//! what they are; other worktrees of the same repository are left out. Whatever happens is reported in a warning.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use towline_core::Commit;

use crate::git::{Git, records, shown};
use crate::hints::Listing;
use crate::paths::from_bytes;
use crate::private_index::{PrivateIndex, joined};
use crate::raw_diff::tree_entries;
use crate::tree::Mode;
use crate::{WorkspaceError, walk};

/// The most that is read of a file that declares submodules.
const LONGEST_DECLARATIONS: u64 = 16 * 1024 * 1024;

/// What a snapshot does with stray repositories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nested {
    /// Their files become plain files of the snapshot.
    AsFiles,
    /// They are no part of it.
    LeftOut,
}

/// What is in a working tree but in no index, ignored paths aside.
#[derive(Debug, Default)]
pub(crate) struct Untracked {
    /// Files and symlinks.
    pub(crate) files: BTreeSet<Vec<u8>>,
    /// Directories that are git repositories, without a slash at the end.
    pub(crate) nested: BTreeSet<Vec<u8>>,
}

/// Lists what git would have to add.
pub(crate) fn untracked(git: &Git) -> Result<Untracked, WorkspaceError> {
    let listing = git.command("ls-files").args(["--others", "--exclude-standard", "-z"]).run()?;
    let mut found = Untracked::default();
    records(&listing).for_each(|path| found.insert(path));
    Ok(found)
}

impl Untracked {
    /// Takes in a path as git lists it.
    pub(crate) fn insert(&mut self, path: &[u8]) {
        match path.strip_suffix(b"/") {
            Some(directory) => self.nested.insert(directory.to_vec()),
            None => self.files.insert(path.to_vec()),
        };
    }
}

/// The submodules that `.gitmodules` declares or that the base already had.
pub(crate) fn submodules(git: &Git, base: &Commit) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
    let mut declared = BTreeSet::new();
    let file = git.directory.join(".gitmodules");
    if fs::symlink_metadata(&file).is_ok_and(|about| about.is_file() && about.len() <= LONGEST_DECLARATIONS) {
        let listing = git
            .command("config")
            .args(["-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$"])
            .query()?;
        // Each record is the key, a newline and the value.
        for record in records(&listing.unwrap_or_default()) {
            declared.extend(record.split(|byte| *byte == b'\n').nth(1).map(<[u8]>::to_vec));
        }
    }
    declared.extend(pinned(git, base)?.into_keys());
    Ok(declared)
}

/// The submodules of a commit, each with the commit that it is to be on.
pub(crate) fn pinned(git: &Git, commit: &Commit) -> Result<BTreeMap<Vec<u8>, String>, WorkspaceError> {
    let listing = git.command("ls-tree").args(["-r", "-z", commit.as_str()]).run()?;
    let submodules = tree_entries(&listing).filter(|(_, entry)| entry.mode == Mode::Submodule);
    Ok(submodules.map(|(path, entry)| (path, entry.id)).collect())
}

/// Takes the files of a stray repository into an index, and returns a warning.
pub(crate) fn take_in(
    worktrees: &Path,
    index: &PrivateIndex,
    git_dir: &Path,
    directory: &[u8],
) -> Result<String, WorkspaceError> {
    let name = shown(directory);
    if is_recorded_in(worktrees, &index.git.directory.join(from_bytes(directory))) {
        return Ok(format!("{name} is another worktree of this repository; its files are not taken along"));
    }
    if let Some(tree) = tree_of_files(worktrees, &index.git, git_dir, directory)? {
        index.graft(directory, &tree)?;
    }
    Ok(format!(
        "{name} is a git repository of its own; its files are taken along as plain files, its history is not"
    ))
}

/// A tree of what is in the directory and not ignored, by its own rules or by those of the working tree `top`.
fn tree_of_files(
    worktrees: &Path,
    top: &Git,
    git_dir: &Path,
    directory: &[u8],
) -> Result<Option<String>, WorkspaceError> {
    let place = top.directory.join(from_bytes(directory));
    let index = PrivateIndex::empty(&top.with_work_tree(&place), git_dir)?;
    let found = untracked(&index.git)?;
    let files = not_ignored(top, directory, found.files)?;
    let nested = not_ignored(top, directory, found.nested)?;
    let tracked = tracked_inside(&index.git, git_dir)?;
    if files.is_empty() && nested.is_empty() && tracked.is_empty() {
        return Ok(None);
    }
    index.add_leniently(files.union(&tracked))?;
    for inner in &nested {
        if is_recorded_in(worktrees, &place.join(from_bytes(inner))) {
            continue;
        }
        if let Some(tree) = tree_of_files(worktrees, top, git_dir, &[directory, b"/", inner].concat())? {
            index.graft(inner, &tree)?;
        }
    }
    index.write_tree().map(Some)
}

/// Drops the paths below `directory` that the rules of the working tree `top` ignore.
fn not_ignored(
    top: &Git,
    directory: &[u8],
    paths: BTreeSet<Vec<u8>>,
) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
    let full = |path: &Vec<u8>| [directory, b"/", path].concat();
    let all: Vec<Vec<u8>> = paths.iter().map(full).collect();
    let ignored = ignored(top, all.iter().map(Vec::as_slice))?;
    Ok(paths.into_iter().filter(|path| !ignored.contains(&full(path))).collect())
}

/// Those of the paths that ignore rules match. A directory is given with a slash at its end.
pub(crate) fn ignored<'a>(
    git: &Git,
    paths: impl IntoIterator<Item = &'a [u8]>,
) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
    let input = joined(paths);
    if input.is_empty() {
        return Ok(BTreeSet::new());
    }
    let matched = git.command("check-ignore").args(["--no-index", "-z", "--stdin"]).input(input).query()?;
    Ok(records(&matched.unwrap_or_default()).map(<[u8]>::to_vec).collect())
}

/// Files that the inner repository tracks although rules ignore them. A damaged one tracks nothing.
fn tracked_inside(git: &Git, git_dir: &Path) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
    match walk::directories_of(&git.directory.join(".git")).first() {
        Some(inner) => {
            let listing = Listing::of(git, git_dir, &inner.join("index"))?;
            Ok(listing.hints(&git.directory, &HashSet::new()).tracked)
        }
        None => Ok(BTreeSet::new()),
    }
}

/// Whether the directory is another worktree of the same repository, by what its `.git` file points to.
fn is_recorded_in(worktrees: &Path, directory: &Path) -> bool {
    let inner = walk::directories_of(&directory.join(".git"));
    match (inner.first().map(|inner| inner.canonicalize()), worktrees.canonicalize()) {
        (Some(Ok(inner)), Ok(records)) => inner.starts_with(records),
        _ => false,
    }
}
