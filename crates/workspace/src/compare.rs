//! Whether the files of a directory are those of a commit, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use towline_core::Commit;

use crate::directory::{Descent, Pending, Way};
use crate::git::{about_and_path, records, shown};
use crate::git_dir::ObjectFormat;
use crate::paths::{from_bytes, parents};
use crate::settings::{git_bool, value_of};
use crate::submodules::Submodule;
use crate::tree::{Files, Hasher, Mode, TrackedFile, hash};
use crate::{Protect, Repository, WorkspaceError};

/// The system's numbers for a path that leads in a circle, and for one that is too long.
const LOOP: i32 = rustix::io::Errno::LOOP.raw_os_error();
const TOO_LONG: i32 = rustix::io::Errno::NAMETOOLONG.raw_os_error();

/// The unit in which the system counts what a file takes on disk, and the holes that a file may have.
const BLOCK: u64 = 512;
const MOST_HOLES: u64 = 4 * 1024 * 1024 * 1024;

/// What the files of a checkout are to be.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// The files with the ids of the bytes that are to be on disk: those of the commit, but for files that git converts.
    expected: Files,
    /// Files that a sparse checkout leaves out.
    left_out: BTreeSet<Vec<u8>>,
    format: ObjectFormat,
    modes: Modes,
}

/// What of a file's mode and type a file system can hold, as the user's git is configured.
#[derive(Debug, Clone, Copy)]
struct Modes {
    executable: bool,
    symlinks: bool,
}

/// How a file differs from its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is another one; the id of what it holds now, if it holds anything.
    Changed(Option<String>),
    Deleted,
    Added(Option<String>),
}

impl Comparison {
    /// Compares a checkout that was just written with this index, in which nobody has been since. A file that differs is
    /// accepted only if git turns it back into what the commit has: its line endings or its encoding were converted, or it came
    /// from a filter.
    pub(crate) fn after_checkout(
        own: &Repository,
        top: &Path,
        files: Files,
        index: &Path,
    ) -> Result<Self, WorkspaceError> {
        let mut comparison = Self::of(own, files, index)?;
        let differing = comparison.tracked(top, |_| true)?;
        let turned_back = turned_back(own, top, differing.keys())?;
        for (path, found) in differing {
            let Some(entry) = comparison.expected.get_mut(&path) else { continue };
            match (found, turned_back.get(&path)) {
                (Found::Changed(Some(now)), Some(id)) if *id == entry.id && entry.mode != Mode::Symlink => {
                    entry.id = now;
                }
                _ => {
                    return Err(WorkspaceError::Damaged {
                        object: format!("{} ({})", entry.id, shown(&path)),
                        root: own.root().to_path_buf(),
                    });
                }
            }
        }
        Ok(comparison)
    }

    /// Files that are not as in the commit, conversions aside, and files in protected places that are not in it.
    pub(crate) fn differences(
        own: &Repository,
        top: &Path,
        files: Files,
        protect: &Protect,
    ) -> Result<BTreeMap<Vec<u8>, Found>, WorkspaceError> {
        let comparison = Self::of(own, files, &own.index())?;
        let mut found = comparison.tracked_but_for_conversions(own, top, |_| true)?;
        found.extend(comparison.in_submodules(own, top, protect, |_| true)?);
        let added = comparison.added(top, protect, &BTreeSet::new())?;
        // A closed directory of the commit could hide anything, so that nobody may leave one.
        found.extend(added.into_iter().filter(|(_, found)| matches!(found, Found::Added(_))));
        found.extend(comparison.new_directories(top)?.into_iter().map(|path| (path, Found::Added(None))));
        Ok(found)
    }

    /// For a checkout of a commit with this index, in which git has converted nothing.
    pub(crate) fn of(own: &Repository, files: Files, index: &Path) -> Result<Self, WorkspaceError> {
        let is_on = |name: &str| value_of(&own.settings, name).and_then(git_bool) != Some(false);
        let modes = Modes { executable: is_on("core.filemode"), symlinks: is_on("core.symlinks") };
        let left_out = match &own.settings.sparse {
            Some(_) => left_out(own, index)?,
            None => BTreeSet::new(),
        };
        let format =
            files.values().next().map_or_else(Default::default, |entry| ObjectFormat::of_id(&entry.id));
        Ok(Self { expected: files, left_out, format, modes })
    }

