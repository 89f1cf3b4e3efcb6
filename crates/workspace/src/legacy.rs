//! Workspaces that earlier versions made: linked worktrees of the user's repository. They become private clones at the same
//! path, because agents find their sessions by it.
//!
//! Until the clone is whole, the record in the user's repository stays, by which the next call finds the worktree again.

use std::fs;
use std::path::Path;

use crate::agent_head::{Head, head_of};
use crate::create::base_ref;
use crate::private_clone::On;
use crate::worktrees::{self, Linked};
use crate::{Repository, WorkspaceError, WorkspacePlan, clone_report, legacy_modules};

/// The mark that earlier versions left in git's record of a finished workspace. It holds the goal's id.
const READY: &str = "towline-ready";
const LONGEST_MARK: u64 = 1024;

/// A worktree that was made for a goal.
pub(crate) struct Worktree {
    linked: Linked,
    head: Head,
    /// Whether an agent may have been in it.
    pub(crate) is_finished: bool,
}

impl Worktree {
    /// Looks for the worktree of the goal at `path`. One that somebody else made there is none.
    pub(crate) fn find(
        users: &Repository,
        plan: &WorkspacePlan,
        path: &Path,
    ) -> Result<Option<Self>, WorkspaceError> {
        let Some(linked) = worktrees::find(users, path)? else { return Ok(None) };
        let mark = linked.record.join(READY);
        let mark =
            towline_files::read_if_present(&mark, LONGEST_MARK).map_err(WorkspaceError::io("read", &mark))?;
        let is_goals = match &mark {
            Some(goal) => goal == plan.goal.as_bytes(),
            None => is_on(&linked, &plan.branch),
        };
        let head = head_of(&linked.record, &users.common_dir);
        let is_finished = mark.is_some() || !matches!(&head, Head::Commit(head) if *head == plan.base);
        Ok(is_goals.then_some(Self { linked, head, is_finished }))
    }

    /// Makes a private clone of it. The files stay as they are.
    pub(crate) fn convert(
        &self,
        users: &Repository,
        own: &Repository,
        plan: &WorkspacePlan,
    ) -> Result<(), WorkspaceError> {
        let head = match &self.head {
            Head::Commit(head) if users.find_commit(head.as_str())?.is_some() => head.clone(),
            _ => plan.base.clone(),
        };
        users.keep(&base_ref(&plan.goal), &plan.base)?;
        // The commits of the worktree are in the user's repository under this name from here on.
        users.keep(&format!("refs/towline/{}/worktree", plan.goal), &head)?;
        own.read_into_index(&head)?;
        let dot_git = self.linked.path.join(".git");
        if fs::symlink_metadata(&dot_git).is_ok_and(|about| !about.is_dir()) {
            fs::remove_file(&dot_git).map_err(WorkspaceError::io("remove", &dot_git))?;
        }
        let on = On::Branch(&plan.branch, &head);
        users.lend()?.write(&dot_git, &on, vec![users.objects()], &plan.settings, &own.index())?;
        legacy_modules::move_modules(&own.git(), &self.linked.record, &self.linked.path, &dot_git)?;
        clone_report::remember(own, &dot_git)
    }
}

/// Whether a worktree has a branch checked out. Branches of goals are nobody else's.
fn is_on(linked: &Linked, branch: &str) -> bool {
    let head = towline_files::read(&linked.record.join("HEAD"), LONGEST_MARK);
    head.is_ok_and(|head| head.trim_ascii_end() == format!("ref: refs/heads/{branch}").as_bytes())
}

/// Removes what is left in the user's repository of a worktree that is a clone now, or whose directory is gone: git's record,
/// and the branch, unless it has commits that the worktree was not on.
pub(crate) fn forget(users: &Repository, plan: &WorkspacePlan, path: &Path) -> Result<(), WorkspaceError> {
    if let Some(worktree) = Worktree::find(users, plan, path)? {
        if let Head::Commit(head) = &worktree.head
            && users.find_commit(head.as_str())?.is_some()
        {
            users.keep(&format!("refs/towline/{}/worktree", plan.goal), head)?;
        }
        worktrees::forget(&worktree.linked)?;
    }
    let branch = format!("refs/heads/{}", plan.branch);
    let at = users.find_commit(&branch)?;
    let recorded = users.find_commit(&format!("refs/towline/{}/worktree", plan.goal))?;
    if let Some(at) = at.filter(|at| recorded.as_ref() == Some(at))
        && worktrees::checkout_of(users, &plan.branch)?.is_none()
    {
        users.git().command("update-ref").args(["-d", &branch, at.as_str()]).run()?;
    }
    Ok(())
}
