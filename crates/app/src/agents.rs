//! The agents of a goal: their settings, whether they are installed, and what they may do.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::Value;
use towline_agent::{AgentSettings, Permission, Restriction, agent};
use towline_config::{LayerName, Loaded, goal_agents_layer, resolve_agent};
use towline_core::{AgentName, Check, Goal, Sandbox, SandboxSettings};
use towline_engine::Home;
use uuid::Uuid;

use crate::context::Context;
use crate::draft::Draft;
use crate::error::Error;
use crate::notice::Notice;
use crate::{find, mcp_file, sandbox};

/// The settings of these agents, as the goal wants them.
pub(crate) fn settings_of(
    context: &Context,
    directory: &Path,
    loaded: &Loaded,
    names: &[AgentName],
    own: &BTreeMap<String, Value>,
    layer: LayerName,
) -> Result<Vec<(AgentName, AgentSettings)>, Error> {
    let resolve = |loaded: &Loaded| {
        let resolve = |name: &AgentName| {
            let mut settings = resolve_agent(&loaded.config, name.as_str())?.clone();
            let source = loaded.sources.get(&mcp_file::key(name.as_str()));
            mcp_file::add_servers(name.as_str(), &mut settings, source, directory)?;
            Ok((name.clone(), settings))
        };
        names.iter().map(resolve).collect::<Result<Vec<_>, Error>>()
    };
    let agents = resolve(loaded)?;
    if own.is_empty() {
        return Ok(agents);
    }
    let above = goal_agents_layer(layer, names, own);
    resolve(&context.configuration_under(directory, Some(above))?)
}

/// Fails unless the agent's program is there.
pub(crate) fn must_be_installed(
    context: &Context,
    name: &AgentName,
    settings: &AgentSettings,
) -> Result<(), Error> {
    let refused = |missing: find::MissingProgram| {
        let fix = missing.fix(name.as_str(), settings);
        Error::usage(format!("agent `{name}`: the program {missing}")).hint(fix)
    };
    find::agent_program(context, settings).map(drop).map_err(refused)
}

/// The agents of a goal.
pub struct GoalAgents {
    pub agents: BTreeMap<AgentName, AgentSettings>,
    /// What they are confined by.
    pub sandbox: SandboxSettings,
    /// Settings without effect.
    pub notices: Vec<Notice>,
}

/// The agents that checks name as judges, as the configuration has them: what a goal sets is for those that work on it.
pub(crate) fn judges_of(
    context: &Context,
    directory: &Path,
    loaded: &Loaded,
    checks: &[Check],
) -> Result<Vec<(AgentName, AgentSettings)>, Error> {
    let mut names: Vec<AgentName> = checks.iter().filter_map(Check::judge).cloned().collect();
    names.sort();
    names.dedup();
    settings_of(context, directory, loaded, &names, &BTreeMap::new(), LayerName::StoredGoal)
}

/// The same for a new goal. Fails unless every judge is installed and can be held to reading, also one that works on the goal.
pub(crate) fn usable_judges(
    context: &Context,
    loaded: &Loaded,
    checks: &[Check],
    workers: &[(AgentName, AgentSettings)],
) -> Result<Vec<(AgentName, AgentSettings)>, Error> {
    let named = judges_of(context, &context.directory, loaded, checks)?;
    let names_none = |check: &Check| check.kind.is_judge() && check.judge().is_none();
    let first = workers.first().filter(|_| checks.iter().any(names_none));
    for (name, settings) in named.iter().chain(first) {
        must_be_installed(context, name, settings)?;
        settings.as_judge().map_err(|fix| {
            Error::usage(format!("agent `{name}` cannot be a judge: {fix}"))
                .hint("name another one with `agent` in the check")
        })?;
    }
    Ok(named)
}

/// The agents that an existing goal names, by today's configuration of its repository and as the goal wants them.
pub fn agents_of(context: &Context, goal: &Goal) -> Result<GoalAgents, Error> {
    agents_in(context, Path::new(&goal.workspace.repository), goal)
}

/// The agents that a goal names, by today's configuration in `directory` and as the goal wants them.
pub(crate) fn agents_in(context: &Context, directory: &Path, goal: &Goal) -> Result<GoalAgents, Error> {
    let loaded = context.configuration(directory)?;
    let layer = LayerName::StoredGoal;
    let mut agents = judges_of(context, directory, &loaded, &goal.checks)?;
    agents.extend(settings_of(context, directory, &loaded, &goal.agents, &goal.agent_settings, layer)?);
    let notices = Notice::of_settings(loaded.warnings);
    let sandbox = loaded.config.sandbox;
    Ok(GoalAgents { agents: agents.into_iter().collect(), sandbox, notices })
}

/// Why nothing can be done with an agent that a goal has used.
pub(crate) fn not_configured(name: &AgentName) -> String {
    format!("agent `{name}` is no longer in the configuration")
}

/// What is worth a notice once per project: what the goal's first agent may do, and what confines it. That it was shown is stored in
/// the state directory, never in the repository.
pub fn first_notices(context: &Context, home: &Home, draft: &Draft) -> Vec<Notice> {
    let Draft { goal, sandbox, .. } = draft;
    let project = Path::new(&goal.workspace.repository);
    let weak = sandbox::notice(context, sandbox).filter(|_| is_new(home, project, "sandbox"));
    permission_notice(context, home, draft).into_iter().chain(weak).collect()
}

/// The notice that the goal's first agent runs commands without asking, and what confines it. A private clone keeps changes apart; it
/// does not confine the agent.
fn permission_notice(context: &Context, home: &Home, draft: &Draft) -> Option<Notice> {
    let Draft { goal, agents, sandbox, .. } = draft;
    let sandbox = sandbox::sandbox_of(context, sandbox);
    if sandbox == Some(Sandbox::Bubblewrap) {
        return None;
    }
    let (name, settings) = goal.agents.first().and_then(|name| agents.get_key_value(name))?;
    let restriction = agent(settings.kind).restriction();
    if settings.permission != Permission::Bypass || restriction == Restriction::NotNeeded {
        return None;
    }
    let is_new = is_new(home, Path::new(&goal.workspace.repository), "bypass");
    let mode = goal.workspace.mode;
    is_new.then(|| Notice::Unrestricted { agent: name.clone(), restriction, mode, sandbox })
}

/// Whether this notice was not shown for this project before. Where that cannot be stored it is better shown twice than not at all.
fn is_new(home: &Home, project: &Path, notice: &str) -> bool {
    remember(home, project, notice).unwrap_or(true)
}

/// Remembers that the notice was shown for this project; false if it was before.
fn remember(home: &Home, project: &Path, notice: &str) -> io::Result<bool> {
    let project = project.canonicalize()?;
    let folder = home.root().join("told");
    home.make(&folder)?;
    let key = Uuid::new_v5(&Uuid::NAMESPACE_URL, project.as_os_str().as_bytes());
    let file = folder.join(format!("{notice}-{}", key.simple()));
    match towline_files::create_new(&file) {
        Ok(mut file) => file.write_all(project.as_os_str().as_bytes()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
