//! A commit that somebody else names, with everything that its id promises: every object below it is hashed here.

use std::collections::BTreeSet;

use towline_core::Commit;

use crate::git::shown;
use crate::git_dir::ObjectFormat;
use crate::tree::{Mode, damaged, read_proven};
use crate::{Repository, WorkspaceError};

/// So much is read at once, unless one file is larger.
const MOST_BYTES: u64 = 32 * 1024 * 1024;

/// What a repository has of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProvenCommit {
    /// There is no such commit.
    Missing,
    /// This object does not hash to its id, or is missing.
    Damaged(String),
    /// All of it is there.
    Whole {
        /// The commit's tree.
        tree: String,
    },
}

impl Repository {
    /// Whether there is a commit with this full id.
    pub fn has(&self, commit: &Commit) -> Result<bool, WorkspaceError> {
        Ok(self.find_commit(commit.as_str())?.as_ref() == Some(commit))
    }

    /// What is here of the commit with this full id. Commit, trees and files are read and hashed; nothing is executed, and the working
    /// tree does not count.
    pub fn prove(&self, commit: &Commit) -> Result<ProvenCommit, WorkspaceError> {
        if !self.has(commit)? {
            return Ok(ProvenCommit::Missing);
        }
        match self.prove_all(commit) {
            Err(WorkspaceError::Damaged { object, .. }) => Ok(ProvenCommit::Damaged(object)),
            // Git itself cannot read an object on the way to the files.
            Err(WorkspaceError::Git { .. }) => Ok(ProvenCommit::Damaged(commit.to_string())),
            proven => proven,
        }
    }

    fn prove_all(&self, commit: &Commit) -> Result<ProvenCommit, WorkspaceError> {
        let files = self.files_of(commit)?;
        let blobs = files.values().filter(|file| file.mode != Mode::Submodule);
        let blobs: BTreeSet<&str> = blobs.map(|file| file.id.as_str()).collect();
        self.prove_blobs(commit, &blobs)?;
        let (git, format) = (self.git(), ObjectFormat::of_id(commit.as_str()));
        let commits = read_proven(&git, [commit.as_str()].into_iter(), format)?;
        let about = commits.get(commit.as_str()).and_then(|about| about.strip_prefix(b"tree "));
        let tree = about.and_then(|rest| rest.split(|byte| *byte == b'\n').next()).map(shown);
        Ok(ProvenCommit::Whole { tree: tree.ok_or_else(|| damaged(&git, commit.as_str()))? })
    }

    fn prove_blobs(&self, commit: &Commit, blobs: &BTreeSet<&str>) -> Result<(), WorkspaceError> {
        let (git, format) = (self.git(), ObjectFormat::of_id(commit.as_str()));
        let mut part = Vec::new();
        let mut bytes = 0;
        let mut sized = self.sizes_of(blobs)?.into_iter().peekable();
        while let Some((id, size)) = sized.next() {
            part.push(id);
            bytes += size;
            if sized.peek().is_none_or(|(_, next)| bytes + next > MOST_BYTES) {
                let proven = read_proven(&git, part.iter().copied(), format)?;
                if let Some(missing) = part.iter().find(|id| !proven.contains_key(**id)) {
                    return Err(damaged(&git, missing));
                }
                part.clear();
                bytes = 0;
            }
        }
        Ok(())
    }

    /// The length of these objects, as git reports it.
    fn sizes_of<'a>(&self, ids: &BTreeSet<&'a str>) -> Result<Vec<(&'a str, u64)>, WorkspaceError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let git = self.git();
        let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let check = git.command("cat-file").args(["--batch-check=%(objectsize)", "--buffer"]);
        let answers = check.input(input.into_bytes()).run()?;
        let lines = answers.split(|byte| *byte == b'\n').map(shown);
        let sized = ids
            .iter()
            .zip(lines)
            .map(|(id, line)| line.parse().map(|size| (*id, size)).map_err(|_| damaged(&git, id)));
        sized.collect()
    }
}
