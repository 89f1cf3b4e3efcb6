//! From what was asked to a goal: everything is looked at before anything is created.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use jiff::Timestamp;
use serde_json::Value;
use towline_agent::{AgentSettings, Resuming, agent};
use towline_config::{
    Config, GoalFile, GoalOrigin, LayerName, check_from_command, goal_agents_layer, resolve_agent,
};
use towline_core::{
    AgentName, BaselineMode, Budget, Check, Commit, Goal, GoalId, Origin, SessionLimits, WorkspaceMode,
    WorkspaceSpec,
};
use towline_workspace::{Protect, Repository, protects_more_than_always};
use uuid::Uuid;

use crate::args::Run;
use crate::context::Context;
use crate::failure::Failure;
use crate::in_place::Beginning;
use crate::prompt::words;
use crate::{find, goal_file, in_place, output};

/// How long a title may be.
const TITLE: usize = 60;

/// Where goals come from that are made here.
pub(crate) const CHANNEL: &str = "cli";

/// A goal that is ready to be created, and the agents it may use.
pub(crate) struct Draft {
    /// The goal.
    pub(crate) goal: Goal,
    /// The agents.
    pub(crate) agents: BTreeMap<AgentName, AgentSettings>,
}

/// Makes a goal of the arguments, its file and the configuration, or says what is wrong with them.
pub(crate) async fn draft(context: &Context, run: &Run, now: Timestamp) -> Result<Draft, Failure> {
    let file =
        run.file.as_deref().map(|path| goal_file::read(context, path)).transpose()?.unwrap_or_default();
    let prompt = prompt(run, &file)?;
    let config = context.configuration(&context.directory)?.config;
    let agents = agents(context, &config, run, &file)?;
    let checks = match commands_as_checks(&run.check)? {
        given if !given.is_empty() => given,
        _ => valid(file.checks.unwrap_or_else(|| config.checks.clone()))?,
    };
    let baseline = if run.red_first { Some(BaselineMode::Red) } else { file.baseline };
    if baseline == Some(BaselineMode::Red) && checks.is_empty() {
        return Err(Failure::usage("--red-first needs a check").hint("give one: --check \"cargo test\""));
    }
    let protect = file.protect.unwrap_or(config.protect);
    let unprotect = [file.unprotect, run.unprotect.clone()].concat();
    Protect::of(&protect, &unprotect)?;
    let id = GoalId::from_uuid(Uuid::now_v7());
    let mode = file.workspace.mode.unwrap_or(config.workspace.mode);
    let base = run.base.clone().or(file.workspace.base);
    // Last of all looks, because it may leave something in a repository, if only an object that nobody refers to.
    let beginning = if run.in_place || mode.is_in_place() {
        in_place::begin(context, run, base.as_deref(), id, &checks).await?
    } else {
        beginning(context, run, base.as_deref().unwrap_or(&config.workspace.base))?
    };
    let copy = file.workspace.copy.unwrap_or(config.workspace.copy);
    must_be_inside(&copy)?;
    let mask = output::mask();
    let setup = file.workspace.setup.unwrap_or(config.workspace.setup);
    note_submodules(&beginning, &setup);
    let goal = Goal {
        id,
        // It is shown everywhere, and names the branch.
        title: file.title.map_or_else(|| title(&mask.text(&prompt)), |title| mask.text(&title).into_owned()),
        prompt,
        checks,
        budget: budget(file.budget, config.budget, run)?,
        agents: agents.iter().map(|(name, _)| name.clone()).collect(),
        model: run.model.clone().or(file.model),
        agent_settings: file.agent_settings,
        protect,
        unprotect,
        workspace: WorkspaceSpec {
            repository: beginning.repository,
            mode: beginning.mode,
            base: beginning.base,
            setup,
            copy,
            generated: file.workspace.generated.unwrap_or(config.workspace.generated),
            pass_env: file.workspace.pass_env.unwrap_or(config.workspace.pass_env),
            warm: file.workspace.warm.unwrap_or(config.workspace.warm),
            confirm: file.workspace.confirm.unwrap_or(config.workspace.confirm),
            git: Some(beginning.git),
        },
        briefing: file.briefing.unwrap_or(config.briefing),
        baseline: baseline.unwrap_or(config.baseline),
        accounts: agents
            .iter()
            .filter_map(|(name, settings)| Some((name.clone(), settings.account.clone()?)))
            .collect(),
        sessions: agents.iter().map(|(name, settings)| (name.clone(), sessions(settings))).collect(),
        labels: file.labels,
        metadata: file.metadata,
        origin: origin(context, file.origin),
        created_at: now,
    };
    Ok(Draft { goal, agents: agents.into_iter().collect() })
}

/// Fails if a file to copy is not inside the repository.
fn must_be_inside(copy: &[String]) -> Result<(), Failure> {
    let leads_out = |path: &&String| {
        Path::new(path).components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir))
    };
    match copy.iter().find(leads_out) {
        Some(path) => {
            Err(Failure::usage(format!("`copy` names `{path}`, which is not inside the repository"))
                .hint("name files by their path from the top of the repository, such as `.env`"))
        }
        None => Ok(()),
    }
}

