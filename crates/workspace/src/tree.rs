//! The files of a commit, proven by its id: every object on the way from the commit to a file's blob id is hashed here.
//!
//! Git does not hash what it reads, so an object whose bytes do not belong to its id would pass for anything. Blobs
//! themselves are compared where they are used: in a clean checkout.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use sha1::Sha1;
use sha2::{Digest, Sha256};
use towline_core::{Commit, hexadecimal};

use crate::git::{Git, about_and_path, records, shown};
use crate::git_dir::ObjectFormat;
use crate::{Repository, WorkspaceError};

/// A file, symlink or submodule of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrackedFile {
    pub(crate) mode: Mode,
    /// The id of its blob, or of the submodule's commit.
    pub(crate) id: String,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    File,
    Executable,
    Symlink,
    Submodule,
}

impl Mode {
    /// Reads what git writes; none for a directory, and for nothing.
    fn read(mode: &[u8]) -> Option<Self> {
        match mode {
            b"000000" | b"040000" | b"40000" => None,
            b"100755" => Some(Self::Executable),
            b"120000" => Some(Self::Symlink),
            b"160000" => Some(Self::Submodule),
            _ => Some(Self::File),
        }
    }

    /// As git writes it.
    pub(crate) const fn as_git(self) -> &'static [u8] {
        match self {
            Self::File => b"100644",
            Self::Executable => b"100755",
            Self::Symlink => b"120000",
            Self::Submodule => b"160000",
        }
    }
}

impl TrackedFile {
    /// Reads what git prints; none for a directory, and for nothing.
    pub(crate) fn read(mode: &[u8], id: &[u8]) -> Option<Self> {
        Mode::read(mode).map(|mode| Self { mode, id: shown(id) })
    }
}

/// The files of a commit by their paths.
pub(crate) type Files = BTreeMap<Vec<u8>, TrackedFile>;

/// The files of commits that were proven before, by the id of the commit.
pub(crate) type ProvenFiles = Arc<Mutex<HashMap<String, Arc<Files>>>>;

impl Repository {
    /// All files of a commit. Fails when an object on the way does not hash to its id. What was proven once holds for good:
    /// it follows from the commit's id.
    pub(crate) fn files_of(&self, commit: &Commit) -> Result<Arc<Files>, WorkspaceError> {
        let known = || self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = known().get(commit.as_str()) {
            return Ok(Arc::clone(files));
        }
        let files = Arc::new(prove_files(&self.git(), commit)?);
        known().insert(commit.to_string(), Arc::clone(&files));
        Ok(files)
    }
}

/// An object that does not hash to its id, or is missing.
pub(crate) fn damaged(git: &Git, id: &str) -> WorkspaceError {
    WorkspaceError::Damaged { object: id.to_owned(), root: git.directory.to_path_buf() }
}

/// All files of a commit, by objects that hash to their ids.
pub(crate) fn prove_files(git: &Git, commit: &Commit) -> Result<Files, WorkspaceError> {
    let format = ObjectFormat::of_id(commit.as_str());
    let listing = git.command("ls-tree").args(["-r", "-d", "-z", "--full-tree", commit.as_str()]);
    // Only selects which objects to ask for; what they hold is proven below.
    let listing = listing.run()?;
    let abouts = records(&listing).filter_map(about_and_path).map(|(about, _)| about);
    let trees: BTreeSet<String> =
        abouts.filter_map(|about| about.strip_prefix(b"040000 tree ")).map(shown).collect();
    let root = format!("{commit}^{{tree}}");
    let wanted = [commit.as_str(), &root].into_iter().chain(trees.iter().map(String::as_str));
    let objects = read_proven(git, wanted, format)?;
    let damaged = |id: &str| damaged(git, id);
    let about = objects.get(commit.as_str()).ok_or_else(|| damaged(commit.as_str()))?;
    let root = about
        .strip_prefix(b"tree ")
        .and_then(|rest| rest.split(|byte| *byte == b'\n').next())
        .map(shown)
        .ok_or_else(|| damaged(commit.as_str()))?;
    let mut files = Files::new();
    let mut pending = vec![(Vec::new(), root)];
    while let Some((prefix, id)) = pending.pop() {
        let tree = objects.get(&id).ok_or_else(|| damaged(&id))?;
        let entries = read_tree(tree, format).ok_or_else(|| damaged(&id))?;
        for InTree { mode, name, id } in entries {
            let path = [prefix.as_slice(), name].concat();
            match Mode::read(mode) {
                Some(mode) => drop(files.insert(path, TrackedFile { mode, id })),
                None => pending.push(([path.as_slice(), b"/"].concat(), id)),
            }
        }
    }
    Ok(files)
}

