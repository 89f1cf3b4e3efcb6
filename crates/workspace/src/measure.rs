//! How much a snapshot would have to take in: nobody wants a copy of a disk by mistake.

use std::fs;
use std::path::{Path, PathBuf};

use crate::WorkspaceError;
use crate::git::shown;
use crate::paths::from_bytes;

/// The most files, and the most bytes, that a snapshot takes in unless it is allowed more.
const MOST_FILES: u64 = 20_000;
const MOST_BYTES: u64 = 1024 * 1024 * 1024;

/// Whether a person wants a snapshot however large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// It is to stay within the bounds.
    WithinBounds,
    AnySize,
}

/// Fails when these paths below `root` hold more than a snapshot should take in. Looks no further than to know that.
pub(crate) fn measure<'a>(
    root: &Path,
    paths: impl IntoIterator<Item = &'a Vec<u8>>,
    consent: Consent,
) -> Result<(), WorkspaceError> {
    if consent == Consent::AnySize {
        return Ok(());
    }
    let mut sum = Sum::default();
    for path in paths {
        sum.add(&root.join(from_bytes(path)));
        if sum.is_too_much() {
            let largest = sum.largest.strip_prefix(root).unwrap_or(&sum.largest);
            return Err(WorkspaceError::TooLarge {
                path: root.to_path_buf(),
                largest: shown(largest.as_os_str().as_encoded_bytes()),
                megabytes: sum.size_of_largest / (1024 * 1024),
            });
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Sum {
    files: u64,
    bytes: u64,
    largest: PathBuf,
    size_of_largest: u64,
}

impl Sum {
    /// Adds a file, or all files of a directory. What cannot be looked at is for git to complain about.
    fn add(&mut self, path: &Path) {
        let Ok(about) = fs::symlink_metadata(path) else { return };
        if about.is_dir() {
            for entry in fs::read_dir(path).into_iter().flatten().map_while(Result::ok) {
                if self.is_too_much() {
                    return;
                }
                if entry.file_name() != ".git" {
                    self.add(&entry.path());
                }
            }
            return;
        }
        self.files += 1;
        self.bytes = self.bytes.saturating_add(about.len());
        if about.len() >= self.size_of_largest {
            (self.largest, self.size_of_largest) = (path.to_path_buf(), about.len());
        }
    }

    fn is_too_much(&self) -> bool {
        self.files > MOST_FILES || self.bytes > MOST_BYTES
    }
}
