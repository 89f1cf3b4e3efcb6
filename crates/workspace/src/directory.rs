//! Directories of a tree that may be very deep. Each is reached from one that is held open nearby: from the root, the way to each
//! would be as long as the tree is deep.

use std::ffi::{OsStr, OsString};
use std::fs::{self, FileType};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::io::Errno;
use towline_files::HeldDirectory;

use crate::paths::{from_bytes, parents};

/// How many levels there are between two directories that are held open.
const STRIDE: usize = 32;

/// The longest path that git and other programs can use.
const LONGEST_PATH: usize = 4095;

/// A directory of a tree.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    path: PathBuf,
    /// One above it, or itself; none if even the top cannot be opened.
    held: Option<Rc<HeldDirectory>>,
    /// The way from there.
    below: PathBuf,
    levels: usize,
}

impl Directory {
    /// The top of a tree, whether or not it is there. The path may be a symlink to it.
    pub(crate) fn top(path: &Path) -> Self {
        let path = path.to_path_buf();
        match HeldDirectory::open(&path.join(".")) {
            Ok(held) => Self { path, held: Some(Rc::new(held)), below: PathBuf::new(), levels: 0 },
            Err(_) => Self { below: path.clone(), path, held: None, levels: 0 },
        }
    }

    /// Its own path, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A short way to it.
    pub(crate) fn way(&self) -> PathBuf {
        self.way_by(&self.below)
    }

    /// A short way to something in it.
    pub(crate) fn way_to(&self, name: impl AsRef<Path>) -> PathBuf {
        self.way_by(&self.below.join(name))
    }

    fn way_by(&self, below: &Path) -> PathBuf {
        self.held.as_ref().map_or_else(|| below.to_path_buf(), |held| held.join(below))
    }

    /// What is in it. One whose path is too long for other programs is an error.
    pub(crate) fn entries(&self) -> io::Result<Vec<(OsString, FileType)>> {
        if self.path.as_os_str().len() > LONGEST_PATH {
            return Err(Errno::NAMETOOLONG.into());
        }
        let named = |entry: io::Result<fs::DirEntry>| {
            let entry = entry?;
            Ok((entry.file_name(), entry.file_type()?))
        };
        fs::read_dir(self.way())?.map(named).collect()
    }

    /// The directory of this name in it, for later.
    pub(crate) fn pending(&self, name: OsString) -> Pending {
        Pending { above: self.clone(), name: Some(name) }
    }

    /// The directory of this name in it, whether or not there is one.
    fn enter(&self, name: &OsStr) -> Self {
        let (path, below, levels) = (self.path.join(name), self.below.join(name), self.levels + 1);
        if levels >= STRIDE
            && let Ok(held) = HeldDirectory::open(&self.way_by(&below))
        {
            return Self { path, held: Some(Rc::new(held)), below: PathBuf::new(), levels: 0 };
        }
        Self { path, held: self.held.clone(), below, levels }
    }
}

/// A directory that is entered when its turn comes, so that only those on the way to one are held open, however many there are.
#[derive(Debug)]
pub(crate) struct Pending {
    above: Directory,
    /// None for the one above itself.
    name: Option<OsString>,
}

impl Pending {
    pub(crate) fn top(path: &Path) -> Self {
        Self { above: Directory::top(path), name: None }
    }

    pub(crate) fn enter(self) -> Directory {
        match self.name {
            Some(name) => self.above.enter(&name),
            None => self.above,
        }
    }
}

/// Goes from path to path of a tree. Where the paths are sorted, each directory on the way is looked at once.
#[derive(Debug)]
pub(crate) struct Descent {
    top: Step,
    /// The directories on the way to the last path.
    steps: Vec<Step>,
    last: Vec<u8>,
}

#[derive(Debug)]
struct Step {
    directory: Directory,
    /// It is a symlink by now, or in one that is.
    is_behind_symlink: bool,
    /// Where names in it begin.
    next: usize,
}

/// How a path is reached.
#[derive(Debug)]
pub(crate) struct Way {
    /// A short path to the same file.
    pub(crate) path: PathBuf,
    pub(crate) leads_through_symlink: bool,
}

impl Descent {
    pub(crate) fn below(top: &Path) -> Self {
        let top = Step { directory: Directory::top(top), is_behind_symlink: false, next: 0 };
        Self { top, steps: Vec::new(), last: Vec::new() }
    }

    /// The way to a path below the top.
    pub(crate) fn way_to(&mut self, path: &[u8]) -> Way {
        while self.steps.pop_if(|step| !path.starts_with(&self.last[..step.next])).is_some() {}
        for parent in parents(path).skip(self.steps.len()) {
            let above = self.innermost();
            let name = OsStr::from_bytes(&parent[above.next..]);
            let about = fs::symlink_metadata(above.directory.way_to(name));
            let is_behind_symlink = above.is_behind_symlink || about.is_ok_and(|about| about.is_symlink());
            let directory = above.directory.enter(name);
            self.steps.push(Step { directory, is_behind_symlink, next: parent.len() + 1 });
        }
        path.clone_into(&mut self.last);
        let Step { directory, is_behind_symlink, next } = self.innermost();
        let path = directory.way_to(from_bytes(&path[*next..]));
        Way { path, leads_through_symlink: *is_behind_symlink }
    }

    fn innermost(&self) -> &Step {
        self.steps.last().unwrap_or(&self.top)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn directories_that_wait_are_not_held_open() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let mut directory = Directory::top(dir.path());
        for _ in 1..STRIDE {
            directory = directory.enter(OsStr::new("d"));
        }
        let open = || fs::read_dir("/proc/self/fd").expect("our files").count();
        let before = open();
        let names: Vec<OsString> = (0..200).map(|number| number.to_string().into()).collect();
        for name in &names {
            fs::create_dir_all(directory.path().join(name)).expect("made");
        }
        let mut pending: Vec<Pending> = names.into_iter().map(|name| directory.pending(name)).collect();
        // Other tests of this process open files too.
        assert!(open() < before + 100);
        let entered = pending.pop().map(Pending::enter).expect("one");
        assert_eq!((entered.levels, entered.entries().expect("listed").len()), (0, 0));
    }
}
