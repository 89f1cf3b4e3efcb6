//! Finding things by what people type: goals by a part of their id, programs by their name.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use towline_agent::{AgentSettings, agent};
use towline_core::{AttemptNo, GoalId, Phase, StopWhy, Stopping};
use towline_engine::{Home, attempt_tokens, repository_of};
use towline_store::{GoalRecord, GoalSummary, Listed, Listing, list_all};
use towline_workspace::{Repository, WorkspaceError};

use crate::context::{Context, State};
use crate::error::{Action, Error};

/// Names the newest goal.
const NEWEST: &str = "@";

/// How many goals are named where one was meant.
const NAMED: usize = 10;

/// A goal and where it is stored.
pub struct Found {
    /// Where it is stored.
    pub state: State,
    pub record: GoalRecord,
}

/// The one goal that `given` names.
pub async fn goal(context: &Context, given: &str) -> Result<Found, Error> {
    let (state, id) = goal_id(context, given).await?;
    load(context, state, id).await
}

/// A goal by its id.
pub async fn load(context: &Context, state: State, id: GoalId) -> Result<Found, Error> {
    let record = state.store.load(id).await?;
    context.secrets.add(&attempt_tokens(&state.home, &record.state));
    // A project that does not answer must not keep anybody from cancelling its goals. What agents wrote was masked when it was stored.
    let _ = context.know_secrets_of(&record.goal).await;
    Ok(Found { state, record })
}

/// The repository that the context's directory is in, as goals name it.
pub fn repository_here(context: &Context) -> Option<String> {
    Some(Repository::discover(&context.directory).ok()?.root().display().to_string())
}

/// The newest goal of that repository, or of all where there is none.
async fn newest(context: &Context, state: &State) -> Result<Vec<Listed>, Error> {
    let listing = Listing { repository: repository_here(context), ..Listing::first(1) };
    Ok(state.store.list(&listing).await?)
}

/// The id of the one goal that `given` names, also when nothing else of it can be read.
pub async fn goal_id(context: &Context, given: &str) -> Result<(State, GoalId), Error> {
    let missing = || match given {
        NEWEST if repository_here(context).is_none() => Error::not_found("there are no goals yet"),
        NEWEST => Error::not_found("this repository has no goals").hint([("list all goals", Action::List)]),
        _ => Error::not_found(format!("there is no goal `{}`", context.secrets.brief(given)))
            .hint([("list them", Action::List)]),
    };
    let state = context.existing_state()?.ok_or_else(missing)?;
    let matching = match given {
        NEWEST => newest(context, &state).await?,
        _ => state.store.find(given, NAMED + 1).await?,
    };
    match matching.as_slice() {
        [] => Err(missing()),
        [only] => {
            let id = only.id();
            Ok((state, id))
        }
        several => Err(ambiguous(context, given, several)),
    }
}

fn ambiguous(context: &Context, given: &str, several: &[Listed]) -> Error {
    let line = |listed: &Listed| match listed {
        Listed::Goal(goal) => format!("{}  {}", goal.id.short(), context.secrets.brief(&goal.title)),
        Listed::Unreadable(goal) => format!("{}  (cannot be read)", goal.id.short()),
    };
    let mut lines: Vec<String> = several.iter().take(NAMED).map(line).collect();
    if several.len() > NAMED {
        lines.push("and more".to_owned());
    }
    Error::usage(format!("`{given}` names several goals:\n  {}", lines.join("\n  ")))
        .hint("use one of these ids")
}

/// The only paused goal of the repository that the context's directory is in.
pub async fn only_paused(context: &Context) -> Result<GoalId, Error> {
    let listing = Listing { phases: vec!["paused", "stopping"], ..Listing::all() };
    let listed = match context.existing_state()? {
        Some(state) => list_all(state.store.as_ref(), listing).await?,
        None => Vec::new(),
    };
    let is_here = |goal: &GoalSummary| context.directory.starts_with(Path::new(&goal.repository));
    let goals = listed.into_iter().filter_map(Listed::readable);
    let paused: Vec<GoalSummary> = goals.filter(|goal| is_paused(goal) && is_here(goal)).collect();
    match &paused[..] {
        [] => {
            Err(Error::not_found("no goal of this repository is paused")
                .hint([("list all goals", Action::List)]))
        }
        [goal] => Ok(goal.id),
        several => {
            let line =
                |goal: &GoalSummary| format!("{}  {}", goal.id.short(), context.secrets.brief(&goal.title));
            let lines: Vec<String> = several.iter().map(line).collect();
            Err(Error::usage(format!("several goals are paused:\n  {}", lines.join("\n  ")))
                .hint([("name one", Action::Resume(None))]))
        }
    }
}

