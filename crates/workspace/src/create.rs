//! Making a goal's workspace, in a way that can be repeated after a crash at any point.
//!
//! Order of the steps, each of which the next call can see: the ref that keeps the base and the branch, git's
//! record of the worktree, its files, the copied files, and last a mark in the record that says all is there.
//! Without the mark no agent has run in it, so tracked files may be written again; nothing else ever is. A
//! worktree that has moved on from the base is left alone even then.

use std::fs;
use std::path::PathBuf;

use towline_core::Commit;

use crate::copy::CopyPlan;
use crate::embedded;
use crate::git::Git;
use crate::records::{LOCKED, On};
use crate::repository::find_commit;
use crate::workspace::removed_ref;
use crate::worktrees::{self, Durability, Linked, Place, place_of};
use crate::{Repository, Workspace, WorkspaceError};

/// The mark in git's record of a finished workspace; it holds the goal's id.
const READY: &str = "towline-ready";

/// What a workspace is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspacePlan {
    /// The goal's id, used in the names of private refs.
    pub goal: String,
    /// The branch to make, like `towline/1a2b3c4d-fix-login`.
    pub branch: String,
    /// The directory to make.
    pub path: PathBuf,
    /// The commit to start from.
    pub base: Commit,
    /// Ignored files and directories to copy from the user's checkout, relative to its root.
    pub copy: Vec<String>,
}

/// Makes the workspace, or takes up the one an earlier call made or half made for the same goal. Work that is
/// in it is never deleted; a place or a branch that belongs to something else is refused.
pub fn create(repo: &Repository, plan: &WorkspacePlan) -> Result<Workspace, WorkspaceError> {
    check_names(repo, plan)?;
    let names = [plan.base.to_string(), base_ref(&plan.goal), branch_ref(&plan.branch)];
    let [base, made_from, branch_at] = repo.find_objects(names.map(|name| name + "^{commit}"))?;
    if base.is_none() {
        return Err(repo.commit_gone(&plan.base));
    }
    let (made_from, branch_at) = (made_from.map(Commit::new), branch_at.map(Commit::new));
    let files = CopyPlan::new(repo.root(), &plan.copy)?;
    let maker = Maker { repo, plan, path: place_of(&plan.path), files, branch_at };
    match (worktrees::find(repo, &maker.path)?, made_from) {
        (None, made_from) => maker.add(made_from),
        (Some(_), None) => Err(maker.taken("it is a worktree that was not made for this goal")),
        (Some(_), Some(made_from)) if made_from != plan.base => Err(maker.other_base(&made_from)),
        (Some(linked), Some(made_from)) => maker.take_up(linked, made_from),
    }
}

/// The ref that keeps a goal's base.
fn base_ref(goal: &str) -> String {
    format!("refs/towline/{goal}/base")
}

fn branch_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

struct Maker<'a> {
    repo: &'a Repository,
    plan: &'a WorkspacePlan,
    path: PathBuf,
    files: CopyPlan,
    /// Where the goal's branch is, if there is one of that name.
    branch_at: Option<Commit>,
}

