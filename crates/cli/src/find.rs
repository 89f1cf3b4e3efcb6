//! Finding things by what people type: goals by a part of their id, programs by their name.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use towline_agent::{AgentSettings, agent};
use towline_core::{AttemptNo, GoalId};
use towline_engine::{Home, attempt_tokens, copied_secrets, repository_of};
use towline_store::{GoalRecord, Listed, Listing};
use towline_workspace::{Repository, WorkspaceError};

use crate::context::{Context, State};
use crate::failure::Failure;
use crate::output;

/// Names the newest goal.
const NEWEST: &str = "@";

/// How many goals are named where one was meant.
const NAMED: usize = 10;

/// A goal and where it is kept.
pub(crate) struct Found {
    /// Where it is kept.
    pub(crate) state: State,
    /// The goal.
    pub(crate) record: GoalRecord,
}

/// The one goal that `given` names.
pub(crate) async fn goal(context: &Context, given: &str) -> Result<Found, Failure> {
    let (state, id) = goal_id(context, given).await?;
    load(context, state, id).await
}

/// A goal by its id.
pub(crate) async fn load(context: &Context, state: State, id: GoalId) -> Result<Found, Failure> {
    let record = state.store.load(id).await?;
    know_secrets_of(context, &state.home, &record);
    Ok(Found { state, record })
}

/// Masks the secrets of a goal from now on.
pub(crate) fn know_secrets_of(context: &Context, home: &Home, record: &GoalRecord) {
    context.know_secrets_of(Path::new(&record.goal.workspace.repository));
    output::know(&attempt_tokens(home, &record.state));
    output::know(&copied_secrets(&record.goal).secrets);
}

/// The repository that this process is in, as goals name it.
pub(crate) fn repository_here(context: &Context) -> Option<String> {
    Some(Repository::discover(&context.directory).ok()?.root().display().to_string())
}

/// The newest goal of this repository, or of all where this process is in none.
async fn newest(context: &Context, state: &State) -> Result<Vec<Listed>, Failure> {
    let listing = Listing { repository: repository_here(context), ..Listing::first(1) };
    Ok(state.store.list(&listing).await?)
}

/// The id of the one goal that `given` names, also when nothing else of it can be read.
pub(crate) async fn goal_id(context: &Context, given: &str) -> Result<(State, GoalId), Failure> {
    let missing = || match given {
        NEWEST => {
            Failure::not_found("this repository has no goals").hint("`towline ls --all` lists all goals")
        }
        _ => Failure::not_found(format!("there is no goal `{given}`")).hint("`towline ls --all` lists them"),
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
        several => Err(ambiguous(given, several)),
    }
}

fn ambiguous(given: &str, several: &[Listed]) -> Failure {
    let line = |listed: &Listed| match listed {
        Listed::Goal(goal) => format!("{}  {}", goal.id.short(), goal.title),
        Listed::Unreadable(goal) => format!("{}  (cannot be read)", goal.id.short()),
    };
    let mut lines: Vec<String> = several.iter().take(NAMED).map(line).collect();
    if several.len() > NAMED {
        lines.push("and more: towline ls".to_owned());
    }
    Failure::usage(format!("`{given}` names several goals:\n  {}", lines.join("\n  ")))
        .hint("give the id as it stands here")
}

/// What to do about a goal that cannot be read.
pub(crate) fn how_to_mend(goal: GoalId) -> String {
    format!("restore towline.db from a backup, or give the goal up: towline rm --force {}", goal.short())
}

/// The attempt by this number, if the goal has had it.
pub(crate) fn attempt(record: &GoalRecord, number: u32) -> Result<AttemptNo, Failure> {
    let found = AttemptNo::new(number).filter(|number| record.state.attempt(*number).is_some());
    found.ok_or_else(|| {
        let count = record.state.attempts.len();
        Failure::not_found(format!("goal {} has {count} attempts, not {number}", record.goal.id.short()))
    })
}

/// The repository that a goal belongs to, wherever this process is.
pub(crate) fn repository(home: &Home, record: &GoalRecord) -> Result<Repository, Failure> {
    let path = Path::new(&record.goal.workspace.repository);
    repository_of(home, &record.goal).map_err(|error| match error {
        WorkspaceError::NotARepository { .. } | WorkspaceError::Io { .. } if !path.join(".git").exists() => {
            let goal = record.goal.id.short();
            let what = format!("the repository of goal {goal} is not in {} any more", path.display());
            Failure::not_found(what).hint("put it back there, then try again")
        }
        error => error.into(),
    })
}

/// Whether a command's first word names something that can be run.
pub(crate) fn program(command: &str, directory: &Path, search_path: Option<&str>) -> Option<PathBuf> {
    if command.contains('/') {
        let path = directory.join(command);
        return is_executable(&path).then_some(path);
    }
    std::env::split_paths(search_path?).map(|folder| folder.join(command)).find(|path| is_executable(path))
}

/// An agent's program.
pub(crate) fn agent_program(context: &Context, settings: &AgentSettings) -> Option<PathBuf> {
    let program = settings.command.first()?;
    let search_path = settings.env.get("PATH").map(String::as_str).or_else(|| context.variable("PATH"));
    self::program(program, &context.directory, search_path)
}

/// What to do when an agent's program is not there.
pub(crate) fn how_to_get(name: &str, settings: &AgentSettings) -> String {
    let install = agent(settings.kind).install_hint(settings).map(|hint| format!("{hint}, or "));
    format!("{}set `command` in [agents.{name}] of towline.toml", install.unwrap_or_default())
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
