//! Reads the raw output of `git diff-index` and `git diff-tree`. Decides nothing.

use std::collections::BTreeMap;

use crate::git::records;

/// What a tree or an index has at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: Vec<u8>,
    pub(crate) hash: Vec<u8>,
}

impl Entry {
    pub(crate) fn is_symlink(&self) -> bool {
        self.mode == b"120000"
    }

    /// Whether it is a commit of another repository.
    pub(crate) fn is_submodule(&self) -> bool {
        self.mode == b"160000"
    }

    fn read(mode: &[u8], hash: &[u8]) -> Option<Self> {
        (mode != b"000000").then(|| Self { mode: mode.to_vec(), hash: hash.to_vec() })
    }
}

/// What a path was and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) before: Option<Entry>,
    pub(crate) after: Option<Entry>,
}

/// Paths that differ between a commit and what came after it.
pub(crate) type Changes = BTreeMap<Vec<u8>, Changed>;

/// Reads records that come in pairs: `:oldmode newmode oldhash newhash status`, then the path.
pub(crate) fn parse(listing: &[u8]) -> Changes {
    let mut changes = Changes::new();
    let mut records = records(listing);
    while let (Some(about), Some(path)) = (records.next(), records.next()) {
        let fields: Vec<&[u8]> = about.split(|byte| *byte == b' ').collect();
        if let [old_mode, mode, old_hash, hash, ..] = fields.as_slice() {
            let old_mode = old_mode.strip_prefix(b":").unwrap_or(old_mode);
            let changed = Changed { before: Entry::read(old_mode, old_hash), after: Entry::read(mode, hash) };
            changes.insert(path.to_vec(), changed);
        }
    }
    changes
}