/// Whether the goal is paused, or was about to be when its engine was killed.
fn is_paused(goal: &GoalSummary) -> bool {
    matches!(goal.phase, Phase::Paused { .. } | Phase::Stopping(Stopping { why: StopWhy::Pause { .. }, .. }))
}

/// The attempt by this number, if the goal has had it.
pub fn attempt(record: &GoalRecord, number: u32) -> Result<AttemptNo, Error> {
    let found = AttemptNo::new(number).filter(|number| record.state.attempt(*number).is_some());
    found.ok_or_else(|| Error::not_found(format!("goal {} has no attempt {number}", record.goal.id.short())))
}

/// The attempt with this number, the last one if none is named.
pub fn attempt_or_last(record: &GoalRecord, wanted: Option<u32>) -> Result<AttemptNo, Error> {
    match (wanted, record.state.last_attempt()) {
        (Some(number), _) => attempt(record, number),
        (None, Some(last)) => Ok(last.n),
        (None, None) => Err(Error::not_found("the goal has had no attempt yet")),
    }
}

/// The repository that a goal belongs to, wherever this process is.
pub fn repository(home: &Home, record: &GoalRecord) -> Result<Repository, Error> {
    let path = Path::new(&record.goal.workspace.repository);
    repository_of(home, &record.goal).map_err(|error| match error {
        WorkspaceError::NotARepository { .. } | WorkspaceError::Io { .. } if !path.join(".git").exists() => {
            let goal = record.goal.id.short();
            let what = format!("the repository of goal {goal} is not in {} any more", path.display());
            Error::not_found(what).hint("put it back there, then try again")
        }
        error => error.into(),
    })
}

/// Whether a command's first word names something that can be run.
pub fn program(command: &str, directory: &Path, search_path: Option<&str>) -> Option<PathBuf> {
    places(command, directory, search_path).find(|path| is_executable(path))
}

/// Where a program of this name may be.
fn places(command: &str, directory: &Path, search_path: Option<&str>) -> impl Iterator<Item = PathBuf> {
    let folders: Vec<PathBuf> = match search_path {
        _ if command.contains('/') => vec![directory.to_path_buf()],
        Some(search_path) => std::env::split_paths(search_path).collect(),
        None => Vec::new(),
    };
    folders.into_iter().map(move |folder| folder.join(command))
}

/// Why an agent's program cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingProgram {
    /// No file has this name.
    NotFound(String),
    NotExecutable(PathBuf),
}

impl fmt::Display for MissingProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(program) => write!(f, "`{program}` was not found"),
            Self::NotExecutable(path) => write!(f, "`{}` is not executable", path.display()),
        }
    }
}

impl MissingProgram {
    /// What to do about it.
    pub(crate) fn fix(&self, name: &str, settings: &AgentSettings) -> String {
        if let Self::NotExecutable(path) = self {
            return format!("make it executable: chmod +x {}", path.display());
        }
        let install = agent(settings.kind).install_hint(settings).map(|hint| format!("{hint}, or "));
        format!("{}set `command` in [agents.{name}]", install.unwrap_or_default())
    }
}

/// An agent's program.
pub(crate) fn agent_program(context: &Context, settings: &AgentSettings) -> Result<PathBuf, MissingProgram> {
    let command = settings.command.first().map_or("", String::as_str);
    let search_path = settings.env.get("PATH").map(String::as_str).or_else(|| context.variable("PATH"));
    program(command, &context.directory, search_path).ok_or_else(|| {
        let mut places = places(command, &context.directory, search_path);
        let file = places.find(|place| place.is_file());
        file.map_or_else(|| MissingProgram::NotFound(command.to_owned()), MissingProgram::NotExecutable)
    })
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
