//! Candidates: the commit of all of an agent's work that a verdict speaks about, with protected paths as in
//! the base. Taking the snapshot is `private_index`'s part, matching paths `protect`'s.

use std::collections::BTreeSet;
use std::fs;

use towline_core::Commit;

use crate::git::{records, shown};
use crate::guard;
use crate::paths::{from_bytes, is_directory, parents};
use crate::private_index::PrivateIndex;
use crate::raw_diff::{self, Changed, Changes};
use crate::snapshot::Snapshot;
use crate::threads::finish;
use crate::tree::Mode;
use crate::workspace::Parent;
use crate::{Protect, Repository, Workspace, WorkspaceError};

/// The exact commit that is checked, and merged when the checks pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The commit; its parent is `head`, or it is that.
    pub commit: Commit,
    /// The commit that the agent's workspace was on: its own last commit, or the base when it made none.
    pub head: Commit,
    /// The commit's tree: two candidates with the same tree hold the same work.
    pub tree: String,
    /// Protected paths that had been changed, deleted or added, and are as in the base here.
    pub restored: Vec<String>,
    /// Paths with work of the agent that was in no commit of its own. Protected paths are not among them: what
    /// was done to those is no part of the candidate.
    pub uncommitted: Vec<String>,
    /// What a person should know about how the candidate came to be.
    pub warnings: Vec<String>,
    /// Files beside tracked ones that git ignores, so that they are no part of the candidate.
    pub ignored: Vec<String>,
}

impl Workspace {
    /// Makes candidate number `n`: everything in the workspace that is not ignored, committed or not, with
    /// protected paths as in the base. The agent's index, HEAD, branch and files stay as they are. The commit
    /// has a private ref, which protects it from `git gc`; asking again for the same number and work gives the same commit.
    pub fn candidate(&self, n: u32, protect: &Protect) -> Result<Candidate, WorkspaceError> {
        // Side by side, because each of them waits for git.
        let (snapshot, parent) = std::thread::scope(|scope| {
            let parent = scope.spawn(|| self.parent());
            (self.snapshot(), finish(parent))
        });
        let Parent { commit: head, tree: head_tree, mut warnings } = parent?;
        let snapshot = snapshot?;
        let (ignored, since_head) = std::thread::scope(|scope| {
            let ignored = scope.spawn(|| ignored_files(&snapshot));
            (finish(ignored), changes_since(&snapshot.index, &head))
        });
        let (ignored, mut since_head) = (ignored?, since_head?);
        self.put_back_absent(&snapshot, &mut since_head)?;
        let restored = if head == *self.base() {
            restore(&snapshot.index, self.base(), &since_head, protect)?
        } else {
            restore(&snapshot.index, self.base(), &changes_since(&snapshot.index, self.base())?, protect)?
        };
        let is_head = since_head.is_empty() && restored.is_empty();
        let mut changed: BTreeSet<Vec<u8>> = since_head.into_keys().collect();
        changed.extend(snapshot.dirty_submodules);
        changed.retain(|path| !protect.covers(from_bytes(path)));
        let mut uncommitted: Vec<String> = changed.iter().map(|path| shown(path)).collect();
        uncommitted.retain(|path| !restored.contains(path));
        warnings.extend(snapshot.warnings);
        let in_clone = self.clone_changes();
        if !in_clone.is_empty() {
            warnings.push(format!(
                "the agent changed in its clone, without effect elsewhere: {}",
                in_clone.join(", ")
            ));
        }
        if self.is_in_place() && !restored.is_empty() {
            warnings.push(format!(
                "protected paths are judged as they were, but stay changed in your files: {}",
                restored.join(", ")
            ));
        }

        let repo = &self.repository;
        let tree = if is_head { head_tree } else { snapshot.index.write_tree()? };
        let reference = format!("refs/towline/{}/candidates/{n}", self.goal());
        let commit = if is_head {
            head.clone()
        } else if let Some(made_before) = same_commit(repo, &reference, &tree, &head)? {
            made_before
        } else {
            repo.commit_tree(&tree, &head, &self.message(n))?
        };
        if !is_head {
            repo.store(&commit, &head)?;
        }
        // The base has a ref of its own.
        if commit != *self.base() {
            repo.keep(&reference, &commit)?;
        }
        Ok(Candidate { commit, head, tree, restored, uncommitted, warnings, ignored })
    }
}

/// Files that are ignored, without those in directories that are ignored as a whole.
fn ignored_files(snapshot: &Snapshot) -> Result<Vec<String>, WorkspaceError> {
    let options = ["--others", "--ignored", "--exclude-standard", "--directory", "-z"];
    let listing = snapshot.index.git.command("ls-files").args(options).run()?;
    Ok(records(&listing).filter(|path| !path.ends_with(b"/")).map(shown).collect())
}

