//! Taking a goal's work into a branch of the user's: the only place that changes what is theirs.
//!
//! It is worked out first, without any checkout ([`Repository::plan_merge`]): which branch, whether it is a
//! fast-forward, and otherwise all the files of the merge. A merge commit is made in the user's name, and signed if they
//! sign, only when it is meant ([`MergePlan::commit`]). Only then does the branch move, in one step that git itself
//! makes safe for the files that are there ([`MergePlan::carry_out`]). Whether the result holds is for others to find
//! out in between.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use towline_core::Commit;

use crate::git::{records, shown};
use crate::in_use::refuse_in_use;
use crate::merge_commit::{Hooks, Join};
use crate::paths::{from_bytes, settle};
use crate::worktrees::checkout_of;
use crate::{Consent, MergeError, Repository, UncommittedFrom, WorkspaceError};

/// What may be under way in a checkout: git's mark of it, its name, and the way out.
const UNDER_WAY: [(&str, &str, &str); 6] = [
    ("MERGE_HEAD", "a merge", "`git merge --continue` or `git merge --abort`"),
    ("rebase-merge", "a rebase", "`git rebase --continue` or `git rebase --abort`"),
    ("rebase-apply", "a rebase", "`git rebase --continue` or `git rebase --abort`"),
    ("CHERRY_PICK_HEAD", "a cherry-pick", "`git cherry-pick --continue` or `git cherry-pick --abort`"),
    ("REVERT_HEAD", "a revert", "`git revert --continue` or `git revert --abort`"),
    ("BISECT_LOG", "a bisection", "`git bisect reset`"),
];

/// For a merge that changes the hooks themselves.
const NO_HOOKS: [&str; 1] = ["core.hooksPath=/dev/null"];

/// What is to be merged.
#[derive(Debug, Clone, Copy)]
pub struct MergeRequest<'a> {
    /// The commit with the work.
    pub candidate: &'a Commit,
    /// The commit that the work started from.
    pub base: &'a Commit,
    /// The branch that it goes into; what is checked out where the repository is, if none is named.
    pub into: Option<&'a str>,
    /// The message of the commit, where one is made.
    pub message: &'a str,
    /// Which commit the branch gets.
    pub style: MergeStyle,
}

/// Which commit a branch gets. Each of them has the same files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MergeStyle {
    /// The candidate itself where the branch has not moved on, otherwise a merge commit.
    #[default]
    FastForward,
    /// A merge commit in any case.
    MergeCommit,
    /// One commit on top of the branch with all of the work.
    Squash,
    /// The candidate with another message where the branch has not moved on, otherwise a merge commit.
    Reword,
}

/// How a branch gets the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeWay {
    /// It has it.
    AlreadyThere,
    /// It moves on to the candidate itself.
    FastForward,
    /// A merge commit joins the two.
    MergeCommit,
    /// One commit on top of it has all of the work.
    Squash,
    /// It moves on to a commit that has the candidate's files and parents, and another message.
    Reworded,
}

/// What the branch will hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergedFiles {
    /// Exactly the candidate's files.
    AsInCandidate,
    /// The candidate's changes together with others that it has not seen.
    Mixed,
}

/// A merge that is worked out and not yet made. It changes nothing.
#[derive(Debug, Clone)]
#[must_use]
pub struct MergePlan {
    pub into: String,
    /// The commit that it is at.
    pub before: Commit,
    /// The commit that it will be at; none as long as it is a merge commit that is not made yet.
    pub after: Option<Commit>,
    pub way: MergeWay,
    /// What it will hold.
    pub files: MergedFiles,
    /// Paths that will change in the branch.
    pub changed: Vec<String>,
    repository: Repository,
    /// Where the branch is checked out, if it is.
    checkout: Option<Repository>,
    join: Join,
}

/// A branch that can be moved.
struct Target {
    branch: String,
    at: Commit,
    checkout: Option<Repository>,
}

impl Repository {
    /// Works out how a branch gets a goal's work, and refuses what cannot be done without losing or mixing up
    /// anything. No branch, index or file changes.
    pub fn plan_merge(&self, request: &MergeRequest<'_>) -> Result<MergePlan, MergeError> {
        self.require(request.candidate)?;
        let target = match request.into {
            Some(branch) => self.named_target(branch)?,
            None => self.target_here()?,
        };
        let plan = self.work_out(request, target)?;
        if plan.way != MergeWay::AlreadyThere
            && let Some(checkout) = &plan.checkout
        {
            refuse_unfinished(checkout)?;
            refuse_overwriting(checkout, &plan, request.base)?;
        }
        Ok(plan)
    }

