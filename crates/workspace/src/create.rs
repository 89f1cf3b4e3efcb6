//! Making a goal's workspace, in a way that can be repeated after a crash at any point.
//!
//! Order of the steps, each of which the next call can see: the ref in the user's repository that keeps the base, the empty
//! directory, a note in our own repository that the workspace is being made, its files and its `.git`, the copied files, and
//! last the note that all is there. Until then no agent has run in it, so it may be made anew; after that nothing in it is ever
//! written here.

use std::fs;
use std::path::PathBuf;

use towline_core::{Commit, GitSettings};

use crate::copy::CopyPlan;
use crate::legacy::{self, Worktree};
use crate::marks::{CONVERTED, MAKING, READY, WORKSPACE};
use crate::paths::{is_there, place_of, remove_tree};
use crate::private_clone::On;
use crate::threads::finish;
use crate::{Repository, Workspace, WorkspaceError, clone_report, embedded};

/// What a workspace is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspacePlan {
    /// The goal's id, used in the names of private refs.
    pub goal: String,
    /// The branch that the agent begins on, like `towline/1a2b3c4d-fix-login`. It is in the clone alone.
    pub branch: String,
    /// The directory to make.
    pub path: PathBuf,
    /// The directory of our own repository for the goal.
    pub own: PathBuf,
    /// The commit to start from.
    pub base: Commit,
    /// Ignored files and directories to copy from the user's checkout, relative to its root.
    pub copy: Vec<String>,
    /// How git reads and writes files.
    pub settings: GitSettings,
}

/// Makes the workspace, or opens the one that an earlier call made or half made for the same goal. Work that is in it is
/// never deleted; a place that belongs to something else is refused.
pub fn create(users: &Repository, plan: &WorkspacePlan) -> Result<Workspace, WorkspaceError> {
    check_names(users, plan)?;
    users.require(&plan.base)?;
    let files = CopyPlan::new(users.root(), &plan.copy)?;
    let path = place_of(&plan.path);
    let is_there = is_there(&path).map_err(|error| match error {
        WorkspaceError::Broken { path, what } => WorkspaceError::PathTaken { path, what },
        error => error,
    })?;
    if let Some(parent) = plan.own.parent() {
        towline_files::create_private_dir(parent).map_err(WorkspaceError::io("create", parent))?;
    }
    let own = users.own(&plan.own, &plan.base, &plan.settings)?;
    let note = own.note(WORKSPACE)?;
    let maker = Maker { users, own, plan, path, files };
    match note.as_deref() {
        _ if !is_there => {
            if Worktree::find(users, plan, &maker.path)?.is_some() {
                legacy::forget(users, plan, &maker.path)?;
            }
            maker.make()
        }
        Some(READY) => Ok(maker.workspace(Vec::new())),
        Some(CONVERTED) => maker.forget_worktree(),
        Some(MAKING) => {
            remove_tree(&maker.path)?;
            maker.make()
        }
        _ => match Worktree::find(users, plan, &maker.path)? {
            Some(worktree) if worktree.is_finished => {
                worktree.convert(users, &maker.own, plan)?;
                maker.own.write_note(WORKSPACE, CONVERTED)?;
                maker.forget_worktree()
            }
            Some(_) => {
                remove_tree(&maker.path)?;
                legacy::forget(users, plan, &maker.path)?;
                maker.make()
            }
            None => {
                maker.must_be_empty()?;
                maker.make()
            }
        },
    }
}

struct Maker<'a> {
    users: &'a Repository,
    own: Repository,
    plan: &'a WorkspacePlan,
    path: PathBuf,
    files: CopyPlan,
}

impl Maker<'_> {
    fn make(self) -> Result<Workspace, WorkspaceError> {
        let WorkspacePlan { goal, base, branch, settings, .. } = self.plan;
        self.users.keep(&base_ref(goal), base)?;
        self.users.fetch_promised(base, settings)?;
        fs::create_dir_all(&self.path).map_err(WorkspaceError::io("create", &self.path))?;
        self.must_be_empty()?;
        self.own.write_note(WORKSPACE, MAKING)?;
        let (lent, written) = std::thread::scope(|scope| {
            let lent = scope.spawn(|| self.users.lend());
            let written = self.own.check_out(base, &self.path, &self.own.index());
            (finish(lent), written)
        });
        let large_files = written?;
        let on = On::Branch(branch, base);
        let borrowed = vec![self.users.objects()];
        lent?.write(&self.path.join(".git"), &on, borrowed, settings, &self.own.index())?;
        self.own.lend_large_files(&large_files, &self.path.join(".git/lfs"))?;
        clone_report::remember(&self.own, &self.path.join(".git"))?;
        self.refuse_unignored()?;
        let warnings = self.files.carry_out(&self.path)?;
        self.own.write_note(WORKSPACE, READY)?;
        Ok(self.workspace(warnings))
    }

    fn must_be_empty(&self) -> Result<(), WorkspaceError> {
        let mut entries = fs::read_dir(&self.path).map_err(WorkspaceError::io("read", &self.path))?;
        match entries.next() {
            Some(_) => Err(WorkspaceError::PathTaken {
                path: self.path.clone(),
                what: "it exists and is not the workspace of this goal".to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// The last steps of a conversion.
    fn forget_worktree(self) -> Result<Workspace, WorkspaceError> {
        legacy::forget(self.users, self.plan, &self.path)?;
        self.own.write_note(WORKSPACE, READY)?;
        Ok(self.workspace(Vec::new()))
    }

    /// A copied file that is not ignored would be committed with the agent's work, secrets and all.
    fn refuse_unignored(&self) -> Result<(), WorkspaceError> {
        let names: Vec<Vec<u8>> = self.files.names_absent_in(&self.path);
        let git = self.own.git().with_work_tree(&self.path);
        let ignored = embedded::ignored(&git, names.iter().map(Vec::as_slice))?;
        match names.into_iter().find(|name| !ignored.contains(name)) {
            Some(name) => Err(WorkspaceError::NotIgnored { path: crate::git::shown(&name) }),
            None => Ok(()),
        }
    }

    fn workspace(self, warnings: Vec<String>) -> Workspace {
        let WorkspacePlan { goal, branch, base, .. } = self.plan;
        Workspace::from_parts(&self.own, goal, Some(branch), base, self.path, warnings)
    }
}

/// The ref that keeps a goal's base.
pub(crate) fn base_ref(goal: &str) -> String {
    format!("refs/towline/{goal}/base")
}

fn check_names(repo: &Repository, plan: &WorkspacePlan) -> Result<(), WorkspaceError> {
    let is_plain =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    let bad = |name: &str, role, reason: &str| {
        Err(WorkspaceError::BadName { name: name.to_owned(), role, reason: reason.to_owned() })
    };
    if plan.goal.is_empty() || !is_plain(&plan.goal) {
        return bad(&plan.goal, "a goal id", "only letters, digits, `-` and `_` may be in it");
    }
    // Git is asked about names that are not plain beyond doubt.
    let reference = format!("refs/heads/{}", plan.branch);
    let is_allowed = plan.branch.split('/').all(|part| !part.is_empty() && is_plain(part))
        || repo.git().command("check-ref-format").arg(reference).query()?.is_some();
    if !is_allowed || plan.branch.starts_with('-') {
        return bad(&plan.branch, "a branch", "git does not allow it");
    }
    Ok(())
}
