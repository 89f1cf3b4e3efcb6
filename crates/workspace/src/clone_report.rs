//! What an agent changed in the git data of its own clone: nothing of it has an effect elsewhere, but a person should know.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::paths::is_there;
use crate::refs::{PackedRefs, refs_of};
use crate::words::listed;
use crate::{Repository, Workspace, WorkspaceError};

/// Where our own repository has copies of what was written into the clone.
const CONFIG: &str = "clone-config";
const REFS: &str = "clone-refs";

/// The most that is read of one of these files.
const LONGEST: u64 = 64 * 1024 * 1024;

/// How many names a line has.
const NAMED: usize = 5;

/// Stores what was written into a clone, to be compared later.
pub(crate) fn remember(own: &Repository, git_dir: &Path) -> Result<(), WorkspaceError> {
    for (file, copy) in [("config", CONFIG), ("packed-refs", REFS)] {
        let (from, to) = (git_dir.join(file), own.git_dir.join(copy));
        let text = towline_files::read(&from, LONGEST).map_err(WorkspaceError::io("read", &from))?;
        towline_files::replace(&to, &text).map_err(WorkspaceError::io("write", &to))?;
    }
    Ok(())
}

impl Workspace {
    /// What is not as it was in the clone's git data, apart from the branch that the agent began on.
    pub(crate) fn clone_changes(&self) -> Vec<String> {
        let git_dir = self.path().join(".git");
        if self.is_in_place() || !is_there(&git_dir).unwrap_or(false) {
            return Vec::new();
        }
        let mut changes = Vec::new();
        let before = |name: &str| towline_files::read(&self.repository.git_dir.join(name), LONGEST).ok();
        let now = |name: &str| towline_files::read(&git_dir.join(name), LONGEST).ok();
        if before(CONFIG).is_some_and(|config| now("config").as_ref() != Some(&config)) {
            changes.push("its git configuration".to_owned());
        }
        let mut hooks = hooks(&git_dir.join("hooks"));
        hooks.retain(|hook| !self.is_users_hook(&git_dir, hook));
        if !hooks.is_empty() {
            changes.push(format!("hooks ({})", listed(&hooks, NAMED)));
        }
        if let Some(packed) = before(REFS) {
            let moved = self.moved_refs(&git_dir, &PackedRefs::from_bytes(&packed).by_name());
            if !moved.is_empty() {
                changes.push(format!("refs ({})", listed(&moved, NAMED)));
            }
        }
        changes
    }

    /// Whether the user's repository has the same hook. Git-lfs installs its hooks in every repository that it is used in.
    fn is_users_hook(&self, git_dir: &Path, name: &str) -> bool {
        let hook = |git_dir: &Path| towline_files::read(&git_dir.join("hooks").join(name), LONGEST).ok();
        let users = self.repository.lender().and_then(|users| hook(&users.common_dir));
        users.is_some() && users == hook(git_dir)
    }

    /// Branches and tags that were added, moved or deleted.
    fn moved_refs(&self, git_dir: &Path, before: &BTreeMap<String, String>) -> Vec<String> {
        let Some(now) = refs_of(git_dir) else { return vec!["they cannot be read".to_owned()] };
        let own = self.branch().map(|branch| format!("refs/heads/{branch}"));
        let is_meant = |name: &str| name.starts_with("refs/heads/") || name.starts_with("refs/tags/");
        let differs = |name: &&String| {
            is_meant(name) && Some(*name) != own.as_ref() && before.get(*name) != now.get(*name)
        };
        let mut names: Vec<String> = before.keys().chain(now.keys()).filter(differs).cloned().collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Hooks that git would run.
fn hooks(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !name.ends_with(".sample")).collect();
    names.sort();
    names
}