    /// What is checked out here.
    fn target_here(&self) -> Result<Target, MergeError> {
        refuse_unfinished(self)?;
        let branch = current_branch(self)?;
        let branch = branch.ok_or_else(|| MergeError::Detached { root: self.root().to_path_buf() })?;
        let at = self.resolve("HEAD")?;
        Ok(Target { branch, at, checkout: Some(self.clone()) })
    }

    /// A branch by its name, checked out somewhere or not.
    fn named_target(&self, branch: &str) -> Result<Target, MergeError> {
        let Some(at) = self.find_commit(&format!("refs/heads/{branch}"))? else {
            return Err(MergeError::NoSuchBranch {
                branch: branch.to_owned(),
                root: self.root().to_path_buf(),
            });
        };
        let checkout = match checkout_of(self, branch)? {
            Some(path) => Some(Self::discover(&path)?),
            None => {
                refuse_in_use(self, branch)?;
                None
            }
        };
        Ok(Target { branch: branch.to_owned(), at, checkout })
    }

    fn work_out(&self, request: &MergeRequest<'_>, target: Target) -> Result<MergePlan, MergeError> {
        let MergeRequest { candidate, base, .. } = *request;
        let Target { branch: into, at: before, checkout } = target;
        let plan = |way, tree: &str, after: Option<&Commit>, files| {
            Ok::<_, MergeError>(MergePlan {
                into: into.clone(),
                before: before.clone(),
                after: after.cloned(),
                way,
                files,
                changed: self.changed_paths(before.as_str(), tree)?,
                repository: self.clone(),
                checkout: checkout.clone(),
                join: Join {
                    tree: tree.to_owned(),
                    parents: self.parents(way, &before, candidate)?,
                    message: request.message.to_owned(),
                },
            })
        };
        let commit_way = match request.style {
            MergeStyle::Squash => MergeWay::Squash,
            _ => MergeWay::MergeCommit,
        };
        let there = |files| plan(MergeWay::AlreadyThere, before.as_str(), Some(&before), files);
        if before == *candidate {
            return there(MergedFiles::AsInCandidate);
        }
        if self.is_on_top(&before, candidate)? {
            return there(MergedFiles::Mixed);
        }
        let committed_base = self.committed_base(base)?;
        let comes_from_base = before == committed_base || self.is_on_top(&before, &committed_base)?;
        if request.into.is_none() && !comes_from_base {
            let holding = self.branches_with(&committed_base)?;
            return Err(MergeError::OtherBranch { into, base: committed_base.to_string(), holding });
        }
        if self.is_on_top(candidate, &before)? {
            let files = MergedFiles::AsInCandidate;
            let tree = self.tree_of(candidate)?;
            return match request.style {
                MergeStyle::FastForward => {
                    plan(MergeWay::FastForward, candidate.as_str(), Some(candidate), files)
                }
                MergeStyle::Reword => plan(MergeWay::Reworded, &tree, None, files),
                MergeStyle::MergeCommit | MergeStyle::Squash => plan(commit_way, &tree, None, files),
            };
        }
        let tree = match self.join(&before, candidate, base, &committed_base)? {
            Joined::Clean(tree) => tree,
            Joined::Conflicts(files) => return Err(MergeError::Conflicts { into, files }),
        };
        if tree == self.tree_of(&before)? {
            return there(MergedFiles::Mixed);
        }
        let files = match tree == self.tree_of(candidate)? {
            true => MergedFiles::AsInCandidate,
            false => MergedFiles::Mixed,
        };
        plan(commit_way, &tree, None, files)
    }

    /// The parents of the commit that is made.
    fn parents(
        &self,
        way: MergeWay,
        before: &Commit,
        candidate: &Commit,
    ) -> Result<Vec<Commit>, WorkspaceError> {
        match way {
            MergeWay::AlreadyThere | MergeWay::FastForward => Ok(Vec::new()),
            MergeWay::MergeCommit => Ok(vec![before.clone(), candidate.clone()]),
            MergeWay::Squash => Ok(vec![before.clone()]),
            MergeWay::Reworded => {
                let parents =
                    self.git().command("rev-list").args(["--parents", "-1", candidate.as_str()]).line()?;
                Ok(parents.split(' ').skip(1).map(Commit::new).collect())
            }
        }
    }

    /// The tree of both together. Where the base is a snapshot of uncommitted changes that the branch has by now, in
    /// whatever commit, they are nobody's change any more, so that they cannot conflict with the work on them.
    pub(crate) fn join(
        &self,
        ours: &Commit,
        theirs: &Commit,
        base: &Commit,
        committed_base: &Commit,
    ) -> Result<Joined, WorkspaceError> {
        let is_snapshot = base != committed_base;
        if is_snapshot && self.merge_trees(ours, base)? == Joined::Clean(self.tree_of(ours)?) {
            let on_snapshot = self.commit_tree(&self.tree_of(ours)?, base, "towline: for a merge")?;
            return self.merge_trees(&on_snapshot, theirs);
        }
        self.merge_trees(ours, theirs)
    }

