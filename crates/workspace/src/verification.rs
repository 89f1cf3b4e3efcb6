//! Clean checkouts of a candidate, for the checks to run in, and whether they still are what was checked out.
//!
//! Nothing of the agent's ignored files, and nothing of an earlier run, is in one. Every file is compared with the commit
//! right after it was written, and again whenever somebody asks. Neighbours: `towline-check` runs commands there and decides
//! what a difference means; `tree` proves the commit's files, `private_clone` writes the throw-away `.git`, `warm` adds build
//! output of an earlier checkout where a goal asks for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use towline_core::Commit;

use crate::compare::{Comparison, Found, is_barred};
use crate::copy::CopyPlan;
use crate::git::shown;
use crate::marks::CHECKOUT;
use crate::paths::{from_bytes, is_directory, place_of, remove_tree};
use crate::private_clone::On;
use crate::threads::finish;
use crate::warm::{aside_of, directories_for, forget_warm, leave_warm};
use crate::{Change, Protect, Repository, WorkspaceError};

/// How many places of checkouts are remembered: a goal has one, and perhaps one for its base.
const MOST_PATHS: usize = 4;

/// So much of what was copied is compared with where it came from.
const MOST_COPIED_BYTES: u64 = 256 * 1024 * 1024;
const MOST_COPIED_FILES: usize = 10_000;

/// A clean checkout. It stays on disk until it is removed or made anew.
#[derive(Debug)]
#[must_use]
pub struct Verification {
    path: PathBuf,
    commit: Commit,
    /// What its files are to be.
    pub(crate) comparison: Comparison,
    own: Repository,
    warnings: Vec<String>,
    /// Directories of an earlier checkout, each with a slash at its end.
    warm: BTreeSet<Vec<u8>>,
    /// Directories in which untracked files do not count, each with a slash at its end.
    open: BTreeSet<Vec<u8>>,
}

/// A tracked file that is not as it was checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its path, relative to the top; a directory has a slash at its end.
    pub path: PathBuf,
    /// How the path differs.
    pub kind: Change,
    /// What it holds now, as the id that git would give to it; none when it is gone or no file.
    pub now: Option<String>,
}

/// Which files are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All that are tracked.
    All,
    Protected,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.path.display())
    }
}

impl Verification {
    fn new(own: &Repository, path: PathBuf, commit: &Commit, comparison: Comparison) -> Self {
        Self {
            path,
            commit: commit.clone(),
            comparison,
            own: own.clone(),
            warnings: Vec::new(),
            warm: BTreeSet::new(),
            open: BTreeSet::new(),
        }
    }

    /// The directory to run checks in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The candidate that is checked out.
    pub fn commit(&self) -> &Commit {
        &self.commit
    }

    /// What a person should know about how the checkout was made, like files to copy that are missing.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether it has directories of an earlier checkout.
    pub fn is_warm(&self) -> bool {
        !self.warm.is_empty()
    }

    /// The tracked files in scope that are not as they were checked out, and files that are in a protected place without being
    /// in the commit, but for those in the directories that are `known`, each with a slash at its end.
    pub fn differences(
        &self,
        scope: Scope,
        protect: &Protect,
        known: &BTreeSet<Vec<u8>>,
    ) -> Result<Vec<Difference>, WorkspaceError> {
        let asked = |path: &[u8]| scope == Scope::All || protect.covers(from_bytes(path));
        let known = &(known | &self.warm) | &self.open;
        let mut differences = self.comparison.tracked(&self.path, asked)?;
        differences.extend(self.comparison.added(&self.path, protect, &known)?);
        differences.extend(self.comparison.in_submodules(&self.own, &self.path, protect, asked)?);
        Ok(described(differences))
    }

    /// All differences in a checkout of the base in which only setup has run, with the directories that it made: what setup
    /// changed, by path, with the id of what is there now.
    pub fn setup_changes(
        &self,
        protect: &Protect,
    ) -> Result<BTreeMap<String, Option<String>>, WorkspaceError> {
        let changed = self.differences(Scope::All, protect, &BTreeSet::new())?.into_iter();
        let changed = changed.map(|changed| (shown(changed.path.as_os_str().as_bytes()), changed.now));
        let made = self.comparison.new_directories(&self.path)?.into_iter();
        Ok(changed.chain(made.map(|path| (shown(&path), None))).collect())
    }

