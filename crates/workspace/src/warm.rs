//! Checkouts that continue build output of the one before: everything is written anew as in a clean checkout, the warm
//! directories of the earlier one are moved into it, and files that are the same keep their times, so that build tools
//! find nothing to do for them.
//!
//! What is in a warm directory comes from code that the agent wrote, so a verdict that used one proves nothing by itself;
//! `towline-check` confirms it in a clean checkout. Whatever is unclear here (a symlink in the place of a directory, a cut-off
//! run, a submodule) ends in a clean checkout. Neighbours: `verification` makes the checkout, `compare` knows its files.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
use towline_core::Commit;

use crate::compare::{Comparison, entries, leads_through_symlink};
use crate::marks::WARM;
use crate::paths::{from_bytes, is_directory, parents, place_of, remove_tree};
use crate::tree::{Files, Mode};
use crate::verification::make;
use crate::{Repository, Verification, WorkspaceError};

/// Where an earlier checkout is while a new one takes its place.
pub fn aside_of(path: &Path) -> PathBuf {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".warm");
    aside.into()
}

/// Like [`crate::verification`], with the directories `warm` of the checkout that [`Verification::keep_warm`] left here. If
/// there is none, or it cannot be used, the checkout is a clean one.
pub fn warm_verification(
    own: &Repository,
    path: &Path,
    candidate: &Commit,
    copy: &[String],
    warm: &[String],
) -> Result<Verification, WorkspaceError> {
    let place = place_of(path);
    let Some(earlier) = Earlier::take(own, &place)? else {
        return crate::verification(own, path, candidate, copy);
    };
    let made = make(own, place.clone(), candidate, copy)?;
    let usable = directories_for(warm, copy, made.comparison.files());
    let moved = earlier.move_into(&place, &made.comparison, &usable);
    remove_tree(&earlier.place)?;
    match moved {
        Ok(moved) => Ok(made.with_warm(moved)),
        Err(_) => crate::verification(own, path, candidate, copy),
    }
}

/// Those of the directories `warm` that can be taken over into a checkout of these files.
pub(crate) fn directories_for(warm: &[String], copy: &[String], files: &Files) -> Vec<PathBuf> {
    let copy: Vec<PathBuf> = copy.iter().map(|path| plain(path)).collect();
    let warm = warm.iter().map(|path| plain(path));
    warm.filter(|name| may_be_warm(name, &copy) && is_free_in(files, name)).collect()
}

/// Whether a commit has neither a file in the place of a directory nor a submodule in it.
fn is_free_in(files: &Files, name: &Path) -> bool {
    let path = name.as_os_str().as_bytes();
    let is_of_commit = parents(path).chain([path]).any(|above| files.contains_key(above));
    !is_of_commit && below(files, path).iter().all(|file| files[*file].mode != Mode::Submodule)
}

/// Whether a directory can be taken over: it is inside of the checkout, and nothing of the user's is copied there.
fn may_be_warm(name: &Path, copy: &[PathBuf]) -> bool {
    let is_inside = name.components().all(|part| matches!(part, Component::Normal(part) if part != ".git"));
    let is_apart = |copied: &PathBuf| !name.starts_with(copied) && !copied.starts_with(name);
    is_inside && name.components().next().is_some() && copy.iter().all(is_apart)
}

/// A path without `.` in it.
fn plain(path: &str) -> PathBuf {
    Path::new(path).components().filter(|part| *part != Component::CurDir).collect()
}

/// Records that the checkout at `path` is left for the next verdict.
pub(crate) fn leave_warm(own: &Repository, path: &Path, commit: &Commit) -> Result<(), WorkspaceError> {
    let text = [commit.as_str().as_bytes(), b"\0", path.as_os_str().as_bytes()].concat();
    own.write_note(WARM, &text)
}

/// The commit of the checkout that is left at `path`.
fn left_at(own: &Repository, path: &Path) -> Result<Option<Commit>, WorkspaceError> {
    let note = own.note(WARM)?.unwrap_or_default();
    let [commit, place] = note.splitn(2, |byte| *byte == 0).collect::<Vec<_>>()[..] else { return Ok(None) };
    let is_id = !commit.is_empty() && commit.iter().all(u8::is_ascii_hexdigit);
    let is_here = place == path.as_os_str().as_bytes();
    Ok((is_id && is_here).then(|| Commit::new(String::from_utf8_lossy(commit))))
}

/// From now on nothing is left at `path` for the next verdict.
pub(crate) fn forget_warm(own: &Repository, path: &Path) -> Result<(), WorkspaceError> {
    if left_at(own, path)?.is_some() { own.remove_note(WARM) } else { Ok(()) }
}

/// The checkout of an earlier verdict, moved aside.
struct Earlier {
    place: PathBuf,
    /// What was tracked in it.
    files: Arc<Files>,
}

/// A directory as it was in the earlier checkout.
struct Listed {
    directory: Vec<u8>,
    names: BTreeSet<OsString>,
    about: fs::Metadata,
}