    fn merge_trees(&self, ours: &Commit, theirs: &Commit) -> Result<Joined, WorkspaceError> {
        let options = ["--write-tree", "--name-only", "--no-messages", "-z", ours.as_str(), theirs.as_str()];
        // The tree comes first.
        Ok(match self.git().command("merge-tree").args(options).yes_or_no()? {
            Ok(listing) => Joined::Clean(records(&listing).next().map(shown).unwrap_or_default()),
            Err(listing) => Joined::Conflicts(records(&listing).skip(1).map(shown).collect()),
        })
    }

    /// The user's branches that have this commit.
    fn branches_with(&self, commit: &Commit) -> Result<Vec<String>, WorkspaceError> {
        let contains = format!("--contains={commit}");
        let list = self
            .git()
            .command("for-each-ref")
            .args([&contains, "--format=%(refname:lstrip=2)", "refs/heads"])
            .line()?;
        Ok(list.lines().filter(|branch| !branch.starts_with("towline/")).map(str::to_owned).collect())
    }

    /// Paths in which two commits or trees differ, as people read them.
    pub(crate) fn changed_paths(&self, from: &str, to: &str) -> Result<Vec<String>, WorkspaceError> {
        Ok(self.differing_paths(from, to)?.iter().map(|path| shown(path)).collect())
    }

    /// Paths in which two commits or trees differ.
    pub(crate) fn differing_paths(&self, from: &str, to: &str) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
        let options = ["-r", "--name-only", "--no-renames", "-z", from, to];
        let listing = self.git().command("diff-tree").args(options).run()?;
        Ok(records(&listing).map(<[u8]>::to_vec).collect())
    }
}

/// What comes of joining two trees.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    Clean(String),
    Conflicts(Vec<String>),
}

impl MergePlan {
    /// Where the branch is checked out, if it is.
    pub fn checkout(&self) -> Option<&Path> {
        self.checkout.as_ref().map(Repository::root)
    }

    /// Gives the commit another message, unless it is made already.
    pub fn set_message(&mut self, message: String) {
        self.join.message = message;
    }

    /// The commit that the branch will be at. A merge commit is made now if it is not yet, which may ask the user for the
    /// key that they sign with; nothing else changes.
    pub fn commit(&mut self) -> Result<Commit, MergeError> {
        if let Some(made) = &self.after {
            return Ok(made.clone());
        }
        let hooks = if self.changed_hooks()?.is_empty() { Hooks::Run } else { Hooks::Skip };
        let made = self.repository.commit_merge(&self.join, hooks)?;
        self.after = Some(made.clone());
        Ok(made)
    }

    /// Files that the merge changes in the folder with the user's hooks, where that is part of the working tree. Git would
    /// run them as soon as they are there, so it runs no hooks.
    pub fn changed_hooks(&self) -> Result<Vec<String>, MergeError> {
        let Some(checkout) = &self.checkout else { return Ok(Vec::new()) };
        let git = checkout.users_git();
        let asked = ["--path-format=absolute", "--git-path", "hooks"];
        let hooks = git.command("rev-parse").args(asked).path()?;
        // Husky's own hooks are in `_`, and run those beside it.
        let hooks = if hooks.ends_with("_") { hooks.parent().unwrap_or(&hooks) } else { &hooks };
        let within = |folder: &Path, root: &Path| folder.strip_prefix(root).ok().map(Path::to_path_buf);
        let folders = [within(hooks, checkout.root()), within(&settle(hooks), &settle(checkout.root()))];
        let folders: Vec<String> =
            folders.iter().flatten().map(|folder| shown(folder.as_os_str().as_bytes())).collect();
        let is_hook =
            |path: &&String| folders.iter().any(|folder| folder.is_empty() || overlaps(path, folder));
        Ok(self.changed.iter().filter(is_hook).cloned().collect())
    }