    /// The tracked files among those that are asked for that are not as they are to be.
    pub(crate) fn tracked(
        &self,
        top: &Path,
        asked: impl Fn(&[u8]) -> bool,
    ) -> Result<BTreeMap<Vec<u8>, Found>, WorkspaceError> {
        let mut found = BTreeMap::new();
        let mut descent = Descent::below(top);
        for (path, entry) in self.expected.iter().filter(|(path, _)| asked(path)) {
            let difference = self.difference(path, entry, &descent.way_to(path));
            let difference = difference.map_err(WorkspaceError::io("read", &top.join(from_bytes(path))))?;
            found.extend(difference.map(|difference| (path.clone(), difference)));
        }
        Ok(found)
    }

    /// The same without those that git turns back into what the commit has.
    fn tracked_but_for_conversions(
        &self,
        own: &Repository,
        top: &Path,
        asked: impl Fn(&[u8]) -> bool,
    ) -> Result<BTreeMap<Vec<u8>, Found>, WorkspaceError> {
        let mut found = self.tracked(top, asked)?;
        let turned_back = turned_back(own, top, found.keys())?;
        found.retain(|path, _| turned_back.get(path) != self.expected.get(path).map(|entry| &entry.id));
        Ok(found)
    }

    fn difference(
        &self,
        path: &[u8],
        entry: &TrackedFile,
        Way { path: file, leads_through_symlink }: &Way,
    ) -> io::Result<Option<Found>> {
        let about = match fs::symlink_metadata(file) {
            Ok(about) => about,
            Err(error) if is_absence(&error) => {
                let may_be = entry.mode == Mode::Submodule || self.left_out.contains(path);
                return Ok((!may_be).then_some(Found::Deleted));
            }
            Err(error) if is_barred(&error) => return Ok(Some(Found::Changed(None))),
            Err(error) => return Err(error),
        };
        if entry.mode == Mode::Submodule {
            return Ok((!about.is_dir()).then_some(Found::Changed(None)));
        }
        if *leads_through_symlink {
            return Ok(Some(Found::Changed(None)));
        }
        let is_symlink = entry.mode == Mode::Symlink && self.modes.symlinks;
        if about.is_symlink() != is_symlink || !(about.is_file() || is_symlink) {
            return Ok(Some(Found::Changed(None)));
        }
        let Some(now) = id_on_disk(file, &about, self.format)? else {
            return Ok(Some(Found::Changed(None)));
        };
        let is_executable = about.permissions().mode() & 0o100 != 0;
        let same_mode = !self.modes.executable
            || is_symlink
            || entry.mode == Mode::Symlink
            || is_executable == (entry.mode == Mode::Executable);
        Ok((now != entry.id || !same_mode).then_some(Found::Changed(Some(now))))
    }

    /// Files in protected places that are not in the commit, and directories that nobody can look into, each with a slash at
    /// its end. What is below a directory at the top of which the commit has nothing, like installed packages and build output,
    /// does not count, unless the directory itself is a protected place. The directories that are `known` do not count either,
    /// and those of submodules are for [`Self::in_submodules`].
    pub(crate) fn added(
        &self,
        top: &Path,
        protect: &Protect,
        known: &BTreeSet<Vec<u8>>,
    ) -> Result<BTreeMap<Vec<u8>, Found>, WorkspaceError> {
        let is_place = |directory: &Path| protect.covers(directory) || protect.is_named_below(directory);
        self.added_where(top, |path| protect.covers(path), is_place, known)
    }

    /// Files for which `covers` holds that are not in the commit. Directories at the top of which the commit has nothing are
    /// looked into where `is_place` holds.
    fn added_where(
        &self,
        top: &Path,
        covers: impl Fn(&Path) -> bool,
        is_place: impl Fn(&Path) -> bool,
        known: &BTreeSet<Vec<u8>>,
    ) -> Result<BTreeMap<Vec<u8>, Found>, WorkspaceError> {
        let directories = self.directories();
        let mut found = BTreeMap::new();
        let mut pending = vec![Pending::top(top)];
        while let Some(directory) = pending.pop().map(Pending::enter) {
            let inner = directory.path().strip_prefix(top).unwrap_or(Path::new(""));
            let entries = match directory.entries() {
                Err(error) if is_absence(&error) => continue,
                Err(error) if is_barred(&error) => {
                    found.extend([closed(inner, &directories, &error)]);
                    continue;
                }
                entries => entries.map_err(WorkspaceError::io("read", directory.path()))?,
            };
            for (entry, kind) in entries {
                let name = inner.join(&entry);
                let path = name.as_os_str().as_bytes();
                if kind.is_dir() {
                    let is_known = known.contains(&[path, b"/"].concat()) || self.expected.contains_key(path);
                    let is_top = inner.as_os_str().is_empty();
                    if !is_known && (!is_top || directories.contains(path) || is_place(&name)) {
                        pending.push(directory.pending(entry));
                    }
                } else if !self.expected.contains_key(path) && covers(&name) {
                    let file = directory.way_to(&entry);
                    let about = fs::symlink_metadata(&file).ok();
                    let about = about.filter(|about| about.is_file() || about.is_symlink());
                    let id = about.map(|about| id_on_disk(&file, &about, self.format)).transpose();
                    let id = id.map_err(WorkspaceError::io("read", &top.join(&name)))?;
                    found.insert(path.to_vec(), Found::Added(id.flatten()));
                }
            }
        }
        Ok(found)
    }
}

