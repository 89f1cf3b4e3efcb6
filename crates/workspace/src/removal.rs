//! What a goal leaves in a repository, and taking it away without losing work. All of it is asked of our own repository of
//! the goal, which knows the user's.
//!
//! Work counts as merged when a branch, remote branch or tag of the user's has it, or when the branch that they are on has
//! the same changes in other commits. Whatever is not is given a name under `refs/towline/removed/` before anything is
//! deleted ([`Repository::keep_unmerged`]). All steps can be repeated after a crash at any point.

use std::path::{Path, PathBuf};

use towline_core::Commit;

use crate::git::{records, shown};
use crate::marks::WORKSPACE;
use crate::merge::{Joined, current_branch};
use crate::paths::{is_there, place_of, remove_tree, settle};
use crate::private_index::joined;
use crate::worktrees::{self, checkout_of};
use crate::{Protect, Repository, Workspace, WorkspaceError, unless_git_failed};

/// The number of a candidate that belongs to no attempt: what is in a workspace now.
pub const AS_IT_IS_NOW: u32 = 0;

/// Where the branches of goals are.
pub(crate) const OUR_BRANCHES: &str = "refs/heads/towline/";

/// Where the parts of a goal are in its repository.
#[derive(Debug, Clone)]
pub struct Remains {
    /// The goal's id, as used in refs.
    pub goal: String,
    /// Where its workspace is or was.
    pub path: PathBuf,
    /// The branch that it ends as.
    pub branch: String,
    /// The commit it started from.
    pub base: Commit,
    /// The last commit that was judged.
    pub candidate: Option<Commit>,
    /// What was put back as in the base in candidates, and is no work therefore.
    pub protect: Protect,
}

/// What kind of work is in no branch of the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// Files in the workspace, committed there or not.
    Files,
    /// Commits on the goal's branch.
    Branch,
    /// The commit that was judged last.
    Candidate,
}

impl WorkKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Files => "work",
            Self::Branch => "branch",
            Self::Candidate => "candidate",
        }
    }
}

/// Work that would be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmerged {
    /// Where it is.
    pub kind: WorkKind,
    /// All of it, as a commit.
    pub commit: Commit,
}

/// Work that has a name of ours now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreservedWork {
    pub reference: String,
    pub commit: Commit,
}

/// What could not be taken away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftBehind {
    /// A directory whose content cannot be determined, or whose submodules have work.
    pub files: Option<PathBuf>,
    /// Submodules with work that only they have, for which the whole workspace is left.
    pub submodules: Vec<String>,
    /// Where the user has the goal's branch checked out.
    pub branch_in: Option<PathBuf>,
}

impl Repository {
    /// The user's repository, which sees what is in our own; our own where there is no other.
    fn users(&self) -> Self {
        self.lender().map_or_else(|| self.clone(), |users| users.seeing(self))
    }

    /// The goal's work that none of the user's branches has. What is in the worktree is put into a commit for that.
    pub fn unmerged(&self, remains: &Remains) -> Result<Vec<Unmerged>, WorkspaceError> {
        let mut found = Vec::new();
        let mut add = |kind, commit: Commit| -> Result<(), WorkspaceError> {
            if !self.is_safe(&remains.goal, &remains.base, &commit)? {
                found.push(Unmerged { kind, commit });
            }
            Ok(())
        };
        self.must_hold(&remains.base, remains.candidate.as_ref())?;
        let candidate = remains.candidate.as_ref();
        if let Some(candidate) = candidate {
            add(WorkKind::Candidate, candidate.clone())?;
        }
        if let Some(files) = self.work_in_files(remains, candidate)? {
            add(WorkKind::Files, files)?;
        }
        if let Some(branch) = self.users().find_commit(&format!("refs/heads/{}", remains.branch))? {
            add(WorkKind::Branch, branch)?;
        }
        self.without_contained(found)
    }

