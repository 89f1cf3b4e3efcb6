//! Workspaces that earlier versions made: linked worktrees of the user's repository. They become private clones at the same
//! path, because agents find their sessions by it.

use std::fs;
use std::path::Path;

use crate::create::base_ref;
use crate::git::Git;
use crate::private_clone::On;
use crate::repository::find_commit;
use crate::{Repository, WorkspaceError, WorkspacePlan, clone_report, worktrees};

/// Makes a private clone of the worktree at `path`. Whether there was one. The files stay as they are.
pub(crate) fn convert(
    users: &Repository,
    own: &Repository,
    plan: &WorkspacePlan,
    path: &Path,
) -> Result<bool, WorkspaceError> {
    let Some(linked) = worktrees::find(users, path)? else { return Ok(false) };
    let head = find_commit(&Git::at(&linked.record, users.root()), "HEAD")?;
    let head = head.unwrap_or_else(|| plan.base.clone());
    users.keep(&base_ref(&plan.goal), &plan.base)?;
    // The commits of the worktree are in the user's repository under this name from here on.
    users.keep(&format!("refs/towline/{}/worktree", plan.goal), &head)?;
    let git = own.git().with_work_tree(path);
    git.command("read-tree").arg(head.as_str()).run()?;
    let dot_git = path.join(".git");
    let is_file = fs::symlink_metadata(&dot_git).is_ok_and(|about| !about.is_dir());
    if is_file {
        fs::remove_file(&dot_git).map_err(WorkspaceError::io("remove", &dot_git))?;
    }
    let on = On::Branch(&plan.branch, &head);
    users.lend()?.write(&dot_git, &on, vec![users.objects()], &plan.settings, &own.index())?;
    clone_report::remember(own, &dot_git)?;
    worktrees::forget(&linked)?;
    let branch = format!("refs/heads/{}", plan.branch);
    if users.find_commit(&branch)?.as_ref() == Some(&head) {
        users.git().command("update-ref").args(["-d", &branch, head.as_str()]).run()?;
    }
    Ok(true)
}