impl Comparison {
    /// What differs in the submodules that are filled, of the files that are asked for, and files in protected places that were
    /// added there. A submodule is to have the files of the commit that ours names.
    pub(crate) fn in_submodules(
        &self,
        own: &Repository,
        top: &Path,
        protect: &Protect,
        asked: impl Fn(&[u8]) -> bool,
    ) -> Result<BTreeMap<Vec<u8>, Found>, WorkspaceError> {
        let mut found = BTreeMap::new();
        let mut pending = vec![(Vec::new(), self.submodules())];
        while let Some((above, submodules)) = pending.pop() {
            for (path, commit) in submodules {
                let path = [above.as_slice(), &path].concat();
                let place = top.join(from_bytes(&path));
                if !place.is_dir() || entries(&place).is_ok_and(|entries| entries.is_empty()) {
                    continue;
                }
                let submodule = Submodule::at(&own.git().with_work_tree(top), &path);
                let files = submodule.map(|submodule| submodule.files_of(&commit)).transpose()?.flatten();
                let Some(files) = files else {
                    if asked(&path) {
                        found.insert(path, Found::Changed(None));
                    }
                    continue;
                };
                let inner = Self { expected: files, left_out: BTreeSet::new(), ..*self };
                let prefix = [path.as_slice(), b"/"].concat();
                let differing = inner.in_submodule(own, &place, &prefix, protect, &asked)?;
                found.extend(differing.into_iter().map(|(name, found)| ([&prefix, &*name].concat(), found)));
                pending.push((prefix, inner.submodules()));
            }
        }
        Ok(found)
    }

    fn submodules(&self) -> Vec<(Vec<u8>, Commit)> {
        let submodules = self.expected.iter().filter(|(_, entry)| entry.mode == Mode::Submodule);
        submodules.map(|(path, entry)| (path.clone(), Commit::new(&entry.id))).collect()
    }

    /// What differs in one, by paths in it.
    fn in_submodule(
        &self,
        own: &Repository,
        place: &Path,
        prefix: &[u8],
        protect: &Protect,
        asked: impl Fn(&[u8]) -> bool,
    ) -> Result<BTreeMap<Vec<u8>, Found>, WorkspaceError> {
        let asked = |name: &[u8]| asked(&[prefix, name].concat());
        let mut differing = self.tracked_but_for_conversions(own, place, asked)?;
        let is_its = |name: &Path| !name.starts_with(".git");
        let covers = |name: &Path| is_its(name) && protect.covers(&from_bytes(prefix).join(name));
        differing.extend(self.added_where(place, covers, is_its, &BTreeSet::new())?);
        Ok(differing)
    }

    /// Whether the commit has a file of this path.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.expected.contains_key(path.as_os_str().as_bytes())
    }

    /// The id that git would give to a file elsewhere.
    pub(crate) fn id_of(&self, file: &Path, about: &fs::Metadata) -> Result<Option<String>, WorkspaceError> {
        id_on_disk(file, about, self.format).map_err(WorkspaceError::io("read", file))
    }

    /// What the commit has, by path.
    pub(crate) fn files(&self) -> &Files {
        &self.expected
    }

    /// Directories of which the commit has something.
    pub(crate) fn directories(&self) -> BTreeSet<&[u8]> {
        let mut found = BTreeSet::new();
        for path in self.expected.keys() {
            // Those above a known one are known.
            let _ = parents(path).rev().find(|parent| !found.insert(*parent));
        }
        found
    }

    /// Directories of which the commit has nothing, below those of which it has something; each with a slash at its end.
    pub(crate) fn new_directories(&self, top: &Path) -> Result<Vec<Vec<u8>>, WorkspaceError> {
        let mut found = Vec::new();
        let directories = self.directories();
        for directory in &directories {
            let place = top.join(from_bytes(directory));
            let entries = match entries(&place) {
                Err(error) if is_barred(&error) => continue,
                entries => entries.map_err(WorkspaceError::io("read", &place))?,
            };
            for (name, is_directory) in entries {
                let path = [*directory, b"/", name.as_bytes()].concat();
                if is_directory && !directories.contains(path.as_slice()) {
                    found.push([path.as_slice(), b"/"].concat());
                }
            }
        }
        Ok(found)
    }
}