/// The words of the command line, or of the file; not both.
fn prompt(run: &Run, file: &GoalFile) -> Result<String, Failure> {
    const EXAMPLE: &str =
        "say what is to be done: towline run \"fix the failing test\" --check \"cargo test\"";
    let name = run.file.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    match &file.prompt {
        Some(_) if !run.prompt.is_empty() => {
            Err(Failure::usage(format!("the prompt is given twice: on the command line and in {name}"))
                .hint("leave one of them out"))
        }
        Some(prompt) => Ok(prompt.clone()),
        None if run.prompt.is_empty() => {
            Err(Failure::usage(format!("{name} does not say what is to be done"))
                .hint("write `prompt = \"…\"` in TOML, or the words below the settings in Markdown"))
        }
        None => words(&run.prompt, "prompt").map_err(|failure| failure.hint(EXAMPLE)),
    }
}

/// The first line that says something, shortened at a word.
fn title(prompt: &str) -> String {
    let line = prompt.lines().next().unwrap_or_default().trim_start_matches('#').trim();
    if line.chars().count() <= TITLE {
        return line.to_owned();
    }
    let cut: String = line.chars().take(TITLE).collect();
    let end = cut.rfind(' ').unwrap_or(cut.len());
    format!("{}…", &cut[..end])
}

/// What may be spent: enough for an agent to begin, or nothing is.
fn budget(own: Budget, config: Budget, run: &Run) -> Result<Budget, Failure> {
    let mut budget = own.or(config);
    run.budget.iter().for_each(|change| budget.apply(change));
    match budget.nothing() {
        Some(axis) => {
            Err(Failure::usage(format!("the budget `{axis}` is 0, so that no agent could begin")).hint(
                format!("give it more, such as {}, or leave it out", axis.suggestion().replace("=+", "=")),
            ))
        }
        None => Ok(budget),
    }
}

fn origin(context: &Context, own: GoalOrigin) -> Origin {
    let user = || context.variable("USER").or_else(|| context.variable("LOGNAME")).map(str::to_owned);
    Origin {
        channel: own.channel.unwrap_or_else(|| CHANNEL.to_owned()),
        thread: own.thread,
        by: own.by.or_else(user),
    }
}

/// The agents in the order they are to be used. Default agents that are not installed are skipped. Of agents that the
/// goal names, only the first is sure to be needed, so only that one must be installed.
fn agents(
    context: &Context,
    config: &Config,
    run: &Run,
    file: &GoalFile,
) -> Result<Vec<(AgentName, AgentSettings)>, Failure> {
    let names: Vec<AgentName> = match (run.agent.as_slice(), &file.agents) {
        ([], Some(named)) => named.iter().map(AgentName::new).collect(),
        ([], None) => config.agents_in_order.clone(),
        (named, _) => named.iter().map(AgentName::new).collect(),
    };
    let layer = run.file.clone().map_or(LayerName::StoredGoal, LayerName::Goal);
    let agents = settings_of(context, &context.directory, config, &names, &file.agent_settings, layer)?;
    let agents = match (run.agent.as_slice(), &file.agents) {
        ([], None) => installed(context, agents),
        _ => agents,
    };
    let Some((name, first)) = agents.first() else {
        return Err(
            Failure::usage("no agent is configured").hint("add one to `defaults.agents` in towline.toml")
        );
    };
    must_be_installed(context, name, first)?;
    Ok(agents)
}

/// The default agents without those that are not installed, each of which is named; all of them if none is.
fn installed(context: &Context, agents: Vec<(AgentName, AgentSettings)>) -> Vec<(AgentName, AgentSettings)> {
    let is_there = |settings: &AgentSettings| find::agent_program(context, settings).is_some();
    if !agents.iter().any(|(_, settings)| is_there(settings)) {
        return agents;
    }
    let (installed, missing): (Vec<_>, Vec<_>) =
        agents.into_iter().partition(|(_, settings)| is_there(settings));
    for (name, _) in missing {
        output::say(format_args!("note: agent `{name}` is not installed, so it is skipped"));
    }
    installed
}

/// The settings of these agents, as the goal wants them.
fn settings_of(
    context: &Context,
    directory: &Path,
    config: &Config,
    names: &[AgentName],
    own: &BTreeMap<String, Value>,
    layer: LayerName,
) -> Result<Vec<(AgentName, AgentSettings)>, Failure> {
    let resolve = |config: &Config| -> Result<Vec<_>, Failure> {
        names.iter().map(|name| Ok((name.clone(), resolve_agent(config, name.as_str())?.clone()))).collect()
    };
    let agents = resolve(config)?;
    if own.is_empty() {
        return Ok(agents);
    }
    let above = goal_agents_layer(layer, names, own);
    resolve(&context.configuration_under(directory, Some(above))?.config)
}

/// How long the agent's conversations are gone on with, if they can be at all.
fn sessions(settings: &AgentSettings) -> SessionLimits {
    let outlives_process = agent(settings.kind).resuming(settings) == Resuming::Possible;
    SessionLimits { outlives_process, ..settings.sessions.clone() }
}

