//! Bringing commits of a goal into the user's repository: its refs under `refs/towline/`, and its branch.

use towline_core::Commit;

use crate::paths::remove_tree;
use crate::worktrees::checkout_of;
use crate::{Repository, WorkspaceError, unless_git_failed};

/// A commit that no ref of ours names can be asked for, and what comes is hashed, whole, and visible all at once.
const FETCH_SETTINGS: [&str; 2] = ["protocol.version=2", "fetch.unpackLimit=1"];
/// In a partial clone objects may be missing that the commits name; they are fetched when they are needed.
const PARTIAL_FETCH_SETTINGS: [&str; 3] =
    ["protocol.version=2", "fetch.unpackLimit=1", "fetch.fsckObjects=false"];

impl Repository {
    /// Gives a commit of our own repository a name in the user's, with everything that belongs to it. Without another
    /// repository the name is in our own.
    pub fn publish(&self, commit: &Commit, reference: &str) -> Result<(), WorkspaceError> {
        let Some(users) = self.lender() else { return self.keep(reference, commit) };
        // First, so that the commit is never there without them.
        self.share_large_files(&self.pointers(commit)?)?;
        if users.is_whole(commit)? {
            return users.keep(reference, commit);
        }
        let is_partial = self.settings.config.iter().any(|(name, _)| name.ends_with(".promisor"));
        let settings: &[&str] = if is_partial { &PARTIAL_FETCH_SETTINGS } else { &FETCH_SETTINGS };
        self.refuse_attacks(commit, users)?;
        let quietly = [
            "--quiet",
            "--no-tags",
            "--no-prune",
            "--no-write-fetch-head",
            "--no-write-commit-graph",
            "--no-auto-maintenance",
            "--no-recurse-submodules",
        ];
        users
            .plain_git()
            .with_settings(settings)
            .command("fetch")
            .args(quietly)
            .arg(&self.git_dir)
            .arg(format!("+{commit}:{reference}"))
            .run()?;
        Ok(())
    }

    /// Fails if git takes something in the commit for an attack, such as a submodule whose name leads elsewhere. A fetch finds
    /// that out as well, but of `.gitmodules` only when the objects are already in the user's repository.
    fn refuse_attacks(&self, commit: &Commit, users: &Self) -> Result<(), WorkspaceError> {
        let tips = users.plain_git().command("for-each-ref").arg("--format=^%(objectname)").run()?;
        let revisions = [format!("{commit}\n").into_bytes(), tips].concat();
        let git = self.git();
        let pack = git.command("pack-objects").input(revisions);
        let folder = self.git_dir.join("outgoing");
        let checked = self.pack_and_check(&folder, pack, "--fsck-objects");
        remove_tree(&folder)?;
        checked.map(drop)
    }

    /// Whether a commit is there with everything that no ref has yet. Objects may have come before a crash without the rest.
    fn is_whole(&self, commit: &Commit) -> Result<bool, WorkspaceError> {
        if self.find_commit(commit.as_str())?.is_none() {
            return Ok(false);
        }
        let walk = ["--objects", "--quiet", commit.as_str(), "--not", "--all"];
        Ok(unless_git_failed(self.plain_git().command("rev-list").args(walk).run())?.is_some())
    }

    /// Sets the goal's branch in the user's repository to a commit. A branch of the user's with that name, or one that they
    /// have moved or checked out, stays as it is. Gives whether the branch is at the commit now.
    pub fn publish_branch(&self, goal: &str, branch: &str, commit: &Commit) -> Result<bool, WorkspaceError> {
        let Some(users) = self.lender() else { return Ok(false) };
        let [published, set_to] = ["published", "branch"].map(|name| format!("refs/towline/{goal}/{name}"));
        // Earlier versions had no other ref for where they had set the branch to.
        let ours = users.find_commit(&set_to)?.or(users.find_commit(&published)?);
        self.publish(commit, &published)?;
        let reference = format!("refs/heads/{branch}");
        let at = users.find_commit(&reference)?;
        let is_there = at.as_ref() == Some(commit);
        if at.is_some() && !is_there && (at != ours || checkout_of(users, branch)?.is_some()) {
            return Ok(false);
        }
        let branch_update = match at {
            Some(at) => format!("update {reference} {commit} {at}"),
            None => format!("create {reference} {commit}"),
        };
        // Both or none, or a branch of ours would pass for the user's after a crash.
        let updates = format!("{branch_update}\nupdate {set_to} {commit}\n").into_bytes();
        let options = ["-m", "towline: work of a goal", "--stdin"];
        // A branch by the first part of the name may be in the way, or somebody faster.
        let updated = users.plain_git().command("update-ref").args(options).input(updates).run();
        Ok(unless_git_failed(updated)?.is_some())
    }
}
