//! Beginning a goal in the user's own directory: what is refused, and how its files are stored first.

use std::path::{Path, PathBuf};

use towline_core::{Check, CheckKind, Commit, GitSettings, GoalId, WorkspaceMode};
use towline_engine::must_be_alone;
use towline_workspace::{Before, Consent, Repository, WorkspaceError};

use crate::context::Context;
use crate::draft::{Request, in_utf8};
use crate::error::Error;
use crate::notice::Notice;

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
    /// What the user should know about it.
    pub(crate) notices: Vec<Notice>,
}

/// Whether the person who asks wants a snapshot of any size.
pub(crate) const fn consent(request: &Request) -> Consent {
    if request.allow_large { Consent::AnySize } else { Consent::WithinBounds }
}

/// Has a goal begin in the current directory as it is now: in its repository, or without one.
pub(crate) async fn begin(
    context: &Context,
    request: &Request,
    base: Option<&str>,
    goal: GoalId,
    checks: &[Check],
) -> Result<Beginning, Error> {
    if let Some(base) = base {
        return Err(Error::usage(format!("work in place starts from the present files, not from `{base}`"))
            .hint("leave the base out, or work in a clone (`mode = \"clone\"`)"));
    }
    let repository = match Repository::discover(&context.directory) {
        Ok(repository) => Some(repository),
        Err(WorkspaceError::NotARepository { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let folder = repository.as_ref().map_or(context.directory.as_path(), Repository::root);
    let folder = folder.canonicalize().map_err(|error| {
        Error::usage(format!("the directory {} cannot be used: {error}", folder.display()))
    })?;
    let name = in_utf8(&folder)?;
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
    let before = keep(context, request, goal, repository.as_ref(), &folder, &git)?;
    let mut notices = vec![Notice::InPlace { goal, folder: name.clone(), mode }];
    notices.extend(before.warnings.into_iter().map(Notice::Files));
    Ok(Beginning { repository: name, mode, base: before.base, git, notices })
}

/// Keeps what is there in Towline's own repository of the goal. Nothing is left of that when it fails.
fn keep(
    context: &Context,
    request: &Request,
    goal: GoalId,
    repository: Option<&Repository>,
    folder: &Path,
    git: &GitSettings,
) -> Result<Before, Error> {
    let home = context.home()?;
    let history = home.history(goal);
    if let Some(parent) = history.parent() {
        towline_files::create_private_dir(parent)
            .map_err(|error| Error::internal(format!("cannot create {}: {error}", parent.display())))?;
    }
    let own = match repository {
        Some(repository) => repository.resolve("HEAD").and_then(|head| repository.own(&history, &head, git)),
        None => Repository::create_own(folder, &history, git),
    };
    let before = own.and_then(|own| {
        let before = own.keep_before(consent(request))?;
        own.refuse_filters_inside(&before.base, git)?;
        Ok(before)
    });
    before.map_err(|error| {
        // The goal will not exist. Leftovers of its repository do no harm.
        let _ = home.remove(&history);
        // Only when nothing else is in it.
        let _ = history.parent().map(std::fs::remove_dir);
        error.into()
    })
}

/// A whole home, or more than that, is surely a mistake.
fn refuse_wide(context: &Context, folder: &Path) -> Result<(), Error> {
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
    Err(Error::usage(format!("{} is too much to work on in place: it holds {what}", folder.display()))
        .hint("go to the folder of the project first"))
}

fn refuse_committed(checks: &[Check]) -> Result<(), Error> {
    let Some(check) = checks.iter().find(|check| check.kind == CheckKind::Committed) else {
        return Ok(());
    };
    Err(Error::usage(format!(
        "the check `{}` wants commits, and this folder is in no git repository",
        check.name
    ))
    .hint("run `git init` and make a first commit, or leave the check out"))
}
