//! The scripted agent's memory between two processes: the progress of a conversation.
//!
//! There is one small file per conversation, in a separate folder that git ignores, because the script may be in the
//! repository that it changes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use towline_core::SessionId;

use super::ScriptError;

/// The longest file of a conversation.
const LONGEST: u64 = 4 * 1024;

/// The progress of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// The number of turns played.
    pub(super) played: u32,
    /// The index of the next turn.
    pub(super) next: usize,
}

/// Where a conversation's progress is stored.
#[derive(Debug)]
pub(super) struct Memory {
    folder: PathBuf,
    file: PathBuf,
}

impl Memory {
    pub(super) fn new(folder: &Path, session: &SessionId) -> Result<Self, ScriptError> {
        let id = session.as_str();
        let usable = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if id.is_empty() || id.len() > 200 || id.starts_with('.') || !id.chars().all(usable) {
            return Err(ScriptError::BadSessionId { session: id.to_owned() });
        }
        Ok(Self { folder: folder.to_owned(), file: folder.join(format!("{id}.json")) })
    }

    /// The stored progress; `None` for an unknown conversation.
    pub(super) fn recall(&self) -> Result<Option<Progress>, ScriptError> {
        let read = towline_files::read_if_present(&self.file, LONGEST);
        let Some(text) = read.map_err(|error| self.failed("read", error))? else { return Ok(None) };
        serde_json::from_slice(&text).map(Some).map_err(|error| self.failed("understand", error.into()))
    }

    /// Stores the progress. The file is replaced as a whole, so a kill leaves the old or the new one.
    pub(super) fn keep(&self, progress: Progress) -> Result<(), ScriptError> {
        let replace = || {
            fs::create_dir_all(&self.folder)?;
            towline_files::replace(&self.folder.join(".gitignore"), b"*\n")?;
            towline_files::replace(&self.file, &serde_json::to_vec(&progress)?)
        };
        replace().map_err(|error| self.failed("write", error))
    }

    fn failed(&self, action: &'static str, source: io::Error) -> ScriptError {
        ScriptError::State { action, path: self.file.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_stored_per_conversation() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let [one, two] = ["one", "two"].map(|id| Memory::new(&state, &SessionId::new(id)).unwrap());
        one.keep(Progress { played: 2, next: 1 }).unwrap();
        assert_eq!(one.recall().unwrap(), Some(Progress { played: 2, next: 1 }));
        assert_eq!(two.recall().unwrap(), None);
    }

    #[test]
    fn an_id_never_leads_outside_the_folder() {
        for id in ["", ".", "..", "../a", "a/b", ".hidden", "a b", "a\0"] {
            let refused = Memory::new(Path::new("state"), &SessionId::new(id));
            assert!(matches!(refused, Err(ScriptError::BadSessionId { .. })), "{id:?}");
        }
    }
}