/// Fails unless the agent's program is there.
fn must_be_installed(context: &Context, name: &AgentName, settings: &AgentSettings) -> Result<(), Failure> {
    if find::agent_program(context, settings).is_some() {
        return Ok(());
    }
    let program = settings.command.first().map_or("", String::as_str);
    Err(Failure::usage(format!("agent `{name}`: the program `{program}` was not found"))
        .hint(find::how_to_get(name.as_str(), settings)))
}

/// The checks that commands on the command line stand for.
pub(crate) fn commands_as_checks(commands: &[String]) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    for command in commands {
        if command.trim().is_empty() {
            return Err(Failure::usage("--check is empty").hint("give a command: --check \"cargo test\""));
        }
        let taken: Vec<String> = checks.iter().map(|check: &Check| check.name.clone()).collect();
        checks.push(check_from_command(command, &taken));
    }
    valid(checks)
}

fn valid(checks: Vec<Check>) -> Result<Vec<Check>, Failure> {
    for check in &checks {
        towline_check::validate(check).map_err(|error| Failure::usage(error.to_string()))?;
    }
    Ok(checks)
}

/// Where a goal with a clone of its own begins.
fn beginning(context: &Context, run: &Run, named: &str) -> Result<Beginning, Failure> {
    let repository = Repository::discover(&context.directory)?;
    let base = base(&repository, run, named)?;
    let git = repository.git_settings(&base)?;
    repository.refuse_filters_inside(&base, &git)?;
    let repository = repository.root().display().to_string();
    Ok(Beginning { repository, mode: WorkspaceMode::Clone, base, git })
}

/// The commit that the work starts from. Uncommitted changes are named when they are no part of it.
fn base(repository: &Repository, run: &Run, named: &str) -> Result<Commit, Failure> {
    let mut dirty = repository.uncommitted()?;
    // Whoever writes a goal down does not mean it as a part of the work.
    let own_file = run.file.as_ref().and_then(|file| file.canonicalize().ok());
    dirty.retain(|path| own_file.as_ref().is_none_or(|file| *file != repository.root().join(path)));
    if let Some(at) = dirty.iter().position(|path| path == "towline.toml") {
        // One that was deleted holds for nothing, and is named with the other changes.
        let is_there = repository.root().join("towline.toml").exists();
        if is_there {
            dirty.remove(at);
        }
        if is_there && !run.include_dirty {
            output::say(format_args!(
                "note: towline.toml is not committed; it holds for this run, but the agent does not see it"
            ));
        }
    }
    if run.include_dirty {
        let before = repository.snapshot_dirty(in_place::consent(run))?;
        before.warnings.iter().for_each(|warning| output::say(format_args!("warning: {warning}")));
        return Ok(before.base);
    }
    let base = repository.resolve(named)?;
    if !dirty.is_empty() {
        output::say(format_args!(
            "note: uncommitted changes are not part of the work: {}\n      (--include-dirty starts from them)",
            few(&dirty)
        ));
    }
    Ok(base)
}

/// Says that the folders of submodules are empty where the agent works and where the checks run, unless something is
/// done about it.
fn note_submodules(beginning: &Beginning, setup: &[String]) {
    let has_some = Path::new(&beginning.repository).join(".gitmodules").exists();
    if has_some && !beginning.mode.is_in_place() && !setup.iter().any(|command| command.contains("submodule"))
    {
        output::say(format_args!(
            "note: submodules are not checked out for the agent and the checks\n      \
                   (if they are needed: setup = [\"git submodule update --init --recursive\"] in [workspace])"
        ));
    }
}

/// What to print about a goal that leaves the tests to the agent.
pub(crate) fn note_unprotected(goal: &Goal) -> Option<&'static str> {
    (!protects_more_than_always(&goal.protect))
        .then_some("note: tests are not protected (run towline init, or set [protect] paths)")
}

/// The first names of a list.
pub(crate) fn few(names: &[String]) -> String {
    let named = names.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > 5 { format!("{named} and {} more", names.len() - 5) } else { named }
}

/// The agents that an existing goal names, by today's configuration of its repository and as the goal wants them. Prints what
/// in the configuration has no effect.
pub(crate) fn agents_of(
    context: &Context,
    goal: &Goal,
) -> Result<BTreeMap<AgentName, AgentSettings>, Failure> {
    let directory = Path::new(&goal.workspace.repository);
    context.configuration(directory)?;
    agents_in(context, directory, goal)
}

/// The agents that a goal names, by today's configuration in `directory` and as the goal wants them.
pub(crate) fn agents_in(
    context: &Context,
    directory: &Path,
    goal: &Goal,
) -> Result<BTreeMap<AgentName, AgentSettings>, Failure> {
    let config = context.configuration_under(directory, None)?.config;
    let layer = LayerName::StoredGoal;
    let agents = settings_of(context, directory, &config, &goal.agents, &goal.agent_settings, layer)?;
    Ok(agents.into_iter().collect())
}
