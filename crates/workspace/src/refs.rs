//! The refs of a git directory by what its files contain, read without git: an agent could have written them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use crate::paths::is_directory;

/// The most that is read of one of git's files.
const LONGEST_REF: u64 = 4 * 1024;
const LONGEST_PACKED: u64 = 64 * 1024 * 1024;

/// What a ref contains, in its own file or among the packed ones.
pub(crate) fn read_ref(git_dir: &Path, name: &str) -> io::Result<Option<String>> {
    if let Some(bytes) = towline_files::read_if_present(&git_dir.join(name), LONGEST_REF)? {
        return Ok(Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()));
    }
    let packed = PackedRefs::read(git_dir)?;
    let entry = packed.entries().find(|(packed_name, _)| *packed_name == name);
    Ok(entry.map(|(_, id)| id.to_owned()))
}

/// All refs of a git directory. None when they cannot be read.
pub(crate) fn refs_of(git_dir: &Path) -> Option<BTreeMap<String, String>> {
    let mut refs = PackedRefs::read(git_dir).ok()?.by_name();
    let mut pending = vec!["refs".to_owned()];
    while let Some(name) = pending.pop() {
        if is_directory(&git_dir.join(&name)) {
            for entry in fs::read_dir(git_dir.join(&name)).ok()? {
                pending.push(format!("{name}/{}", entry.ok()?.file_name().to_str()?));
            }
        } else {
            let text = read_ref(git_dir, &name).ok()?.unwrap_or_default();
            // What a symbolic one leads to has a name of its own.
            if is_id(&text) {
                refs.insert(name, text);
            }
        }
    }
    Some(refs)
}

/// The file with the packed refs.
#[derive(Debug)]
pub(crate) struct PackedRefs(String);

impl PackedRefs {
    /// Reads that file in a git directory. There need not be one.
    pub(crate) fn read(git_dir: &Path) -> io::Result<Self> {
        let bytes = towline_files::read_if_present(&git_dir.join("packed-refs"), LONGEST_PACKED)?;
        Ok(Self::from_bytes(&bytes.unwrap_or_default()))
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        Self(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Names and ids.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.lines().filter_map(entry)
    }

    pub(crate) fn by_name(&self) -> BTreeMap<String, String> {
        self.entries().map(|(name, id)| (name.to_owned(), id.to_owned())).collect()
    }

    /// The text of the file without the refs to some objects.
    pub(crate) fn without(&self, ids: &BTreeSet<String>) -> String {
        let mut stays = true;
        let mut text = String::new();
        for line in self.0.lines() {
            // What an annotated tag leads to is in a line of its own below it.
            if !line.starts_with('^') {
                stays = entry(line).is_none_or(|(_, id)| !ids.contains(id));
            }
            if stays {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }
}

/// The name and the id in a line like `<id> refs/heads/main`.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (id, name) = line.split_once(' ')?;
    is_id(id).then_some((name, id))
}

pub(crate) fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
