//! Beginning a goal in the user's own directory: what is refused, what is kept, and what is said about it first.

use std::path::{Path, PathBuf};

use towline_core::{Check, CheckKind, Commit, GitSettings, GoalId, WorkspaceMode};
use towline_engine::must_be_alone;
use towline_workspace::{Before, Consent, Repository, WorkspaceError};

use crate::args::Run;
use crate::context::Context;
use crate::failure::Failure;
use crate::output;

/// Where a goal begins.
pub(crate) struct Beginning {
    /// The top of the repository, or the folder that is in none.
    pub(crate) repository: String,
    /// Which of the two.
    pub(crate) mode: WorkspaceMode,
    /// What is there.
    pub(crate) base: Commit,
    /// How git reads and writes files there.
    pub(crate) git: GitSettings,
}

/// Whether the person who asks wants a snapshot of any size.
pub(crate) const fn consent(run: &Run) -> Consent {
    if run.allow_large { Consent::AnySize } else { Consent::WithinBounds }
}

/// Has a goal begin in the current directory as it is now: in its repository, or without one. Says what that means.
pub(crate) async fn begin(
    context: &Context,
    run: &Run,
    base: Option<&str>,
    goal: GoalId,
    checks: &[Check],
) -> Result<Beginning, Failure> {
    if let Some(base) = base {
        return Err(Failure::usage(format!("work in place begins with what is there, not with `{base}`"))
            .hint("leave the base out, or work in a clone (`mode = \"clone\"`)"));
    }
    let repository = match Repository::discover(&context.directory) {
        Ok(repository) => Some(repository),
        Err(WorkspaceError::NotARepository { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let folder = repository.as_ref().map_or(context.directory.as_path(), Repository::root);
    let folder = folder.canonicalize().map_err(|error| {
        Failure::usage(format!("the directory {} cannot be used: {error}", folder.display()))
    })?;
    refuse_wide(context, &folder)?;
    if let Some(state) = context.existing_state()? {
        must_be_alone(&state.home, state.store.as_ref(), goal, &folder).await?;
    }
    let mode = match repository {
        Some(_) => WorkspaceMode::InPlace,
        None => WorkspaceMode::InFolder,
    };
    if repository.is_none() {
        refuse_committed(checks)?;
    }
    let git = match &repository {
        Some(repository) => repository.git_settings(&repository.resolve("HEAD")?)?,
        None => Repository::folder_settings(&folder)?,
    };
    let kept = keep(context, run, goal, repository.as_ref(), &folder, &git)?;
    let beginning = Beginning { repository: folder.display().to_string(), mode, base: kept.base, git };
    warn(goal, &beginning);
    kept.warnings.iter().for_each(|warning| output::say(format_args!("warning: {warning}")));
    Ok(beginning)
}

/// Keeps what is there in Towline's own repository of the goal. Nothing is left of that when it fails.
fn keep(
    context: &Context,
    run: &Run,
    goal: GoalId,
    repository: Option<&Repository>,
    folder: &Path,
    git: &GitSettings,
) -> Result<Before, Failure> {
    let home = context.home()?;
    let history = home.history(goal);
    if let Some(parent) = history.parent() {
        towline_files::create_private_dir(parent)
            .map_err(|error| Failure::internal(format!("cannot create {}: {error}", parent.display())))?;
    }
    let own = match repository {
        Some(repository) => repository.resolve("HEAD").and_then(|head| repository.own(&history, &head, git)),
        None => Repository::create_own(folder, &history, git),
    };
    let kept = own.and_then(|own| {
        let kept = own.keep_before(consent(run))?;
        own.refuse_filters_inside(&kept.base, git)?;
        Ok(kept)
    });
    kept.map_err(|error| {
        // It was made a moment ago for a goal that will not be; what stays of it is in nobody's way.
        let _ = home.remove(&history);
        // Only when nothing else is in it.
        let _ = history.parent().map(std::fs::remove_dir);
        error.into()
    })
}

fn warn(goal: GoalId, beginning: &Beginning) {
    let (folder, id) = (&beginning.repository, goal.short());
    let lost = match beginning.mode {
        WorkspaceMode::InFolder => {
            "This folder is in no git repository: what is there now is kept by Towline alone. Ignored files are not kept."
        }
        _ => "There is no clone, no branch and nothing to merge. Ignored files are not kept.",
    };
    output::say(format_args!(
        "warning: the agent works in place: it changes your files in {folder} right away.\n         {lost}\n         \
         To see what it changed: towline diff {id}\n         To put everything back as it is now: towline restore {id}"
    ));
}

/// Nobody means their whole home, or more than that.
fn refuse_wide(context: &Context, folder: &Path) -> Result<(), Failure> {
    let within = |path: Option<PathBuf>| {
        path.and_then(|path| path.canonicalize().ok()).is_some_and(|path| path.starts_with(folder))
    };
    let what = if folder.parent().is_none() {
        "the whole file system"
    } else if within(context.variable("HOME").map(PathBuf::from)) {
        "your home directory"
    } else if within(context.home_path().ok()) {
        "Towline's own state"
    } else {
        return Ok(());
    };
    Err(Failure::usage(format!("{} is too wide to work in place: it holds {what}", folder.display()))
        .hint("go to the folder of the project first"))
}

fn refuse_committed(checks: &[Check]) -> Result<(), Failure> {
    let Some(check) = checks.iter().find(|check| check.kind == CheckKind::Committed) else {
        return Ok(());
    };
    Err(Failure::usage(format!(
        "the check `{}` wants commits, and this folder is in no git repository",
        check.name
    ))
    .hint("run `git init` and make a first commit, or leave the check out"))
}
