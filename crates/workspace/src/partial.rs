//! Partial clones: objects of a goal's base that the user's repository has only by name are fetched before anything starts, by
//! the user's git, which knows how to reach the remote.

use towline_core::{Commit, GitSettings};

use crate::settings::git_bool;
use crate::{Repository, WorkspaceError};

/// Directories can be missing at any depth, and one is known only when the one above it is there.
const MOST_ROUNDS: usize = 256;

/// What git itself does when it misses an object.
const SETTINGS: [&str; 1] = ["fetch.negotiationAlgorithm=noop"];

impl Repository {
    /// Fetches what is missing of the files of a commit. With a sparse checkout these are the directories alone: files are
    /// fetched as they are checked out.
    pub(crate) fn fetch_promised(
        &self,
        commit: &Commit,
        settings: &GitSettings,
    ) -> Result<(), WorkspaceError> {
        let Some(remote) = promisor(settings) else { return Ok(()) };
        let filter = settings.sparse.as_ref().map(|_| "--filter=blob:none");
        let mut before = String::new();
        for _ in 0..MOST_ROUNDS {
            let missing = self.missing(commit, filter)?;
            // A remote that has not sent what it was asked for would not do so the next time.
            if missing.is_empty() || missing == before {
                break;
            }
            let options = ["--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no"];
            self.git()
                .with_settings(&SETTINGS)
                .command("fetch")
                .args([remote])
                .args(options)
                .args(["--filter=blob:none", "--stdin"])
                .input(missing.clone().into_bytes())
                .run()?;
            before = missing;
        }
        Ok(())
    }

    /// The ids of objects that are not there, one a line.
    fn missing(&self, commit: &Commit, filter: Option<&str>) -> Result<String, WorkspaceError> {
        let options = ["--objects", "--no-walk", "--missing=print"];
        let git = self.plain_git();
        let listing = git.command("rev-list").args(options).args(filter).arg(commit.as_str()).line()?;
        let ids = listing.lines().filter_map(|line| line.strip_prefix('?'));
        Ok(ids.map(|id| format!("{id}\n")).collect())
    }
}

/// The remote that has what is missing.
fn promisor(settings: &GitSettings) -> Option<&str> {
    settings.config.iter().find_map(|(name, value)| match name.as_str() {
        "extensions.partialclone" => Some(value.as_str()),
        name => {
            name.strip_prefix("remote.")?.strip_suffix(".promisor").filter(|_| git_bool(value) == Some(true))
        }
    })
}