impl Repository {
    /// A candidate that was made before, as it was when it was judged first: from its commit, the one that the agent was on,
    /// and what was put back. An agent can give a commit of its own any author and subject, so nothing is concluded from those.
    pub fn candidate_again(
        &self,
        commit: &Commit,
        head: Option<&Commit>,
        restored: &[String],
    ) -> Result<Candidate, WorkspaceError> {
        let plain = self.as_candidate(commit)?;
        let head = head.unwrap_or(commit).clone();
        let mut uncommitted = self.changed_paths(head.as_str(), commit.as_str())?;
        uncommitted.retain(|path| !restored.contains(path));
        Ok(Candidate { head, uncommitted, restored: restored.to_vec(), ..plain })
    }
}

impl Workspace {
    /// The tree of a snapshot, in which what is not there on purpose is as in the base.
    pub(crate) fn whole_tree(&self, snapshot: &Snapshot) -> Result<String, WorkspaceError> {
        if !snapshot.left_out.is_empty() {
            self.put_back_absent(snapshot, &mut changes_since(&snapshot.index, self.base())?)?;
        }
        snapshot.index.write_tree()
    }

    /// Gives what is not there on purpose the content that it has in a commit: files that a sparse checkout leaves out, and
    /// submodules that are not filled. The snapshot has these changes since the commit, and less of them afterwards.
    fn put_back_absent(&self, snapshot: &Snapshot, changes: &mut Changes) -> Result<(), WorkspaceError> {
        let is_unfilled = |path: &Vec<u8>| {
            let directory = self.path().join(from_bytes(path));
            is_directory(&directory) && fs::symlink_metadata(directory.join(".git")).is_err()
        };
        let is_absent = |path: &Vec<u8>, changed: &Changed| {
            let is_submodule = |side| raw_diff::is(side, Mode::Submodule);
            changed.before.is_some()
                && (snapshot.left_out.contains(path)
                    || (is_submodule(&changed.before) && is_submodule(&changed.after) && is_unfilled(path)))
        };
        let absent = changes.iter().filter(|(path, changed)| is_absent(path, changed));
        let entries = absent.filter_map(|(path, changed)| Some((path.as_slice(), changed.before.as_ref()?)));
        snapshot.index.insert(entries)?;
        changes.retain(|path, changed| !is_absent(path, changed));
        Ok(())
    }
}

/// The commit under the ref, if it has this tree and this parent: a call that is repeated after a crash.
fn same_commit(
    repo: &Repository,
    reference: &str,
    tree: &str,
    parent: &Commit,
) -> Result<Option<Commit>, WorkspaceError> {
    let parts = ["^{commit}", "^{tree}", "^1", "^2"];
    let [commit, its_tree, its_parent, another_parent] =
        repo.find_objects(parts.map(|part| format!("{reference}{part}")))?;
    let is_same = its_tree.as_deref() == Some(tree)
        && its_parent.as_deref() == Some(parent.as_str())
        && another_parent.is_none();
    Ok(commit.filter(|_| is_same).map(Commit::new))
}

/// Gives protected paths in the index, which has these changes since the base, the content they have there; returns
/// their names.
fn restore(
    index: &PrivateIndex,
    base: &Commit,
    changes: &Changes,
    protect: &Protect,
) -> Result<Vec<String>, WorkspaceError> {
    let touched = guard::protected(&index.git, base, changes, protect)?;
    // A file or symlink where the base has a directory with protected paths is in their way.
    let in_the_way: BTreeSet<&[u8]> = touched
        .iter()
        .filter(|path| changes[**path].before.is_some())
        .flat_map(|path| parents(path))
        .filter_map(|parent| changes.get_key_value(parent).map(|(path, _)| path.as_slice()))
        .collect();
    let restored: BTreeSet<&[u8]> = touched.union(&in_the_way).copied().collect();
    if restored.is_empty() {
        return Ok(Vec::new());
    }

    // Removals first, so that nothing is in the place of a restored path.
    index.forget(restored.iter().copied())?;
    index.insert(touched.iter().filter_map(|path| Some((*path, changes[*path].before.as_ref()?))))?;
    Ok(restored.into_iter().map(shown).collect())
}

/// All paths in which the index differs from a commit.
pub(crate) fn changes_since(index: &PrivateIndex, commit: &Commit) -> Result<Changes, WorkspaceError> {
    let listing = index
        .git
        .command("diff-index")
        .args(["--cached", "--raw", "--no-renames", "--ignore-submodules=none", "-z", commit.as_str()])
        .run()?;
    Ok(raw_diff::parse(&listing))
}
