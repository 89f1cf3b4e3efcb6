//! Everything in a working tree that is not ignored, as entries of an index of our own.
//!
//! Neighbours: `walk` sees to it that git can read the tree, `hints` reads what the user's index records about files, `embedded` and
//! `submodules` deal with repositories inside it, `candidate` restores protected paths in the result. The tree and its user's
//! index stay as they are.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use towline_core::Commit;

use crate::agent_head::Head;
use crate::embedded::{self, Nested, Untracked};
use crate::git::{Git, about_and_path, records, shown};
use crate::hints::{Hints, Listing};
use crate::paths::{from_bytes, is_directory, parents};
use crate::private_index::{PrivateIndex, joined};
use crate::submodules::Submodule;
use crate::threads::finish;
use crate::tree::{Mode, TrackedFile};
use crate::walk::{self, Special};
use crate::{WorkspaceError, words};

/// How many files a warning names.
const NAMED: usize = 8;

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
    /// Where no index can be used, one is made from this commit. Its submodules are known.
    pub(crate) base: &'a Commit,
    pub(crate) nested: Nested,
}

impl Source<'_> {
    /// Takes the snapshot.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, WorkspaceError> {
        let special = walk::prepare_for_git(&self.git.directory, self.special)?;
        match self.fill(self.begin()?, &special, Manner::Strict) {
            // A damaged index, files that came and went while git looked, or some that it does not take: once more, trusting
            // only HEAD.
            Err(WorkspaceError::Git { .. }) => {
                let again = if is_sparse(self.git)? { self.begin()? } else { self.head_index()? };
                self.fill(again, &special, Manner::Lenient)
            }
            other => other,
        }
    }

    /// An index to begin with.
    fn begin(&self) -> Result<PrivateIndex, WorkspaceError> {
        match PrivateIndex::copy_of(&self.git_dir.join("index"), self.git, self.git_dir)? {
            Some(copy) => Ok(copy),
            None => self.head_index(),
        }
    }

    fn head_index(&self) -> Result<PrivateIndex, WorkspaceError> {
        if is_sparse(self.git)? {
            // Without the flags in the old index, the files it leaves out would count as deleted.
            return Err(WorkspaceError::Broken {
                path: self.git.directory.to_path_buf(),
                what: "its index is gone, and it is a sparse checkout; `git reset` there makes a new one"
                    .to_owned(),
            });
        }
        let index = PrivateIndex::empty(self.git, self.git_dir)?;
        index.git.command("read-tree").arg(self.base.as_str()).run()?;
        Ok(index)
    }

    /// Brings an index that starts from an older state up to the working tree.
    fn fill(
        &self,
        index: PrivateIndex,
        special: &[Vec<u8>],
        manner: Manner,
    ) -> Result<Snapshot, WorkspaceError> {
        index.forget(special.iter().map(Vec::as_slice))?;
        let (entries, listing) = std::thread::scope(|scope| {
            let listing =
                scope.spawn(|| self.hints.as_ref().map(|of| Listing::of(self.git, self.git_dir, of)));
            (Entries::of(&index), finish(listing).transpose())
        });
        let mut entries = entries?;
        let hints = listing?.map(|listing| listing.hints(&self.git.directory, &entries.tracked));
        let Hints { tracked, untracked, left_out, unmerged } = hints.unwrap_or_default();
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
        self.clear_blind_spots(&index, &entries)?;
        let Repositories { stray, submodules } = self.repositories(&entries)?;
        index.forget(stray.iter().map(Vec::as_slice))?;
        let special = self.not_ignored(special, &[&stray, &submodules])?;
        warnings.extend(special_warning(&special));
        let apart: BTreeSet<Vec<u8>> =
            [&stray, &submodules, &special].into_iter().flatten().cloned().collect();
        warnings.extend(add_all_but(&index, &apart, manner)?);
        index.add_leniently(tracked.iter().filter(|path| !is_below(path, &[&stray, &submodules])))?;
        if self.nested == Nested::AsFiles {
            for directory in &stray {
                warnings.push(embedded::take_in(self.worktrees, &index, self.git_dir, directory)?);
            }
        }
        let dirty_submodules = self.take_submodules(&index, &submodules)?;
        warnings.extend(dirty_submodules.iter().map(|path| {
            format!("submodule {} has uncommitted changes; they are not taken along", shown(path))
        }));
        Ok(Snapshot { index, dirty_submodules, left_out, warnings })
    }

    /// Records which commits submodules are on. Git would run programs that their own configuration names to find out what is
    /// in them. Gives those with work that is in no commit of theirs.
    fn take_submodules(
        &self,
        index: &PrivateIndex,
        submodules: &BTreeSet<Vec<u8>>,
    ) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
        let mut dirty = BTreeSet::new();
        let mut gitlinks = Vec::new();
        for path in submodules {
            let Some(inner) = Submodule::at(self.git, path) else { continue };
            if let Head::Commit(head) = inner.head() {
                gitlinks.push((path, TrackedFile { mode: Mode::Submodule, id: head.to_string() }));
            }
            if inner.is_dirty(self.git_dir)? {
                dirty.insert(path.clone());
            }
        }
        index.insert(gitlinks.iter().map(|(path, entry)| (path.as_slice(), entry)))?;
        Ok(dirty)
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

    /// Those of the paths that are not ignored, nor in one of these directories.
    fn not_ignored(
        &self,
        paths: &[Vec<u8>],
        apart_from: &[&BTreeSet<Vec<u8>>],
    ) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
        let ignored = embedded::ignored(self.git, paths.iter().map(Vec::as_slice))?;
        let is_meant = |path: &&Vec<u8>| !ignored.contains(*path) && !is_below(path, apart_from);
        Ok(paths.iter().filter(is_meant).cloned().collect())
    }

    /// The repositories inside the working tree. In a checkout, the directory of one that is no submodule would be empty.
    fn repositories(&self, entries: &Entries) -> Result<Repositories, WorkspaceError> {
        let mut found = Repositories::default();
        let place = |path: &[u8]| self.git.directory.join(from_bytes(path));
        // Git does not list a directory whose name is that of a file in the index.
        let in_place_of_files: BTreeSet<Vec<u8>> =
            entries.perhaps_replaced().filter(|path| is_directory(&place(path))).cloned().collect();
        let nested: BTreeSet<&Vec<u8>> = entries.untracked.nested.union(&in_place_of_files).collect();
        if entries.gitlinks.is_empty() && nested.is_empty() {
            return Ok(found);
        }
        let declared = embedded::submodules(self.git, self.base)?;
        for path in entries.gitlinks.iter().filter(|path| is_directory(&place(path))).chain(nested) {
            let is_filled = fs::symlink_metadata(place(path).join(".git")).is_ok();
            if !is_filled && in_place_of_files.contains(path) {
                continue;
            }
            if declared.contains(path) || !is_filled {
                found.submodules.insert(path.clone());
            } else {
                found.stray.insert(path.clone());
            }
        }
        Ok(found)
    }
}

