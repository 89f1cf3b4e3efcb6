//! Directories that take the place of the user's, and what has to be there before a sandbox is made.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::calls;
use crate::room::Rule;

/// The directory with what programs change in the user's caches.
pub const LAYERS: &str = "layers";

const EMPTY: &str = "empty";

/// The longest name of a directory.
const LONGEST_NAME: usize = 200;

/// Directories of a goal or a verdict alone, below one directory that nobody else can enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Private {
    root: PathBuf,
}

impl Private {
    /// Makes what is missing of it.
    pub fn make(root: &Path) -> io::Result<Self> {
        towline_files::create_private_dir(root)?;
        for inner in ["home", "tmp", LAYERS, "own", EMPTY] {
            towline_files::create_dir_below(root, Path::new(inner))?;
        }
        let private = Self { root: root.canonicalize()? };
        towline_files::replace(&private.filter(), &calls::filter())?;
        Ok(private)
    }

    /// The directory that holds them.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Takes the place of the user's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Takes the place of `/tmp`.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// The filter of system calls.
    pub(crate) fn filter(&self) -> PathBuf {
        self.note("calls.bpf")
    }

    /// What the program changes in the user's caches.
    pub(crate) fn layers(&self) -> PathBuf {
        self.root.join(LAYERS)
    }

    /// Takes the place of a cache that the user does not have.
    pub(crate) fn empty(&self) -> PathBuf {
        self.root.join(EMPTY)
    }

    /// Takes the place of this directory of the user's. It is made when it is missing.
    pub(crate) fn own(&self, place: &Path) -> io::Result<PathBuf> {
        let name: String = place.to_string_lossy().replace('/', "+");
        let skipped = name.chars().count().saturating_sub(LONGEST_NAME);
        let inner = Path::new("own").join(name.chars().skip(skipped).collect::<String>());
        towline_files::create_dir_below(&self.root, &inner)?;
        Ok(self.root.join(inner))
    }

    /// A file of the engine's about this directory, which no program sees.
    pub fn note(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        path.starts_with(&self.root)
    }

    /// Makes the mount points of rules that are below what programs can write to. bubblewrap would follow a symlink that one of them
    /// left there, out of the sandbox. In private directories whatever is in the way is removed; elsewhere it is an error.
    pub(crate) fn make_mount_points(&self, rules: &BTreeMap<PathBuf, Rule>) -> io::Result<()> {
        for (path, rule) in rules {
            // A layer is mounted later.
            let is_mounted = |found: &(&PathBuf, &Rule)| !matches!(found.1, Rule::Layered(_));
            let mut above = path.ancestors().skip(1).filter_map(|above| rules.get_key_value(above));
            let Some((place, Rule::Write(from))) = above.find(is_mounted) else { continue };
            let (Ok(inner), true) = (path.strip_prefix(place), from.is_dir()) else { continue };
            let is_dir = match rule {
                Rule::Hidden => path.is_dir(),
                Rule::Read(from) | Rule::Write(from) | Rule::Layered(from) => from.is_dir(),
            };
            if self.has(from) {
                clear_the_way(from, inner, is_dir)?;
                make(from, inner, is_dir)?;
            } else {
                towline_files::must_lead_through_directories(from, inner.parent().unwrap_or(Path::new("")))?;
            }
        }
        Ok(())
    }
}

/// Removes the first thing on the way from `root` to `inner` that is not what has to be there.
fn clear_the_way(root: &Path, inner: &Path, is_dir: bool) -> io::Result<()> {
    let mut way = PathBuf::new();
    let mut parts = inner.components().peekable();
    while let Some(part) = parts.next() {
        way.push(part);
        let Ok(found) = fs::symlink_metadata(root.join(&way)) else { return Ok(()) };
        let is_right = if parts.peek().is_some() || is_dir { found.is_dir() } else { found.is_file() };
        if !is_right {
            return towline_files::remove_below(root, &way);
        }
    }
    Ok(())
}

fn make(root: &Path, inner: &Path, is_dir: bool) -> io::Result<()> {
    if is_dir {
        return towline_files::create_dir_below(root, inner);
    }
    let above = inner.parent().unwrap_or(Path::new(""));
    towline_files::create_dir_below(root, above)?;
    match towline_files::create_new(&root.join(inner)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