    /// Moves the branch, and the files where it is checked out. All of it happens or nothing. Refused when the branch
    /// is not where it was any more. What hooks of the user do after that is their affair. Gives the commit.
    pub fn carry_out(&mut self) -> Result<Commit, MergeError> {
        let after = self.commit()?;
        if self.way == MergeWay::AlreadyThere {
            return Ok(after);
        }
        let Some(checkout) = &self.checkout else {
            // The checks may have run for long: files that show the branch by now would be left behind by it.
            let reference = format!("refs/heads/{}", self.into);
            let is_there = self.repository.find_commit(&reference)?.as_ref() == Some(&self.before)
                && checkout_of(&self.repository, &self.into)?.is_none();
            if !is_there {
                return Err(self.moved());
            }
            refuse_in_use(&self.repository, &self.into)?;
            let args = ["-m", "towline: merge", &reference, after.as_str(), self.before.as_str()];
            let updated = self.repository.users_git().command("update-ref").args(args).run();
            return self.outcome(after, updated);
        };
        let is_there = current_branch(checkout)?.as_ref() == Some(&self.into)
            && checkout.find_commit("HEAD")?.as_ref() == Some(&self.before);
        if !is_there {
            return Err(self.moved());
        }
        let options = ["--ff-only", "--no-autostash", "--no-overwrite-ignore", "--no-squash", "--quiet"];
        let git = checkout.users_git();
        let git = if self.changed_hooks()?.is_empty() { git } else { git.with_settings(&NO_HOOKS) };
        let merged = git.command("merge").args(options).arg(after.as_str()).run();
        self.outcome(after, merged)
    }

    /// What came of a command that was to move the branch: it has the commit or not, whatever a hook has put on top of it
    /// and the message of the command.
    fn outcome(&self, after: Commit, ended: Result<Vec<u8>, WorkspaceError>) -> Result<Commit, MergeError> {
        let at = self.repository.find_commit(&format!("refs/heads/{}", self.into))?;
        if let Some(at) = at
            && (at == after || self.repository.is_on_top(&at, &after)?)
        {
            return Ok(after);
        }
        ended?;
        Err(self.moved())
    }

    fn moved(&self) -> MergeError {
        MergeError::Moved { into: self.into.clone(), before: self.before.to_string() }
    }
}

/// The branch that is checked out, if one is. Git's own short name would be another one where a tag is called the same.
pub(crate) fn current_branch(checkout: &Repository) -> Result<Option<String>, WorkspaceError> {
    let head =
        checkout.git().command("symbolic-ref").args(["--quiet", "HEAD"]).query()?.map(|name| shown(&name));
    Ok(head.and_then(|name| name.trim_end().strip_prefix("refs/heads/").map(str::to_owned)))
}

/// Refuses a checkout in which somebody is in the middle of something.
fn refuse_unfinished(checkout: &Repository) -> Result<(), MergeError> {
    let root = || checkout.root().to_path_buf();
    let found = UNDER_WAY.iter().find(|(mark, ..)| checkout.git_dir.join(mark).exists());
    if let Some((_, what, way_out)) = found {
        return Err(MergeError::Unfinished { root: root(), what, way_out });
    }
    let unmerged = checkout.git().command("ls-files").args(["--unmerged", "-z"]).run()?;
    if unmerged.is_empty() {
        return Ok(());
    }
    let way_out = "resolve it, then `git add` its files";
    Err(MergeError::Unfinished { root: root(), what: "a conflict that is not resolved", way_out })
}

/// Refuses to write over what is in no commit, ignored files included.
fn refuse_overwriting(checkout: &Repository, plan: &MergePlan, base: &Commit) -> Result<(), MergeError> {
    let uncommitted = checkout.uncommitted()?;
    let mut in_the_way: BTreeSet<String> = uncommitted
        .into_iter()
        .filter(|path| plan.changed.iter().any(|changed| overlaps(path, changed)))
        .collect();
    in_the_way.extend(ignored_in_the_way(checkout, plan)?);
    if in_the_way.is_empty() {
        return Ok(());
    }
    let is_snapshot = checkout.committed_base(base)? != *base;
    let same_as_base = is_snapshot && {
        let now = checkout.snapshot_dirty(Consent::AnySize)?;
        checkout.tree_of(&now.base)? == checkout.tree_of(base)?
    };
    let origin = if same_as_base { UncommittedFrom::GoalsStart } else { UncommittedFrom::Elsewhere };
    let root = checkout.root().to_path_buf();
    Err(MergeError::InTheWay { root, files: in_the_way.into_iter().collect(), origin })
}

/// Files on disk where the merge adds some; those that are not ignored are known as uncommitted already.
fn ignored_in_the_way(checkout: &Repository, plan: &MergePlan) -> Result<Vec<String>, WorkspaceError> {
    let options = ["-r", "--name-only", "--no-renames", "--diff-filter=A", "-z"];
    let git = checkout.git();
    let listing =
        git.command("diff-tree").args(options).args([plan.before.as_str(), &plan.join.tree]).run()?;
    let there = |path: &&[u8]| checkout.root().join(from_bytes(path)).symlink_metadata().is_ok();
    Ok(records(&listing).filter(there).map(shown).collect())
}

/// Whether the two are one place, or one of them lies in the other.
fn overlaps(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim_end_matches('/'), other.trim_end_matches('/'));
    let holds = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    holds(one, other) || holds(other, one)
}
