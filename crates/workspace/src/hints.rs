//! What somebody else's index records about files: which of them are tracked although rules ignore them, which are tracked no
//! longer, which are left out of a sparse checkout, and which are in the middle of a merge. Only names are taken from it, never content, so that no lie in it can do more than its owner could
//! do to the files themselves.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Component, Path};

use crate::directory::Descent;
use crate::git::{Git, records};
use crate::paths::from_bytes;
use crate::private_index::PrivateIndex;
use crate::{WorkspaceError, unless_git_failed};

/// Names from an index.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// Tracked files that are there and were not known.
    pub(crate) tracked: BTreeSet<Vec<u8>>,
    /// Known files that are not tracked.
    pub(crate) untracked: BTreeSet<Vec<u8>>,
    /// Tracked files that are meant not to be there.
    pub(crate) left_out: BTreeSet<Vec<u8>>,
    /// Files of a merge that is not finished.
    pub(crate) unmerged: BTreeSet<Vec<u8>>,
}

/// The entries of an index, as git lists them.
#[derive(Debug)]
pub(crate) struct Listing(Option<Vec<u8>>);

impl Listing {
    /// Lists the index of the repository at the top of `git`'s working tree. A missing or damaged one gives nothing.
    pub(crate) fn of(git: &Git, git_dir: &Path, index: &Path) -> Result<Self, WorkspaceError> {
        let Some(copy) = PrivateIndex::copy_of(index, git, git_dir)? else { return Ok(Self(None)) };
        let listing = copy.git.command("ls-files").args(["-t", "--cached", "-z"]).run();
        Ok(Self(unless_git_failed(listing)?))
    }

    /// What it records about the files in `directory`, of which these are known.
    pub(crate) fn hints(&self, directory: &Path, known: &HashSet<Vec<u8>>) -> Hints {
        let Some(listing) = &self.0 else { return Hints::default() };
        let mut hints = Hints::default();
        let mut listed = HashSet::new();
        let mut descent = Descent::below(directory);
        for line in records(listing).filter(|line| line.len() > 2) {
            let (tag, name) = (line[0], &line[2..]);
            listed.insert(name);
            if tag == b'M' {
                hints.unmerged.insert(name.to_vec());
            }
            if tag != b'S' && known.contains(name) {
                continue;
            }
            if !from_bytes(name).components().all(|part| matches!(part, Component::Normal(_))) {
                continue;
            }
            let way = descent.way_to(name);
            match fs::symlink_metadata(way.path) {
                // It is elsewhere.
                _ if way.leads_through_symlink => false,
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => false,
                Ok(about) if about.is_file() || about.is_symlink() => hints.tracked.insert(name.to_vec()),
                Err(_) if tag == b'S' => hints.left_out.insert(name.to_vec()),
                _ => false,
            };
        }
        hints.untracked = known.iter().filter(|name| !listed.contains(name.as_slice())).cloned().collect();
        hints
    }
}