/// Whether a directory on the way to a path is a symlink by now.
pub(crate) fn leads_through_symlink(top: &Path, path: &[u8]) -> bool {
    let is_symlink = |parent: &[u8]| {
        fs::symlink_metadata(top.join(from_bytes(parent))).is_ok_and(|about| about.is_symlink())
    };
    parents(path).any(is_symlink)
}

/// The names in a directory, and whether each is a directory. None when there is no such directory.
pub(crate) fn entries(directory: &Path) -> io::Result<Vec<(OsString, bool)>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if is_absence(&error) => return Ok(Vec::new()),
        entries => entries?,
    };
    let named = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name(), entry.file_type()?.is_dir()))
    };
    entries.map(named).collect()
}

/// What a directory that cannot be read counts as: anything could be in it. One whose path is too long cannot be named, so it
/// is the outermost directory on the way of which the commit has nothing.
fn closed(directory: &Path, of_commit: &BTreeSet<&[u8]>, error: &io::Error) -> (Vec<u8>, Found) {
    let path = directory.as_os_str().as_bytes();
    let is_new = |path: &&[u8]| !path.is_empty() && !of_commit.contains(path);
    let named = match error.raw_os_error() {
        Some(TOO_LONG) => parents(path).find(is_new).unwrap_or(path),
        _ => path,
    };
    let found = if is_new(&named) { Found::Added(None) } else { Found::Changed(None) };
    let named = if named.is_empty() { b"." } else { named };
    ([named, b"/"].concat(), found)
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether somebody has closed the way to a file, made it lead in a circle, or made it too long.
pub(crate) fn is_barred(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied || matches!(error.raw_os_error(), Some(LOOP | TOO_LONG))
}

/// The entries that an index has for files that are not there on purpose.
fn left_out(own: &Repository, index: &Path) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
    let git = own.git().with_index(index);
    let listing = git.command("ls-files").args(["-t", "--cached", "-z"]).run()?;
    Ok(records(&listing).filter_map(|line| line.strip_prefix(b"S ")).map(<[u8]>::to_vec).collect())
}

/// The id that git would give to what a file holds, or to where a symlink leads, without any conversion. None when it cannot be
/// read.
fn id_on_disk(file: &Path, about: &fs::Metadata, format: ObjectFormat) -> io::Result<Option<String>> {
    // Whoever makes a file of almost nothing but holes can make reading it last for hours.
    if about.len().saturating_sub(about.blocks() * BLOCK) > MOST_HOLES {
        return Ok(None);
    }
    if about.is_symlink() {
        let target = fs::read_link(file)?;
        return Ok(Some(hash(format, "blob", target.as_os_str().as_bytes())));
    }
    let mut source = match towline_files::open(file) {
        Err(error) if is_barred(&error) => return Ok(None),
        source => source?,
    };
    let mut hasher = Hasher::new(format, "blob", about.len());
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match source.read(&mut buffer)? {
            0 => return Ok(Some(hasher.id())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

/// What git would store of these files, conversions undone.
fn turned_back<'a>(
    own: &Repository,
    top: &Path,
    paths: impl Iterator<Item = &'a Vec<u8>>,
) -> Result<BTreeMap<Vec<u8>, String>, WorkspaceError> {
    let is_file =
        |path: &&Vec<u8>| fs::symlink_metadata(top.join(from_bytes(path))).is_ok_and(|about| about.is_file());
    let paths: Vec<&Vec<u8>> = paths.filter(is_file).collect();
    if paths.is_empty() {
        return Ok(BTreeMap::new());
    }
    let index = crate::private_index::PrivateIndex::empty(&own.git().with_work_tree(top), &own.git_dir)?;
    index.update(&["--add"], paths.iter().map(|path| path.as_slice()))?;
    let listing = index.git.command("ls-files").args(["--stage", "-z"]).run()?;
    let entries = records(&listing).filter_map(|line| {
        let (about, path) = about_and_path(line)?;
        let id = about.split(|byte| *byte == b' ').nth(1)?;
        Some((path.to_vec(), shown(id)))
    });
    Ok(entries.collect())
}