    /// Fails when the repository is another one than a goal's: what the goal has begun with, and what was judged last, is
    /// in its own. For any other one it is unknown what is merged.
    pub fn must_hold(&self, base: &Commit, candidate: Option<&Commit>) -> Result<(), WorkspaceError> {
        self.require(base)?;
        if let Some(users) = self.lender() {
            users.require(&self.committed_base(base)?)?;
        }
        candidate.map_or(Ok(()), |candidate| self.require(candidate))
    }

    /// What is in the worktree, unless it is the candidate.
    fn work_in_files(
        &self,
        remains: &Remains,
        candidate: Option<&Commit>,
    ) -> Result<Option<Commit>, WorkspaceError> {
        let Some(workspace) = self.workspace_of(remains)? else { return Ok(None) };
        let judged = workspace.candidate(AS_IT_IS_NOW, &remains.protect)?;
        if let Some(candidate) = candidate
            && judged.tree == self.tree_of(candidate)?
        {
            return Ok(None);
        }
        Ok(Some(workspace.candidate(AS_IT_IS_NOW, &Protect::nothing())?.commit))
    }

    /// Changes of protected files in the workspace, which no candidate has and nobody judges: a test that the agent wrote is
    /// work all the same. They get a name of ours.
    pub fn keep_protected(&self, remains: &Remains) -> Result<Option<PreservedWork>, WorkspaceError> {
        let Some(workspace) = self.workspace_of(remains)? else { return Ok(None) };
        let judged = workspace.candidate(AS_IT_IS_NOW, &remains.protect)?;
        let files = workspace.candidate(AS_IT_IS_NOW, &Protect::nothing())?;
        if files.tree == judged.tree || self.is_safe(&remains.goal, &remains.base, &files.commit)? {
            return Ok(None);
        }
        let work = Unmerged { kind: WorkKind::Files, commit: files.commit };
        Ok(self.keep_unmerged(&remains.goal, &[work])?.pop())
    }

    /// The workspace, if it is there.
    fn workspace_of(&self, remains: &Remains) -> Result<Option<Workspace>, WorkspaceError> {
        let path = place_of(&remains.path);
        if !is_there(&path)? {
            return Ok(None);
        }
        Workspace::open(self, &remains.goal, &path, &remains.branch, &remains.base).map(Some)
    }

    /// Submodules of the worktree with work that no commit of ours can hold.
    pub fn work_in_submodules(&self, remains: &Remains) -> Result<Vec<String>, WorkspaceError> {
        match self.workspace_of(remains)? {
            Some(workspace) => workspace.submodules_with_work(),
            None => Ok(Vec::new()),
        }
    }

    /// Whether the commit holds no work, or the user has it, or we have preserved it before.
    fn is_safe(&self, goal: &str, base: &Commit, commit: &Commit) -> Result<bool, WorkspaceError> {
        Ok(self.tree_of(commit)? == self.tree_of(base)?
            || self.is_named(goal, commit)?
            || self.is_there_in_other_commits(base, commit)?)
    }