/// Git repositories inside a working tree, by their directories.
#[derive(Debug, Default)]
struct Repositories {
    /// Their files are part of the work.
    stray: BTreeSet<Vec<u8>>,
    /// The work has only the commits that they are on.
    submodules: BTreeSet<Vec<u8>>,
}

/// What is done about files that git does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// They are an error.
    Strict,
    /// They are left out and named.
    Lenient,
}

/// Names FIFOs and the like that the work would have held.
fn special_warning(special: &BTreeSet<Vec<u8>>) -> Option<String> {
    let names: Vec<String> = special.iter().map(|path| shown(path)).collect();
    let warning =
        || format!("FIFOs, sockets and devices are left out of the work: {}", words::listed(&names, NAMED));
    (!names.is_empty()).then(warning)
}

/// What is special about the entries of an index, and what the working tree has besides.
#[derive(Debug, Default)]
struct Entries {
    /// Files that differ from their entries or are gone.
    modified: BTreeSet<Vec<u8>>,
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
            let Some((about, path)) = about_and_path(line) else { continue };
            let tag = about.first().copied().unwrap_or_default();
            if tag.is_ascii_lowercase() {
                entries.assumed.push(path.to_vec());
            }
            if tag.eq_ignore_ascii_case(&b'C') {
                entries.modified.insert(path.to_vec());
            }
            if tag.eq_ignore_ascii_case(&b'S') {
                entries.skipped.push(path.to_vec());
            }
            if !about.ends_with(b" 0") {
                entries.unmerged.insert(path.to_vec());
            }
            if about.get(2..8) == Some(Mode::Submodule.as_git()) {
                entries.gitlinks.insert(path.to_vec());
            }
            entries.tracked.insert(path.to_vec());
        }
        Ok(entries)
    }

    /// Files in whose place something else may be. Git does not look at all of them.
    fn perhaps_replaced(&self) -> impl Iterator<Item = &Vec<u8>> {
        let looked_at = self.modified.iter().chain(&self.assumed).chain(&self.skipped);
        looked_at.filter(|path| !self.gitlinks.contains(*path))
    }

    /// Whether there is nothing to bring up to date: git has looked at every file, and found it as its entry describes.
    fn are_as_in_the_working_tree(&self) -> bool {
        let Self { modified, tracked: _, untracked, assumed, skipped, unmerged, gitlinks } = self;
        modified.is_empty()
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

/// Stages every change of the working tree except at and below the given paths. Gives a warning about files that git does not
/// take.
fn add_all_but(
    index: &PrivateIndex,
    apart: &BTreeSet<Vec<u8>>,
    manner: Manner,
) -> Result<Option<String>, WorkspaceError> {
    let mut patterns = vec![b":/".to_vec()];
    patterns.extend(apart.iter().map(|path| [b":(top,exclude,literal)", path.as_slice()].concat()));
    let lenient = (manner == Manner::Lenient).then_some("--ignore-errors");
    let add = index.git.command("add").args(["--all", "--sparse"]).args(lenient);
    let add = match patterns.len() {
        1 => add,
        _ => add
            .args(["--pathspec-from-file=-", "--pathspec-file-nul"])
            .input(joined(patterns.iter().map(Vec::as_slice))),
    };
    if manner == Manner::Strict {
        add.run()?;
        return Ok(None);
    }
    if add.query()?.is_some() {
        return Ok(None);
    }
    let left =
        index.git.command("ls-files").args(["--others", "--modified", "--exclude-standard", "-z"]).run()?;
    let is_meant =
        |path: &&[u8]| !apart.contains(*path) && !is_below(path, &[apart]) && !path.ends_with(b"/");
    let names: Vec<String> = records(&left).filter(is_meant).map(shown).collect();
    Ok(Some(format!(
        "git does not take these files, so they are left out of the work: {}",
        words::listed(&names, NAMED)
    )))
}

/// Whether a path is in one of the directories.
fn is_below(path: &[u8], directories: &[&BTreeSet<Vec<u8>>]) -> bool {
    parents(path).any(|parent| directories.iter().any(|all| all.contains(parent)))
}

fn is_sparse(git: &Git) -> Result<bool, WorkspaceError> {
    let setting = git.command("config").args(["--type=bool", "--get", "core.sparseCheckout"]).query()?;
    Ok(setting.is_some_and(|value| value.trim_ascii_end() == b"true"))
}