impl Maker<'_> {
    /// There is a record of a worktree at this place.
    fn take_up(self, linked: Linked, made_from: Commit) -> Result<Workspace, WorkspaceError> {
        let git = Git::at(&linked.record, self.repo.root());
        let head = find_commit(&git, "HEAD")?;
        if worktrees::look_at(&self.path)? == Place::Free {
            // Somebody deleted the directory. The commits in it are kept before git forgets them.
            if let Some(head) = &head {
                self.repo.keep(&removed_ref(&self.plan.goal), head)?;
            }
            worktrees::remove(self.repo, &linked)?;
            return self.add(Some(made_from));
        }
        match linked.mark(READY)? {
            Some(goal) if goal == self.plan.goal => Ok(self.workspace(linked, Vec::new())),
            Some(_) => Err(self.taken("it is the workspace of another goal")),
            None if head.as_ref().is_none_or(|head| *head == self.plan.base)
                && worktrees::look_at(&self.path)? == Place::HalfMade =>
            {
                worktrees::remove(self.repo, &linked)?;
                self.add(Some(made_from))
            }
            None if head.as_ref() == Some(&self.plan.base) => self.complete(linked),
            None if head.is_some() => {
                linked.set_mark(READY, &self.plan.goal, Durability::AtOnce)?;
                Ok(self.workspace(linked, Vec::new()))
            }
            None => {
                Err(WorkspaceError::Broken { path: self.path, what: "its HEAD cannot be read".to_owned() })
            }
        }
    }

    /// We were killed while the files were written: no agent has been here, so they are written once more.
    fn complete(self, linked: Linked) -> Result<Workspace, WorkspaceError> {
        for leftover in ["index.lock", LOCKED] {
            let file = linked.record.join(leftover);
            if file.exists() {
                fs::remove_file(&file).map_err(WorkspaceError::io("remove", &file))?;
            }
        }
        self.finish(linked)
    }

    /// There is no worktree at this place yet.
    fn add(self, made_from: Option<Commit>) -> Result<Workspace, WorkspaceError> {
        match worktrees::look_at(&self.path)? {
            Place::Free => {}
            Place::HalfMade => {
                let dot_git = self.path.join(".git");
                fs::remove_file(&dot_git).map_err(WorkspaceError::io("remove", &dot_git))?;
            }
            Place::Taken => return Err(self.taken("it exists and is not the workspace of this goal")),
        }
        self.prepare_branch(made_from)?;
        let linked = worktrees::add(self.repo, &self.path, On::Branch(&self.plan.branch))?;
        self.finish(linked)
    }

    /// Makes the branch, or finds it as an earlier call for this goal has left it.
    fn prepare_branch(&self, made_from: Option<Commit>) -> Result<(), WorkspaceError> {
        let WorkspacePlan { goal, branch, base, .. } = self.plan;
        let Some(at) = &self.branch_at else { return self.make_branch() };
        if let Some(path) = worktrees::checkout_of(self.repo, branch)? {
            return Err(WorkspaceError::BranchInUse { branch: branch.clone(), path });
        }
        match made_from {
            Some(made_from) if made_from != *base => Err(self.other_base(&made_from)),
            None if at != base => {
                Err(WorkspaceError::BranchTaken { branch: branch.clone(), at: at.to_string() })
            }
            _ => self.repo.keep(&base_ref(goal), base),
        }
    }

    /// Makes the branch and the ref that keeps the base: both, or none.
    fn make_branch(&self) -> Result<(), WorkspaceError> {
        let WorkspacePlan { goal, branch, base, .. } = self.plan;
        let both = format!("update {} {base}\ncreate {} {base}\n", base_ref(goal), branch_ref(branch));
        let made = self
            .repo
            .git()
            .command("update-ref")
            .args(["--create-reflog", "-m", "towline: begin", "--stdin"])
            .input(both.into_bytes())
            .run();
        if made.is_err() {
            self.refuse_branch_in_place_of_directory()?;
        }
        made.map(drop)
    }

    /// With a branch `towline`, git cannot make a branch `towline/x`.
    fn refuse_branch_in_place_of_directory(&self) -> Result<(), WorkspaceError> {
        for (slash, _) in self.plan.branch.match_indices('/') {
            let branch = &self.plan.branch[..slash];
            if let Some(at) = self.repo.find_commit(&branch_ref(branch))? {
                return Err(WorkspaceError::BranchTaken { branch: branch.to_owned(), at: at.to_string() });
            }
        }
        Ok(())
    }

    /// The last steps: the files, the copied ones, and the mark that all is there.
    fn finish(self, linked: Linked) -> Result<Workspace, WorkspaceError> {
        worktrees::check_out(&linked)?;
        self.refuse_unignored(&linked)?;
        let warnings = self.files.carry_out(&self.path)?;
        linked.set_mark(READY, &self.plan.goal, Durability::AtOnce)?;
        Ok(self.workspace(linked, warnings))
    }

    /// A copied file that is not ignored would be committed with the agent's work, secrets and all.
    fn refuse_unignored(&self, linked: &Linked) -> Result<(), WorkspaceError> {
        let names: Vec<Vec<u8>> = self.files.names_absent_in(&self.path);
        let git = Git::at(&linked.record, &self.path);
        let ignored = embedded::ignored(&git, names.iter().map(Vec::as_slice))?;
        match names.into_iter().find(|name| !ignored.contains(name)) {
            Some(name) => Err(WorkspaceError::NotIgnored { path: crate::git::shown(&name) }),
            None => Ok(()),
        }
    }

    fn workspace(self, linked: Linked, warnings: Vec<String>) -> Workspace {
        let WorkspacePlan { goal, branch, base, .. } = self.plan;
        Workspace::from_parts(self.repo, goal, Some(branch), base, linked, warnings)
    }

    fn taken(&self, what: &str) -> WorkspaceError {
        WorkspaceError::PathTaken { path: self.path.clone(), what: what.to_owned() }
    }

    fn other_base(&self, made_from: &Commit) -> WorkspaceError {
        WorkspaceError::OtherBase {
            path: self.path.clone(),
            made_from: made_from.to_string(),
            asked: self.plan.base.to_string(),
        }
    }
}

fn check_names(repo: &Repository, plan: &WorkspacePlan) -> Result<(), WorkspaceError> {
    let is_plain =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if plan.goal.is_empty() || !is_plain(&plan.goal) {
        return Err(WorkspaceError::BadName {
            name: plan.goal.clone(),
            role: "a goal id",
            reason: "only letters, digits, `-` and `_` may be in it".to_owned(),
        });
    }
    // Git is asked about names that are not plain beyond doubt.
    let is_allowed = plan.branch.split('/').all(|part| !part.is_empty() && is_plain(part))
        || repo.git().command("check-ref-format").arg(branch_ref(&plan.branch)).query()?.is_some();
    if !is_allowed || plan.branch.starts_with('-') {
        return Err(WorkspaceError::BadName {
            name: plan.branch.clone(),
            role: "a branch",
            reason: "git does not allow it".to_owned(),
        });
    }
    Ok(())
}