    /// Whether the branch that the user is on, or the one that it follows, has the commit's changes already, as after a
    /// squash or a rebase.
    fn is_there_in_other_commits(&self, base: &Commit, commit: &Commit) -> Result<bool, WorkspaceError> {
        for at in self.users().tips()? {
            if self.has_changes_of(&at, commit, base)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The tips of the branch that the user's current branch follows, and of the current branch itself. A goal's branch is left out:
    /// it goes with the goal.
    pub(crate) fn tips(&self) -> Result<Vec<Commit>, WorkspaceError> {
        let Some(branch) = current_branch(self)?.map(|branch| format!("refs/heads/{branch}")) else {
            return Ok(Vec::new());
        };
        let followed = self.git().command("for-each-ref").args(["--format=%(upstream)", &branch]).line()?;
        let is_users = |name: &&String| !name.is_empty() && !name.starts_with(OUR_BRANCHES);
        let names = [followed, branch];
        names.iter().filter(is_users).filter_map(|name| self.find_commit(name).transpose()).collect()
    }

    /// Whether `at` has what the commit changes: joining them would change nothing.
    fn has_changes_of(&self, at: &Commit, commit: &Commit, base: &Commit) -> Result<bool, WorkspaceError> {
        let committed_base = self.committed_base(base)?;
        let work = self.differing_paths(committed_base.as_str(), commit.as_str())?;
        let elsewhere = self.differing_paths(at.as_str(), commit.as_str())?;
        let to_join: Vec<&[u8]> = work.intersection(&elsewhere).map(Vec::as_slice).collect();
        if to_join.is_empty() {
            return Ok(true);
        }
        // Such a rule may drop one side.
        if self.have_rule_for_merges(&to_join)? {
            return Ok(false);
        }
        // Branches that have nothing in common cannot be joined.
        let joined = unless_git_failed(self.join(at, commit, base, &committed_base))?;
        Ok(joined.is_some() && joined == Some(Joined::Clean(self.tree_of(at)?)))
    }

    /// Whether attributes merge one of the paths in another way than line by line or as a whole.
    fn have_rule_for_merges(&self, paths: &[&[u8]]) -> Result<bool, WorkspaceError> {
        let input = joined(paths.iter().copied());
        let git = self.users().git();
        let answer = git.command("check-attr").args(["-z", "--stdin", "merge"]).input(input).run()?;
        // Records come in threes: the path, the attribute, its value.
        let mut values = records(&answer).skip(2).step_by(3).map(shown);
        Ok(values.any(|value| !["unspecified", "set", "unset", "text", "binary"].contains(&value.as_str())))
    }

    /// Whether a branch, remote branch or tag of the user's has the commit, or a ref under which we have preserved it.
    fn is_named(&self, goal: &str, commit: &Commit) -> Result<bool, WorkspaceError> {
        let contains = format!("--contains={commit}");
        let preserved = preserved_prefix(goal);
        let places = ["refs/heads", "refs/remotes", "refs/tags", &preserved];
        let git = self.users().git();
        let list = git.command("for-each-ref").args([&contains, "--format=%(refname)"]).args(places);
        Ok(list.line()?.lines().any(|name| !name.starts_with(OUR_BRANCHES)))
    }

    /// Only what is not part of other work in the list.
    fn without_contained(&self, all: Vec<Unmerged>) -> Result<Vec<Unmerged>, WorkspaceError> {
        let mut outermost: Vec<Unmerged> = Vec::new();
        for (at, work) in all.iter().enumerate() {
            let mut contained = all[..at].iter().any(|earlier| earlier.commit == work.commit);
            for other in all.iter().filter(|other| other.commit != work.commit) {
                contained |= self.is_on_top(&other.commit, &work.commit)?;
            }
            if !contained {
                outermost.push(work.clone());
            }
        }
        Ok(outermost)
    }

    /// Gives work that would be lost a name of ours, which stays when the goal is removed.
    pub fn keep_unmerged(&self, goal: &str, work: &[Unmerged]) -> Result<Vec<PreservedWork>, WorkspaceError> {
        work.iter().map(|Unmerged { kind, commit }| self.preserve(goal, kind.name(), commit)).collect()
    }

    fn preserve(&self, goal: &str, name: &str, commit: &Commit) -> Result<PreservedWork, WorkspaceError> {
        let reference = format!("{}/{name}", preserved_prefix(goal));
        self.publish(commit, &reference)?;
        Ok(PreservedWork { reference, commit: commit.clone() })
    }

    /// Gives what a goal in the user's own directory would take with it a name of ours, unless they have it: what was
    /// there before, what was there whenever files were put back, and what was judged last. It
    /// [holds](Self::must_hold) all of that.
    pub fn keep_from_place(
        &self,
        goal: &str,
        base: &Commit,
        candidate: Option<&Commit>,
    ) -> Result<Vec<PreservedWork>, WorkspaceError> {
        let mut preserved = Vec::new();
        if !self.is_named(goal, base)? {
            preserved.push(self.preserve(goal, "before", base)?);
        }
        let replaced = self.replaced(goal)?.into_iter().map(|(n, commit)| (format!("replaced/{n}"), commit));
        let candidate = candidate.map(|commit| ("candidate".to_owned(), commit.clone()));
        for (name, commit) in replaced.chain(candidate) {
            if !self.is_safe(goal, base, &commit)? {
                preserved.push(self.preserve(goal, &name, &commit)?);
            }
        }
        Ok(preserved)
    }

    /// What was there whenever files of a goal in the user's own directory were put back, by number.
    fn replaced(&self, goal: &str) -> Result<Vec<(u32, Commit)>, WorkspaceError> {
        let prefix = format!("refs/towline/{goal}/replaced/");
        let git = self.git();
        let list = git.command("for-each-ref").args(["--format=%(objectname) %(refname)", &prefix]).line()?;
        let entries = list.lines().filter_map(|line| {
            let (commit, reference) = line.split_once(' ')?;
            Some((reference.strip_prefix(&prefix)?.parse().ok()?, Commit::new(commit)))
        });
        Ok(entries.collect())
    }

    /// The name for what is there when files are put back the next time. No earlier one is given up for it.
    pub(crate) fn next_replaced(&self, goal: &str) -> Result<String, WorkspaceError> {
        let last = self.replaced(goal)?.into_iter().map(|(n, _)| n).max().unwrap_or_default();
        Ok(format!("refs/towline/{goal}/replaced/{}", last + 1))
    }

    /// Removes the goal's workspace and branch. Nobody asks any more what is in them: that is for
    /// [`Repository::unmerged`], before. Only a workspace whose submodules have work is left, because nothing can hold that.
    pub fn remove_workspace(&self, remains: &Remains) -> Result<LeftBehind, WorkspaceError> {
        let path = place_of(&remains.path);
        let submodules = self.work_in_submodules(remains)?;
        let mut left = LeftBehind { submodules, ..LeftBehind::default() };
        let users = self.users();
        let linked = worktrees::find(&users, &path)?;
        let is_goals = linked.is_some() || self.note(WORKSPACE)?.is_some();
        if left.submodules.is_empty() && (is_goals || !is_there(&path)?) {
            users.must_be_outside(&path)?;
            remove_tree(&path)?;
            linked.iter().try_for_each(worktrees::forget)?;
            self.remove_note(WORKSPACE)?;
        } else {
            left.files = Some(path);
        }
        let reference = format!("refs/heads/{}", remains.branch);
        if let Some(at) = users.find_commit(&reference)? {
            left.branch_in = checkout_of(&users, &remains.branch)?;
            if left.branch_in.is_none() {
                users.git().command("update-ref").args(["-d", &reference, at.as_str()]).run()?;
            }
        }
        Ok(left)
    }

    /// Fails when the repository itself would go with a directory.
    fn must_be_outside(&self, path: &Path) -> Result<(), WorkspaceError> {
        let real = settle(path);
        if [self.root(), &self.git_dir, &self.common_dir].iter().any(|own| settle(own).starts_with(&real)) {
            return Err(WorkspaceError::Broken {
                path: path.to_path_buf(),
                what: "the repository itself is in it, so it is not removed".to_owned(),
            });
        }
        Ok(())
    }

    /// Removes the refs of ours that the goal has in the user's repository, all at once. What was preserved of it stays.
    pub fn remove_refs(&self, goal: &str) -> Result<(), WorkspaceError> {
        let prefix = format!("refs/towline/{goal}");
        let git = self.users().git();
        let list = git.command("for-each-ref").args(["--format=delete %(refname)", &prefix]).line()?;
        if list.is_empty() {
            return Ok(());
        }
        git.command("update-ref").arg("--stdin").input(format!("{list}\n").into_bytes()).run()?;
        Ok(())
    }
}

/// Where work of a removed goal is preserved.
fn preserved_prefix(goal: &str) -> String {
    format!("refs/towline/removed/{goal}")
}