impl Earlier {
    /// Moves the checkout that was left at `path` aside. It is used once at most: whoever is cut off starts anew.
    fn take(own: &Repository, path: &Path) -> Result<Option<Self>, WorkspaceError> {
        let Some(commit) = left_at(own, path)? else { return Ok(None) };
        forget_warm(own, path)?;
        if !is_directory(path) {
            return Ok(None);
        }
        let Ok(files) = own.files_of(&commit) else { return Ok(None) };
        let place = aside_of(path);
        remove_tree(&place)?;
        Ok(fs::rename(path, &place).is_ok().then_some(Self { place, files }))
    }

    /// Moves the warm directories into the new checkout at `top`. Gives those that were moved, each with a slash at its end.
    fn move_into(
        &self,
        top: &Path,
        comparison: &Comparison,
        warm: &[PathBuf],
    ) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
        self.keep_times(top, comparison)?;
        let listed = self.list(comparison);
        let mut moved = BTreeSet::new();
        for name in warm {
            if self.move_directory(top, comparison.files(), name)? {
                moved.insert([name.as_os_str().as_bytes(), b"/"].concat());
            }
        }
        for Listed { directory, names, about } in listed {
            let place = top.join(from_bytes(&directory));
            if names_in(&place).is_ok_and(|now| now == names) {
                set_time(&place, &about)?;
            }
        }
        let is_below = |path: &[u8]| moved.iter().any(|directory| path.starts_with(directory));
        match comparison.tracked(top, is_below)?.into_keys().next() {
            None => Ok(moved),
            Some(path) => Err(WorkspaceError::Broken {
                path: top.join(from_bytes(&path)),
                what: "it is not as in the commit".to_owned(),
            }),
        }
    }

    /// Gives every file that is the same as before the time that it had.
    fn keep_times(&self, top: &Path, comparison: &Comparison) -> Result<(), WorkspaceError> {
        let differing = comparison.tracked(&self.place, |_| true)?;
        for (path, entry) in comparison.files() {
            if entry.mode == Mode::Submodule || differing.contains_key(path) {
                continue;
            }
            // A sparse checkout has no such file.
            let Ok(about) = fs::symlink_metadata(self.place.join(from_bytes(path))) else { continue };
            set_time(&top.join(from_bytes(path)), &about)?;
        }
        Ok(())
    }

    /// The directories of the commit, as they are in the earlier checkout. Tools also look at the times of directories.
    fn list(&self, comparison: &Comparison) -> Vec<Listed> {
        let listed = |directory: &[u8]| {
            let place = self.place.join(from_bytes(directory));
            let about = fs::symlink_metadata(&place).ok().filter(fs::Metadata::is_dir)?;
            let directory = directory.to_vec();
            Some(Listed { directory, names: names_in(&place).ok()?, about })
        };
        comparison.directories().into_iter().filter_map(listed).collect()
    }

    /// Moves one directory, with what the commit has in it. Whether it could be.
    fn move_directory(&self, top: &Path, files: &Files, name: &Path) -> Result<bool, WorkspaceError> {
        let path = name.as_os_str().as_bytes();
        let (before, now) = (self.place.join(name), top.join(name));
        let is_plain = is_directory(&before)
            && !leads_through_symlink(&self.place, path)
            && !leads_through_symlink(top, path)
            && now.parent().is_some_and(is_directory);
        if !is_plain {
            return Ok(false);
        }
        let tracked = below(files, path);
        let is_untracked = tracked.is_empty();
        let failed = |error| WorkspaceError::io("move", &before)(error);
        for file in below(&self.files, path) {
            towline_files::remove_below(&self.place, from_bytes(file)).map_err(failed)?;
        }
        for file in tracked {
            self.lay(top, from_bytes(file)).map_err(failed)?;
        }
        remove_tree(&now)?;
        match fs::rename(&before, &now) {
            Ok(()) => Ok(true),
            // Somebody made it read-only, for example. Nothing of the new checkout was moved away for it.
            Err(_) if is_untracked => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Puts a file of the new checkout into the earlier one, in the place of what is there.
    fn lay(&self, top: &Path, file: &Path) -> io::Result<()> {
        towline_files::create_dir_below(&self.place, file.parent().unwrap_or(Path::new("")))?;
        towline_files::remove_below(&self.place, file)?;
        fs::rename(top.join(file), self.place.join(file))
    }
}

/// The files of a commit that are below a directory.
fn below<'a>(files: &'a Files, directory: &[u8]) -> Vec<&'a Vec<u8>> {
    let prefix = [directory, b"/"].concat();
    let from = files.range(prefix.clone()..).map(|(path, _)| path);
    from.take_while(|path| path.starts_with(&prefix)).collect()
}

fn names_in(directory: &Path) -> io::Result<BTreeSet<OsString>> {
    Ok(entries(directory)?.into_iter().map(|(name, _)| name).collect())
}

/// Gives a file the time of its last change that another one has.
fn set_time(path: &Path, about: &fs::Metadata) -> Result<(), WorkspaceError> {
    let changed = Timespec { tv_sec: about.mtime(), tv_nsec: about.mtime_nsec() as _ };
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
        last_modification: changed,
    };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|error| WorkspaceError::io("set the time of", path)(error.into()))
}
