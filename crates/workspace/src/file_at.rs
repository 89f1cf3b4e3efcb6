//! The content of one file in a commit.

use towline_core::Commit;

use crate::git::shown;
use crate::{Repository, WorkspaceError};

/// What a commit has at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAt {
    /// Nothing.
    Missing,
    /// A regular file with this content.
    Regular(Vec<u8>),
    /// A regular file with more bytes than the caller wants.
    TooLarge,
    /// A symlink, a directory or a submodule.
    NotAFile,
}

impl Repository {
    /// Reads a file as it is in a commit, without any conversion, if it has at most `limit` bytes.
    pub fn file_at(&self, commit: &Commit, path: &str, limit: u64) -> Result<FileAt, WorkspaceError> {
        let git = self.git();
        let listing = git
            .command("ls-tree")
            .args(["--full-tree", "--long", "-z", commit.as_str(), "--", path])
            .run()?;
        // `mode type hash size<tab>path`; the size is padded with spaces.
        let about = shown(&listing);
        let about: Vec<&str> = about.split('\t').next().unwrap_or_default().split_whitespace().collect();
        match about.as_slice() {
            [] => Ok(FileAt::Missing),
            ["100644" | "100755" | "100664", _, hash, size] => {
                if size.parse::<u64>().map_or(true, |size| size > limit) {
                    return Ok(FileAt::TooLarge);
                }
                Ok(FileAt::Regular(git.command("cat-file").args(["blob", hash]).run()?))
            }
            _ => Ok(FileAt::NotAFile),
        }
    }
}