    /// The files that were copied into the checkout, with the id of what each holds in the user's checkout now, but for those
    /// that the commit has. None when it is too much to read.
    pub fn copied(
        &self,
        names: &[String],
    ) -> Result<Option<BTreeMap<PathBuf, Option<String>>>, WorkspaceError> {
        let mut found = BTreeMap::new();
        let mut pending = CopyPlan::new(self.own.root(), names)?.items;
        let mut bytes = 0;
        while let Some((name, source)) = pending.pop() {
            let about = fs::symlink_metadata(&source).map_err(WorkspaceError::io("read", &source))?;
            if about.is_dir() {
                let entries = fs::read_dir(&source).map_err(WorkspaceError::io("read", &source))?.flatten();
                pending.extend(entries.map(|entry| (name.join(entry.file_name()), entry.path())));
            } else if (about.is_file() || about.is_symlink()) && !self.comparison.has(&name) {
                bytes += about.len();
                found.insert(name, self.comparison.id_of(&source, &about)?);
            }
            if bytes > MOST_COPIED_BYTES || found.len() + pending.len() > MOST_COPIED_FILES {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    /// Removes what was found to be added. Gives what stays because somebody has closed the way to it.
    pub fn remove_added(&self, added: Vec<Difference>) -> Result<Vec<Difference>, WorkspaceError> {
        let mut left = Vec::new();
        for difference in added {
            let path = self.path.join(&difference.path);
            match towline_files::remove_tree(&path) {
                Ok(()) => {}
                Err(error) if is_barred(&error) => left.push(difference),
                Err(error) => return Err(WorkspaceError::io("remove", &path)(error)),
            }
        }
        Ok(left)
    }

    /// The same checkout, in which untracked files do not count in those of the directories `warm` that can be left for a next
    /// verdict. A clean checkout and a warm one are then compared alike, and build output is there to be left.
    pub fn open_to_builds(self, warm: &[String], copy: &[String]) -> Self {
        let usable = directories_for(warm, copy, self.comparison.files());
        let open = usable.iter().map(|name| [name.as_os_str().as_bytes(), b"/"].concat()).collect();
        Self { open, ..self }
    }

    /// Leaves the checkout for the next verdict, as it is.
    pub fn keep_warm(&self) -> Result<(), WorkspaceError> {
        leave_warm(&self.own, &self.path, &self.commit)
    }

    /// The same checkout, into which these directories of an earlier one were moved.
    pub(crate) fn with_warm(self, warm: BTreeSet<Vec<u8>>) -> Self {
        Self { warm, ..self }
    }

    /// Removes the checkout.
    pub fn remove(&self) -> Result<(), WorkspaceError> {
        remove_tree(&self.path)
    }
}

fn described(found: BTreeMap<Vec<u8>, Found>) -> Vec<Difference> {
    let describe = |(path, found): (Vec<u8>, Found)| {
        let (kind, now) = match found {
            Found::Changed(now) => (Change::Changed, now),
            Found::Deleted => (Change::Deleted, None),
            Found::Added(now) => (Change::Added, now),
        };
        Difference { path: from_bytes(&path).to_path_buf(), kind, now }
    };
    found.into_iter().map(describe).collect()
}

/// Makes a fresh checkout of the candidate at `path`, in the place of what an earlier call left there, compares every file
/// with the commit, and copies the named files into it from the user's checkout. Submodules are left empty; a setup
/// command can fill them. The repository is our own for the goal.
pub fn verification(
    own: &Repository,
    path: &Path,
    candidate: &Commit,
    copy: &[String],
) -> Result<Verification, WorkspaceError> {
    let path = place_of(path);
    if is_ours(own, &path)? {
        forget_warm(own, &path)?;
        remove_tree(&aside_of(&path))?;
    }
    make(own, path, candidate, copy)
}

/// Makes the checkout, whatever lies beside it.
pub(crate) fn make(
    own: &Repository,
    path: PathBuf,
    candidate: &Commit,
    copy: &[String],
) -> Result<Verification, WorkspaceError> {
    let files = CopyPlan::new(own.root(), copy)?;
    own.require(candidate)?;
    make_free(own, &path)?;
    let made = fill(own, &path, candidate, &files);
    if made.is_err() {
        // What cannot be removed now is removed by the next call.
        let _ = remove_tree(&path);
    }
    let (comparison, warnings) = made?;
    Ok(Verification { warnings, ..Verification::new(own, path, candidate, comparison) })
}

/// The checkout of the candidate that an interrupted verdict left at `path`, as it is. What is to be in it is known from the commit
/// alone, so a file that git converted counts as changed. None when there is no such checkout, or when a sparse one was made.
pub fn reopened_verification(
    own: &Repository,
    path: &Path,
    candidate: &Commit,
) -> Result<Option<Verification>, WorkspaceError> {
    let path = place_of(path);
    if !is_directory(&path) || !is_ours(own, &path)? || own.settings.sparse.is_some() {
        return Ok(None);
    }
    let comparison = Comparison::of(own, (*own.files_of(candidate)?).clone(), &own.index())?;
    Ok(Some(Verification::new(own, path, candidate, comparison)))
}

/// Whether one of the last checkouts was made at this path.
fn is_ours(own: &Repository, path: &Path) -> Result<bool, WorkspaceError> {
    let note = own.note(CHECKOUT)?.unwrap_or_default();
    Ok(note.split(|byte| *byte == 0).any(|last| last == path.as_os_str().as_bytes()))
}

/// Records that a checkout was made at this path.
fn record(own: &Repository, path: &Path) -> Result<(), WorkspaceError> {
    let note = own.note(CHECKOUT)?.unwrap_or_default();
    let path = path.as_os_str().as_bytes();
    let others = note.split(|byte| *byte == 0).filter(|last| !last.is_empty() && *last != path);
    let last: Vec<&[u8]> = std::iter::once(path).chain(others).take(MOST_PATHS).collect();
    own.write_note(CHECKOUT, &last.join(&0))
}

/// Makes an empty directory in the place of an earlier checkout. Anything else that is there is refused.
fn make_free(own: &Repository, path: &Path) -> Result<(), WorkspaceError> {
    if is_ours(own, path)? {
        remove_tree(path)?;
    }
    let is_free = match fs::symlink_metadata(path) {
        Ok(about) => about.is_dir() && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if !is_free {
        return Err(WorkspaceError::PathTaken {
            path: path.to_path_buf(),
            what: "it exists and is not a clean checkout of this goal".to_owned(),
        });
    }
    record(own, path)?;
    fs::create_dir_all(path).map_err(WorkspaceError::io("create", path))
}

fn fill(
    own: &Repository,
    path: &Path,
    candidate: &Commit,
    files: &CopyPlan,
) -> Result<(Comparison, Vec<String>), WorkspaceError> {
    let index = own.git_dir.join("verification-index");
    let (lent, tree, written) = std::thread::scope(|scope| {
        let lent = scope.spawn(|| own.lender().map(Repository::lend_to_checkout).transpose());
        let tree = scope.spawn(|| own.files_of(candidate));
        let written = own.check_out(candidate, path, &index);
        (finish(lent), finish(tree), written)
    });
    written?;
    let comparison = Comparison::after_checkout(own, path, (*tree?).clone(), &index)?;
    if let Some(lent) = lent? {
        let borrowed = [Some(own.objects()), own.lender().map(Repository::objects)];
        let borrowed = borrowed.into_iter().flatten().collect();
        lent.write(&path.join(".git"), &On::Commit(candidate), borrowed, &own.settings, &index)?;
    }
    remove_tree(&index)?;
    let warnings = files.carry_out(path)?;
    Ok((comparison, warnings))
}
