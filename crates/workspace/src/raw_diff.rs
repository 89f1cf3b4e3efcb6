//! Reads the output of `git diff-index`, `git diff-tree` and `git ls-tree`. Decides nothing.

use std::collections::BTreeMap;

use crate::git::{about_and_path, records};
use crate::tree::{Mode, TrackedFile};

/// What a path was and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) before: Option<TrackedFile>,
    pub(crate) after: Option<TrackedFile>,
}

/// Paths that differ between a commit and what came after it.
pub(crate) type Changes = BTreeMap<Vec<u8>, Changed>;

impl Changed {
    /// Reads `oldmode newmode oldhash newhash status`.
    pub(crate) fn read(about: &[u8]) -> Option<Self> {
        let fields: Vec<&[u8]> = about.split(|byte| *byte == b' ').collect();
        let [old_mode, mode, old_hash, hash, ..] = fields.as_slice() else { return None };
        Some(Self { before: TrackedFile::read(old_mode, old_hash), after: TrackedFile::read(mode, hash) })
    }
}

/// Reads records that come in pairs: a colon and what [`Changed::read`] reads, then the path.
pub(crate) fn parse(listing: &[u8]) -> Changes {
    let mut changes = Changes::new();
    let mut records = records(listing);
    while let (Some(about), Some(path)) = (records.next(), records.next()) {
        let changed = Changed::read(about.strip_prefix(b":").unwrap_or(about));
        changes.extend(changed.map(|changed| (path.to_vec(), changed)));
    }
    changes
}

/// Reads records like `100644 blob <hash><tab>path`. Directories are left out.
pub(crate) fn tree_entries(listing: &[u8]) -> impl Iterator<Item = (Vec<u8>, TrackedFile)> {
    records(listing).filter_map(|line| {
        let (about, path) = about_and_path(line)?;
        let mut fields = about.split(|byte| *byte == b' ');
        Some((path.to_vec(), TrackedFile::read(fields.next()?, fields.nth(1)?)?))
    })
}

/// Whether a side of a change is of this kind.
pub(crate) fn is(side: &Option<TrackedFile>, mode: Mode) -> bool {
    side.as_ref().is_some_and(|file| file.mode == mode)
}
