//! From what was asked to a goal: everything is looked at before anything is created.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use towline_agent::{AgentSettings, Resuming, agent};
use towline_config::{Config, check_from_command, resolve_agent};
use towline_core::{AgentName, Check, Commit, Goal, GoalId, Origin, SessionLimits, WorkspaceSpec};
use towline_workspace::{Protect, Repository};
use uuid::Uuid;

use crate::args::Run;
use crate::context::Context;
use crate::failure::Failure;
use crate::prompt::words;
use crate::{find, output};

/// How long a title may be.
const TITLE: usize = 60;

/// A goal that is ready to be created, and the agents it may use.
pub(crate) struct Draft {
    /// The goal.
    pub(crate) goal: Goal,
    /// The agents.
    pub(crate) agents: BTreeMap<AgentName, AgentSettings>,
}

/// Makes a goal of the arguments and the configuration, or says what is wrong with them.
pub(crate) fn draft(context: &Context, run: &Run, now: Timestamp) -> Result<Draft, Failure> {
    let prompt = prompt(&run.prompt)?;
    let config = context.configuration(&context.directory)?.config;
    let repository = Repository::discover(&context.directory)?;
    let base = base(&repository, &config, run)?;
    let agents = agents(context, &config, &run.agent)?;
    let checks = checks(&config, &run.check)?;
    if run.red_first && checks.is_empty() {
        return Err(Failure::usage("--red-first needs a check").hint("give one: --check \"cargo test\""));
    }
    Protect::new(&config.protect)?;
    let mut budget = config.budget.clone();
    run.budget.iter().for_each(|change| budget.apply(change));
    let goal = Goal {
        id: GoalId::from_uuid(Uuid::now_v7()),
        title: title(&prompt),
        prompt,
        checks,
        budget,
        agents: agents.iter().map(|(name, _)| name.clone()).collect(),
        model: run.model.clone(),
        protect: config.protect,
        workspace: WorkspaceSpec {
            repository: repository.root().display().to_string(),
            base,
            setup: config.workspace.setup,
            copy: config.workspace.copy,
        },
        briefing: config.briefing,
        red_first: run.red_first,
        accounts: agents
            .iter()
            .filter_map(|(name, settings)| Some((name.clone(), settings.account.clone()?)))
            .collect(),
        sessions: agents.iter().map(|(name, settings)| (name.clone(), sessions(settings))).collect(),
        labels: Vec::new(),
        metadata: BTreeMap::new(),
        origin: Origin {
            channel: "cli".to_owned(),
            thread: None,
            by: context.variable("USER").or_else(|| context.variable("LOGNAME")).map(str::to_owned),
        },
        created_at: now,
    };
    Ok(Draft { goal, agents: agents.into_iter().collect() })
}

fn prompt(given: &[String]) -> Result<String, Failure> {
    words(given, "prompt").map_err(|failure| {
        failure.hint("say what is to be done: towline run \"fix the failing test\" --check \"cargo test\"")
    })
}

/// The first line, shortened at a word.
fn title(prompt: &str) -> String {
    let line = prompt.lines().next().unwrap_or_default().trim();
    if line.chars().count() <= TITLE {
        return line.to_owned();
    }
    let cut: String = line.chars().take(TITLE).collect();
    let end = cut.rfind(' ').unwrap_or(cut.len());
    format!("{}…", &cut[..end])
}

/// The agents in the order they are to be used. Only the first is sure to be needed, so only that one must be
/// there.
fn agents(
    context: &Context,
    config: &Config,
    named: &[String],
) -> Result<Vec<(AgentName, AgentSettings)>, Failure> {
    let names: Vec<String> = match named {
        [] => config.agents_in_order.iter().map(ToString::to_string).collect(),
        named => named.to_vec(),
    };
    let mut agents = Vec::new();
    for name in names {
        let settings = resolve_agent(config, &name)?.clone();
        agents.push((AgentName::new(name), settings));
    }
    let Some((name, first)) = agents.first() else {
        return Err(
            Failure::usage("no agent is configured").hint("add one to `defaults.agents` in towline.toml")
        );
    };
    must_be_installed(context, name, first)?;
    Ok(agents)
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

fn checks(config: &Config, commands: &[String]) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    for command in commands {
        if command.trim().is_empty() {
            return Err(Failure::usage("--check is empty").hint("give a command: --check \"cargo test\""));
        }
        let taken: Vec<String> = checks.iter().map(|check: &Check| check.name.clone()).collect();
        checks.push(check_from_command(command, &taken));
    }
    if commands.is_empty() {
        checks.clone_from(&config.checks);
    }
    for check in &checks {
        towline_check::validate(check).map_err(|error| Failure::usage(error.to_string()))?;
    }
    Ok(checks)
}

fn base(repository: &Repository, config: &Config, run: &Run) -> Result<Commit, Failure> {
    let mut dirty = repository.uncommitted()?;
    if let Some(at) = dirty.iter().position(|path| path == "towline.toml") {
        dirty.remove(at);
        output::say(format_args!(
            "note: towline.toml is not committed; it holds for this run, but the agent does not see it"
        ));
    }
    if run.include_dirty {
        return Ok(repository.snapshot_dirty()?);
    }
    let base = repository.resolve(run.base.as_deref().unwrap_or(&config.workspace.base))?;
    if !dirty.is_empty() {
        let named: Vec<&str> = dirty.iter().take(5).map(String::as_str).collect();
        let more = if dirty.len() > named.len() {
            format!(" and {} more", dirty.len() - named.len())
        } else {
            String::new()
        };
        output::say(format_args!(
            "note: uncommitted changes are not part of the work: {}{more}\n      (--include-dirty starts from them)",
            named.join(", ")
        ));
    }
    Ok(base)
}

/// The agents that an existing goal names, by today's configuration of its repository.
pub(crate) fn agents_of(
    context: &Context,
    goal: &Goal,
) -> Result<BTreeMap<AgentName, AgentSettings>, Failure> {
    let config = context.configuration(Path::new(&goal.workspace.repository))?.config;
    let mut agents = BTreeMap::new();
    for name in &goal.agents {
        agents.insert(name.clone(), resolve_agent(&config, name.as_str())?.clone());
    }
    Ok(agents)
}
