//! What the scripted agent remembers between two processes: how far a conversation is.
//!
//! One small file per conversation, in a folder of its own that git ignores, since the script may lie in the
//! repository it works on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use towline_core::SessionId;

use super::ScriptError;

/// The longest file of a conversation.
const LONGEST: u64 = 4 * 1024;

/// Which conversation is to be held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptSession {
    /// A new one, which gets this id.
    Fresh(SessionId),
    /// The one with this id goes on.
    Resume(SessionId),
}

impl ScriptSession {
    /// Its id.
    pub const fn id(&self) -> &SessionId {
        match self {
            Self::Fresh(id) | Self::Resume(id) => id,
        }
    }
}

/// How far a conversation is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// How many turns were played.
    pub(super) played: u32,
    /// The place of the turn that comes next.
    pub(super) next: usize,
}

/// Where a conversation's progress is kept.
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

    /// What was kept; `None` for a conversation that never was.
    pub(super) fn recall(&self) -> Result<Option<Progress>, ScriptError> {
        let read = towline_files::read_if_present(&self.file, LONGEST);
        let Some(text) = read.map_err(|error| self.failed("read", error))? else { return Ok(None) };
        serde_json::from_slice(&text).map(Some).map_err(|error| self.failed("understand", error.into()))
    }

    /// Keeps it. The file is replaced as a whole, so that a kill leaves the old one or the new one.
    pub(super) fn keep(&self, progress: Progress) -> Result<(), ScriptError> {
        self.replace(progress).map_err(|error| self.failed("write", error))
    }

    fn replace(&self, progress: Progress) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        towline_files::replace(&self.folder.join(".gitignore"), b"*\n")?;
        towline_files::replace(&self.file, &serde_json::to_vec(&progress)?)
    }

    fn failed(&self, action: &'static str, source: io::Error) -> ScriptError {
        ScriptError::State { action, path: self.file.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_kept_per_conversation() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let [one, two] = ["one", "two"].map(|id| Memory::new(&state, &SessionId::new(id)).unwrap());
        one.keep(Progress { played: 2, next: 1 }).unwrap();
        assert_eq!(one.recall().unwrap(), Some(Progress { played: 2, next: 1 }));
        assert_eq!(two.recall().unwrap(), None);
    }

    #[test]
    fn an_id_never_leads_out_of_the_folder() {
        for id in ["", ".", "..", "../a", "a/b", ".hidden", "a b", "a\0"] {
            let refused = Memory::new(Path::new("state"), &SessionId::new(id));
            assert!(matches!(refused, Err(ScriptError::BadSessionId { .. })), "{id:?}");
        }
    }
}
