//! The content of one file in a commit.

use towline_core::Commit;

use crate::git_dir::ObjectFormat;
use crate::tree::{Mode, damaged, read_proven};
use crate::{Repository, WorkspaceError};

/// What a commit has at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAt {
    Missing,
    /// A regular file with this content.
    Regular(Vec<u8>),
    /// A regular file with more bytes than the caller wants.
    TooLarge,
    /// A symlink, a directory or a submodule.
    NotAFile,
}

impl Repository {
    /// Reads a file as it is in a commit, without any conversion, if it has at most `limit` bytes. Fails when what git has for
    /// it does not hash to the id that the commit names.
    pub fn file_at(&self, commit: &Commit, path: &str, limit: u64) -> Result<FileAt, WorkspaceError> {
        let files = self.files_of(commit)?;
        let Some(entry) = files.get(path.as_bytes()) else {
            let below = [path.as_bytes(), b"/"].concat();
            let is_directory =
                files.range(below.clone()..).next().is_some_and(|(at, _)| at.starts_with(&below));
            return Ok(if is_directory { FileAt::NotAFile } else { FileAt::Missing });
        };
        if !matches!(entry.mode, Mode::File | Mode::Executable) {
            return Ok(FileAt::NotAFile);
        }
        let git = self.git();
        let size = git.command("cat-file").args(["-s", &entry.id]).line()?;
        if size.parse::<u64>().map_or(true, |size| size > limit) {
            return Ok(FileAt::TooLarge);
        }
        let format = ObjectFormat::of_id(commit.as_str());
        let mut read = read_proven(&git, std::iter::once(entry.id.as_str()), format)?;
        read.remove(&entry.id).map(FileAt::Regular).ok_or_else(|| damaged(&git, &entry.id))
    }
}