/// Reads objects. Whatever does not hash to the id under which git gave it out is left out, and so is what is missing.
pub(crate) fn read_proven<'a>(
    git: &Git,
    wanted: impl Iterator<Item = &'a str>,
    format: ObjectFormat,
) -> Result<HashMap<String, Vec<u8>>, WorkspaceError> {
    let input: String = wanted.map(|id| format!("{id}\n")).collect();
    if input.is_empty() {
        return Ok(HashMap::new());
    }
    let batch = git.command("cat-file").args(["--batch", "--buffer"]).input(input.into_bytes()).run()?;
    let mut objects = HashMap::new();
    let mut rest = batch.as_slice();
    // `id type size`, the content, a line end; or `id missing`.
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let header = shown(&rest[..end]);
        rest = &rest[end + 1..];
        if let [id, kind, size] = header.split(' ').collect::<Vec<_>>().as_slice()
            && let Some((content, after)) = size.parse().ok().and_then(|size| rest.split_at_checked(size))
        {
            rest = after.get(1..).unwrap_or_default();
            if hash(format, kind, content) == *id {
                objects.insert((*id).to_owned(), content.to_vec());
            }
        }
    }
    Ok(objects)
}

/// An entry of a tree object.
#[derive(Debug, PartialEq, Eq)]
struct InTree<'a> {
    mode: &'a [u8],
    name: &'a [u8],
    id: String,
}

/// The entries of a tree object. None when it is not one.
fn read_tree(tree: &[u8], format: ObjectFormat) -> Option<Vec<InTree<'_>>> {
    let id_length = match format {
        ObjectFormat::Sha1 => 20,
        ObjectFormat::Sha256 => 32,
    };
    let mut entries = Vec::new();
    let mut rest = tree;
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        let end = space + 1 + rest[space + 1..].iter().position(|byte| *byte == 0)?;
        let (mode, name) = (without_zeros(&rest[..space]), &rest[space + 1..end]);
        let id = rest.get(end + 1..end + 1 + id_length)?;
        entries.push(InTree { mode, name, id: hexadecimal(id) });
        rest = &rest[end + 1 + id_length..];
    }
    Some(entries)
}

/// A mode as git writes it today. Trees of old gits have zeros before it.
fn without_zeros(mode: &[u8]) -> &[u8] {
    let zeros = mode.iter().take_while(|digit| **digit == b'0').count();
    &mode[zeros..]
}

/// The id that git gives to an object.
pub(crate) fn hash(format: ObjectFormat, kind: &str, content: &[u8]) -> String {
    let mut hasher = Hasher::new(format, kind, content.len() as u64);
    hasher.update(content);
    hasher.id()
}

/// Works out the id of an object piece by piece.
pub(crate) enum Hasher {
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Hasher {
    pub(crate) fn new(format: ObjectFormat, kind: &str, length: u64) -> Self {
        let mut hasher = match format {
            ObjectFormat::Sha1 => Self::Sha1(Sha1::new()),
            ObjectFormat::Sha256 => Self::Sha256(Sha256::new()),
        };
        hasher.update(format!("{kind} {length}\0").as_bytes());
        hasher
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
        }
    }

    pub(crate) fn id(self) -> String {
        match self {
            Self::Sha1(hasher) => hexadecimal(&hasher.finalize()),
            Self::Sha256(hasher) => hexadecimal(&hasher.finalize()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_one_that_git_gives() {
        assert_eq!(
            hash(ObjectFormat::Sha1, "blob", b"what is up, doc?"),
            "bd9dbf5aae1a3862dd1526723246b20206e5fc37"
        );
        assert_eq!(
            hash(ObjectFormat::Sha256, "blob", b""),
            "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
        );
    }

    #[test]
    fn a_tree_that_is_cut_off_is_none() {
        let tree = [b"100644 a\0".as_slice(), &[7; 20], b"40000 dir\0", &[8; 20]].concat();
        let entries = read_tree(&tree, ObjectFormat::Sha1).unwrap();
        assert_eq!(entries[0], InTree { mode: b"100644", name: b"a", id: "07".repeat(20) });
        assert_eq!(entries[1].name, b"dir");
        for length in [1, 8, 20, 28, 45] {
            assert!(read_tree(&tree[..length], ObjectFormat::Sha1).is_none(), "{length}");
        }
    }
}
