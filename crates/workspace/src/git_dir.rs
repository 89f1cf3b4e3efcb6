//! Git directories that Towline writes itself: its own repository of a goal, the `.git` of a private clone, and the
//! throw-away one of a clean checkout.
//!
//! Nothing is copied that git would run, and no git process is needed. What is there already under one of the names is
//! replaced, whatever it is.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::WorkspaceError;
use crate::git::borrowed_path;
use crate::paths::{is_directory, remove_tree};
use crate::settings::as_file;

/// The most that the list of borrowed objects of a clone may hold.
const LONGEST_ALTERNATES: u64 = 64 * 1024;

/// What a git directory holds apart from objects.
#[derive(Debug, Default)]
pub(crate) struct GitDir {
    /// What HEAD contains: a commit, or `ref: NAME`.
    pub(crate) head: String,
    /// Whether ids are SHA-256.
    pub(crate) format: ObjectFormat,
    /// Settings beyond the format.
    pub(crate) config: Vec<(String, String)>,
    /// Directories with objects that are borrowed.
    pub(crate) borrowed: Vec<PathBuf>,
    /// Commits whose parents are not there.
    pub(crate) shallow: Option<Vec<u8>>,
    /// Ignore rules outside the tree.
    pub(crate) excludes: String,
    /// Attributes outside the tree.
    pub(crate) attributes: String,
    /// The patterns of a sparse checkout.
    pub(crate) sparse: Option<String>,
}

/// How a repository names its objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ObjectFormat {
    #[default]
    Sha1,
    Sha256,
}

impl ObjectFormat {
    /// By the length of an id.
    pub(crate) const fn of_id(id: &str) -> Self {
        if id.len() == 64 { Self::Sha256 } else { Self::Sha1 }
    }
}

/// The list of the directories that an object directory borrows from, as git reads it.
pub(crate) fn alternates_of(objects: &Path) -> io::Result<Option<Vec<u8>>> {
    towline_files::read_if_present(&objects.join("info/alternates"), LONGEST_ALTERNATES)
}

impl GitDir {
    /// Writes it to a directory, which is made if it is not there, but not what it is in: that may have been removed on
    /// purpose. Objects, refs and the index stay.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), WorkspaceError> {
        for below in ["", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "info"] {
            make_directory(&directory.join(below))?;
        }
        let mut borrowed = self.borrowed.iter().map(|objects| borrowed_path(objects)).collect::<Vec<_>>();
        borrowed.push(Vec::new());
        put(
            directory,
            "objects/info/alternates",
            Some(&borrowed.join(&b'\n')).filter(|_| borrowed.len() > 1),
        )?;
        put(directory, "shallow", self.shallow.as_ref())?;
        put(directory, "info/exclude", Some(self.excludes.as_bytes()))?;
        put(directory, "info/attributes", Some(self.attributes.as_bytes()))?;
        put(directory, "info/sparse-checkout", self.sparse.as_ref())?;
        put(directory, "config", Some(self.config_file()))?;
        put(directory, "HEAD", Some(format!("{}\n", self.head)))
    }

    fn config_file(&self) -> String {
        let has_extensions = self.format == ObjectFormat::Sha256
            || self.config.iter().any(|(name, _)| name.starts_with("extensions."));
        let version = if has_extensions { "1" } else { "0" };
        let mut settings = vec![
            ("core.repositoryformatversion".to_owned(), version.to_owned()),
            ("core.bare".to_owned(), "false".to_owned()),
            ("core.logallrefupdates".to_owned(), "true".to_owned()),
        ];
        if self.format == ObjectFormat::Sha256 {
            settings.push(("extensions.objectformat".to_owned(), "sha256".to_owned()));
        }
        // Git-lfs stores its files beside our objects, never where the user's are.
        settings.extend(self.config.iter().filter(|(name, _)| name != "lfs.storage").cloned());
        as_file(&settings)
    }
}

/// Makes a directory, in the place of anything else that has its name.
fn make_directory(path: &Path) -> Result<(), WorkspaceError> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => return Ok(()),
        Ok(_) => fs::remove_file(path).map_err(WorkspaceError::io("remove", path))?,
        Err(_) => {}
    }
    fs::DirBuilder::new().mode(0o700).create(path).map_err(WorkspaceError::io("create", path))
}

/// Writes a file, or sees to it that there is none.
fn put(directory: &Path, name: &str, text: Option<impl AsRef<[u8]>>) -> Result<(), WorkspaceError> {
    let path = directory.join(name);
    match text {
        Some(text) => {
            if is_directory(&path) {
                remove_tree(&path)?;
            }
            towline_files::replace(&path, text.as_ref()).map_err(WorkspaceError::io("write", &path))
        }
        None => remove_tree(&path),
    }
}

/// Refs as the one file in which git packs them.
pub(crate) fn write_refs(directory: &Path, refs: &Refs) -> Result<(), WorkspaceError> {
    let mut packed = String::new();
    for (name, id) in &refs.plain {
        packed.push_str(&format!("{id} {name}\n"));
    }
    put(directory, "packed-refs", Some(packed))?;
    for (name, target) in &refs.symbolic {
        let mut parts = name.match_indices('/').map(|(end, _)| &name[..end]);
        parts.try_for_each(|part| make_directory(&directory.join(part)))?;
        put(directory, name, Some(format!("ref: {target}\n")))?;
    }
    Ok(())
}

/// Branches, tags and remote branches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refs {
    /// Name and object.
    pub(crate) plain: Vec<(String, String)>,
    /// A symbolic ref and its target.
    pub(crate) symbolic: Vec<(String, String)>,
}
