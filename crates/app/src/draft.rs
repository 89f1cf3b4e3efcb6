//! From what was asked to a goal: everything is looked at before anything is created.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use towline_agent::{Ability, AgentSettings, Resuming, agent};
use towline_config::{
    GoalFile, GoalOrigin, Layer, LayerContent, LayerName, Loaded, WorkspaceSettings, check_from_command,
};
use towline_core::{
    AgentName, BaselineMode, Budget, BudgetChange, Check, Commit, Goal, GoalId, Need, Origin,
    SandboxSettings, SessionLimits, WorkspaceMode, WorkspaceSpec,
};
use towline_engine::{Engine, EngineError, Handle, Home, copied_secrets};
use towline_store::{Store, StoreError};
use towline_workspace::{Protect, Repository, protects_more_than_always};
use uuid::Uuid;

use crate::agents::{must_be_installed, settings_of, usable_judges};
use crate::context::Context;
use crate::error::{Action, Error};
use crate::in_place::Beginning;
use crate::notice::Notice;
use crate::scheduling::{self, Siblings};
use crate::{find, goal_file, hidden, in_place, sandbox, title};

/// Where goals come from that are made here.
pub const CHANNEL: &str = "cli";

/// A request for a goal. Settings that are not given come from its file, or else from the configuration.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The goal's id, where it is known before there is a goal; a new one without it.
    pub id: Option<GoalId>,
    /// What is to be done.
    pub prompt: Option<String>,
    /// The goal's file.
    pub file: Option<PathBuf>,
    /// Commands that must succeed.
    pub checks: Vec<String>,
    /// Names of agents, in order of preference.
    pub agents: Vec<String>,
    pub model: Option<String>,
    pub budget: Vec<BudgetChange>,
    /// The commit that the work starts from, or `prerequisite`.
    pub base: Option<String>,
    /// Whether the work starts from uncommitted changes, too.
    pub include_dirty: bool,
    /// Whether the agent works in the user's own directory.
    pub in_place: bool,
    /// Whether a snapshot may have any size.
    pub allow_large: bool,
    /// Whether the checks must fail before any work.
    pub red_first: bool,
    /// Protected paths that the goal may change.
    pub unprotect: Vec<String>,
    /// Goals that must come to their end first, by id, besides those of the goal's file.
    pub after: Vec<(String, Need)>,
    pub priority: Option<i32>,
    /// Free words to find it by, besides those of the goal's file.
    pub labels: Vec<String>,
    /// Globs of the files that it changes, besides those of the goal's file.
    pub touches: Vec<String>,
    /// Anything that only other programs read, besides that of the goal's file.
    pub metadata: BTreeMap<String, Value>,
    /// Where the goal came from, instead of what its file names.
    pub origin: Option<Origin>,
}

/// A goal that is ready to be created.
pub struct Draft {
    pub goal: Goal,
    /// The agents that it may use.
    pub agents: BTreeMap<AgentName, AgentSettings>,
    /// What they are confined by, and the checks.
    pub sandbox: SandboxSettings,
    /// What the user should know before it starts.
    pub notices: Vec<Notice>,
}

/// An id that no goal has.
pub fn new_goal_id() -> GoalId {
    GoalId::from_uuid(Uuid::now_v7())
}

/// Makes a goal of a request, its file and the configuration. Everything is checked before anything is created.
pub async fn draft(context: &Context, run: &Request, now: Timestamp) -> Result<Draft, Error> {
    let file = run.file.as_deref().map(|path| goal_file::read(&context.directory, path)).transpose()?;
    draft_of(context, run, file.unwrap_or_default(), &Siblings::new(), now).await
}

/// When the checks run on the base. Checks that are to fail there must be able to.
fn baseline(
    given: bool,
    file: Option<BaselineMode>,
    configured: BaselineMode,
    checks: &[Check],
) -> Result<BaselineMode, Error> {
    if given || file == Some(BaselineMode::Red) {
        must_be_able_to_fail(checks)?;
    }
    Ok(chosen(given, file, configured))
}

/// Makes a goal of a request and its file, which may name `siblings` that are not created yet.
pub(crate) async fn draft_of(
    context: &Context,
    run: &Request,
    file: GoalFile,
    siblings: &Siblings,
    now: Timestamp,
) -> Result<Draft, Error> {
    let prompt = prompt(run, &file)?;
    let mut scheduling = scheduling::of(context, run, &file, siblings).await?;
    let loaded = context.configuration_under(&context.directory, Some(flags(run)))?;
    let is_flag = |key: &str| loaded.sources.get(key) == Some(&LayerName::Flags);
    let [base_given, mode_given, baseline_given] =
        ["workspace.base", "workspace.mode", "baseline.mode"].map(is_flag);
    let mut notices = Notice::of_settings([&file.warnings[..], &loaded.warnings].concat());
    let agents = agents(context, &loaded, run, &file, &mut notices)?;
    let mut checks = checks(run, file.checks, &loaded.config.checks)?;
    let judges = usable_judges(context, &loaded, &checks, &agents)?;
    let config = loaded.config;
    sandbox::must_be_there(context, &config.sandbox)?;
    hidden::must_be_possible(context, &checks, &config.sandbox)?;
    let baseline = baseline(baseline_given, file.baseline, config.baseline, &checks)?;
    let protect = file.protect.unwrap_or(config.protect);
    let unprotect = [file.unprotect, run.unprotect.clone()].concat();
    Protect::of(&protect, &unprotect)?;
    let id = run.id.unwrap_or_else(new_goal_id);
    let mode = chosen(mode_given, file.workspace.mode, config.workspace.mode.unwrap_or_default());
    // Work in place has no base but what is there, so one that is only the configuration's does not count for it.
    let named = if base_given { config.workspace.base.clone() } else { file.workspace.base.clone() };
    // Last of all looks, because it may leave something in a repository, if only an object that nobody refers to.
    let beginning = if mode.is_in_place() {
        in_place::begin(context, run, named.as_deref(), id, &checks).await?
    } else {
        let base = named.as_deref().or(config.workspace.base.as_deref()).unwrap_or_default();
        scheduling.base_is_prerequisite = base == scheduling::PREREQUISITE;
        // What it leaves is known when it has ended; until then the present commit takes its place.
        let base = if scheduling.base_is_prerequisite { "HEAD" } else { base };
        beginning(context, run, base, &protect)?
    };
    scheduling::must_have_base(context, &scheduling, siblings, &beginning.repository).await?;
    let workspace = workspace(file.workspace, config.workspace, beginning, &mut notices)?;
    hidden::keep_outside(context, &mut checks, run.file.as_deref(), &workspace.repository)?;
    let mask = context.secrets.mask();
    let goal = Goal {
        id,
        // It is shown everywhere, and names the branch.
        title: title::of(file.title.as_deref(), &prompt, &scheduling, &mask),
        prompt,
        checks,
        budget: budget(file.budget.unwrap_or(Budget::NONE), config.budget, run)?,
        agents: agents.iter().map(|(name, _)| name.clone()).collect(),
        model: run.model.clone().or(file.model),
        agent_settings: file.agent_settings,
        protect,
        unprotect,
        workspace,
        briefing: file.briefing.unwrap_or(config.briefing),
        baseline,
        accounts: accounts(judges.iter().chain(&agents)),
        continues: None,
        sessions: agents.iter().map(|(name, settings)| (name.clone(), sessions(settings))).collect(),
        scheduling,
        labels: [file.labels, run.labels.clone()].concat(),
        metadata: file.metadata.into_iter().chain(run.metadata.clone()).collect(),
        origin: run.origin.clone().unwrap_or_else(|| origin(context, file.origin)),
        created_at: now,
    };
    notices.extend(unlimited_costs(&goal, &agents));
    notices.extend(learn_copied_secrets(context, &goal));
    Ok(Draft { goal, agents: agents.into_iter().collect(), sandbox: config.sandbox, notices })
}

/// The checks of the request, or else of the file, or else of the configuration.
fn checks(run: &Request, file: Option<Vec<Check>>, config: &[Check]) -> Result<Vec<Check>, Error> {
    match commands_as_checks(&run.checks)? {
        given if !given.is_empty() => Ok(given),
        _ => valid(hidden::in_order(file.unwrap_or_else(|| config.to_vec()))),
    }
}

/// Fails if there is no check that could fail before any work.
fn must_be_able_to_fail(checks: &[Check]) -> Result<(), Error> {
    if !checks.is_empty() {
        return Ok(());
    }
    let what = "a goal whose checks must fail before any work (`--red-first`, `red_first`) needs a check";
    Err(Error::usage(what).hint([("give one", Action::GiveCheck)]))
}

/// Has the secrets in copied files masked from now on, and returns which files could not be read.
fn learn_copied_secrets(context: &Context, goal: &Goal) -> impl Iterator<Item = Notice> {
    let copied = copied_secrets(goal);
    context.secrets.add(&copied.secrets);
    copied.warnings.into_iter().map(|warning| Notice::Files(warning.to_string()))
}

/// Starts a drafted goal.
pub async fn start_goal(
    engine: &Engine,
    home: &Home,
    store: &Arc<dyn Store>,
    goal: Goal,
) -> Result<Handle, EngineError> {
    let (id, history) = (goal.id, home.history(goal.id));
    let started = engine.start(goal).await;
    if started.is_err() && matches!(store.load(id).await, Err(StoreError::NotFound(_))) {
        // It was never created, for example because another goal took its directory first: what was stored for it is not needed.
        let _ = home.remove(&history);
    }
    started
}

/// The agents whose cost will stay unknown, where it is limited. Those that name their model report by themselves that it has
/// no price.
fn unlimited_costs(goal: &Goal, agents: &[(AgentName, AgentSettings)]) -> Vec<Notice> {
    let agents = agents.iter().filter(|_| goal.budget.usd.is_some());
    let unknown = agents.filter_map(|(name, settings)| {
        let agent = agent(settings.kind);
        let is_unknown = matches!(agent.abilities(settings).cost, Ability::No(_));
        (is_unknown && !agent.reports_unknown_price()).then(|| Notice::UnknownCost(name.clone()))
    });
    unknown.collect()
}

/// Where the work happens, as the goal's file or the configuration has it.
fn workspace(
    file: WorkspaceSettings,
    config: WorkspaceSettings,
    beginning: Beginning,
    notices: &mut Vec<Notice>,
) -> Result<WorkspaceSpec, Error> {
    let Beginning { repository, mode, base, git, notices: noticed } = beginning;
    notices.extend(noticed);
    let copy = file.copy.or(config.copy).unwrap_or_default();
    must_be_inside(&copy)?;
    let setup = file.setup.or(config.setup).unwrap_or_default();
    if has_empty_submodules(&repository, mode, &setup) {
        notices.push(Notice::EmptySubmodules);
    }
    Ok(WorkspaceSpec {
        repository,
        mode,
        base,
        setup,
        copy,
        generated: file.generated.or(config.generated).unwrap_or_default(),
        pass_env: file.pass_env.or(config.pass_env).unwrap_or_default(),
        warm: file.warm.or(config.warm).unwrap_or_default(),
        confirm: file.confirm.or(config.confirm).unwrap_or_default(),
        git: Some(git),
    })
}

/// The request's settings as the layer above the configuration.
fn flags(run: &Request) -> Layer {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let agents = (!run.agents.is_empty()).then(|| toml::Value::from(run.agents.clone()).to_string());
    let settings = [
        ("defaults.agents", agents),
        ("workspace.base", run.base.as_deref().map(quoted)),
        ("workspace.mode", run.in_place.then(|| quoted("in-place"))),
        ("baseline.mode", run.red_first.then(|| quoted("red"))),
    ];
    let given = settings.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Layer { name: LayerName::Flags, content: LayerContent::Pairs(given.collect()) }
}

/// A setting of the request wins over the goal's file, and the file over the configuration.
fn chosen<T>(is_flag: bool, file: Option<T>, config: T) -> T {
    file.filter(|_| !is_flag).unwrap_or(config)
}

/// The path of a project as goals store it.
pub(crate) fn in_utf8(path: &Path) -> Result<String, Error> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Error::usage(format!("the path {} is not UTF-8, and cannot be used", path.display()))
            .hint("rename the directory")
    })
}

/// Fails if a file to copy is not inside the repository.
fn must_be_inside(copy: &[String]) -> Result<(), Error> {
    let leads_out = |path: &&String| {
        Path::new(path).components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir))
    };
    match copy.iter().find(leads_out) {
        Some(path) => Err(Error::usage(format!("`copy` names `{path}`, which is not inside the repository"))
            .hint("name files by their path from the top of the repository, such as `.env`")),
        None => Ok(()),
    }
}

/// The prompt of the request, or of the file; not both.
fn prompt(run: &Request, file: &GoalFile) -> Result<String, Error> {
    let name = run.file.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    match (&run.prompt, &file.prompt) {
        (Some(_), Some(_)) => Err(Error::usage(format!("the prompt is given twice: here and in {name}"))
            .hint("leave one of them out")),
        // No agent can be started with it.
        (Some(prompt), None) | (None, Some(prompt)) if prompt.contains('\0') => {
            Err(Error::usage("`prompt` contains a NUL character"))
        }
        (Some(prompt), None) | (None, Some(prompt)) => Ok(prompt.clone()),
        (None, None) => Err(Error::usage(format!("{name} has no prompt"))
            .hint("add `prompt = \"…\"` to a TOML file, or text below the settings of a Markdown file")),
    }
}

/// What may be spent: enough for an agent to begin, or nothing is.
fn budget(own: Budget, config: Budget, run: &Request) -> Result<Budget, Error> {
    let mut budget = own.or(config);
    run.budget.iter().for_each(|change| budget.apply(change));
    match budget.nothing() {
        Some(axis) => {
            Err(Error::usage(format!("the budget `{axis}` is 0, so that no agent could begin")).hint(
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
    loaded: &Loaded,
    run: &Request,
    file: &GoalFile,
    notices: &mut Vec<Notice>,
) -> Result<Vec<(AgentName, AgentSettings)>, Error> {
    let names: Vec<AgentName> = match &file.agents {
        Some(named) if run.agents.is_empty() => named.iter().map(AgentName::new).collect(),
        _ => loaded.config.agents_in_order.clone(),
    };
    let layer = run.file.clone().map_or(LayerName::StoredGoal, LayerName::Goal);
    let mut agents = settings_of(context, &context.directory, loaded, &names, &file.agent_settings, layer)?;
    if run.agents.is_empty() && file.agents.is_none() {
        let is_there = |agent: &(AgentName, AgentSettings)| find::agent_program(context, &agent.1).is_ok();
        if agents.iter().any(is_there) {
            let (installed, missing): (Vec<_>, Vec<_>) = agents.into_iter().partition(is_there);
            notices.extend(missing.into_iter().map(|(name, _)| Notice::NotInstalled(name)));
            agents = installed;
        }
    }
    let Some((name, first)) = agents.first() else {
        return Err(
            Error::usage("no agent is configured").hint("add one to `defaults.agents` in towline.toml")
        );
    };
    must_be_installed(context, name, first)?;
    Ok(agents)
}

fn accounts<'a>(agents: impl Iterator<Item = &'a (AgentName, AgentSettings)>) -> BTreeMap<AgentName, String> {
    agents.filter_map(|(name, settings)| Some((name.clone(), settings.account.clone()?))).collect()
}

/// How long the agent's conversations are continued, if they can be at all.
fn sessions(settings: &AgentSettings) -> SessionLimits {
    let outlives_process = agent(settings.kind).resuming(settings) == Resuming::Possible;
    SessionLimits { outlives_process, ..settings.sessions.clone() }
}

/// A check for each command.
pub(crate) fn commands_as_checks(commands: &[String]) -> Result<Vec<Check>, Error> {
    let mut checks = Vec::new();
    for command in commands {
        if command.trim().is_empty() {
            return Err(Error::usage("a check is empty").hint([("give a command", Action::GiveCheck)]));
        }
        let taken: Vec<String> = checks.iter().map(|check: &Check| check.name.clone()).collect();
        checks.push(check_from_command(command, &taken));
    }
    valid(checks)
}

fn valid(checks: Vec<Check>) -> Result<Vec<Check>, Error> {
    towline_check::validate_all(&checks).map_err(|error| Error::usage(error.to_string()))?;
    Ok(checks)
}

/// Where a goal with a clone of its own begins.
fn beginning(context: &Context, run: &Request, named: &str, protect: &[String]) -> Result<Beginning, Error> {
    let repository = Repository::discover(&context.directory)?;
    let root = in_utf8(repository.root())?;
    let (base, mut notices) = base(&repository, run, named)?;
    if protects_more_than_always(protect) {
        notices.extend(protects_nothing(protect, &repository.files(&base)?)?);
    }
    let git = repository.git_settings(&base)?;
    repository.refuse_filters_inside(&base, &git)?;
    Ok(Beginning { repository: root, mode: WorkspaceMode::Clone, base, git, notices })
}

/// The commit that the work starts from. Uncommitted changes are named when they are no part of it.
fn base(repository: &Repository, run: &Request, named: &str) -> Result<(Commit, Vec<Notice>), Error> {
    let mut notices = Vec::new();
    let mut dirty = repository.uncommitted()?;
    // The file of the goal is not a part of the work.
    let own_file = run.file.as_ref().and_then(|file| file.canonicalize().ok());
    dirty.retain(|path| own_file.as_ref().is_none_or(|file| *file != repository.root().join(path)));
    if let Some(at) = dirty.iter().position(|path| path == "towline.toml") {
        // One that was deleted holds for nothing, and is named with the other changes.
        let is_there = repository.root().join("towline.toml").exists();
        if is_there {
            dirty.remove(at);
        }
        if is_there && !run.include_dirty {
            notices.push(Notice::UncommittedConfiguration);
        }
    }
    if run.include_dirty {
        let before = repository.snapshot_dirty(in_place::consent(run))?;
        notices.extend(before.warnings.into_iter().map(Notice::Files));
        return Ok((before.base, notices));
    }
    let base = repository.resolve(named)?;
    if !dirty.is_empty() {
        notices.push(Notice::Uncommitted(dirty));
    }
    Ok((base, notices))
}

/// Whether the folders of submodules are empty where the agent works and where the checks run, and no setup command
/// fills them.
fn has_empty_submodules(repository: &str, mode: WorkspaceMode, setup: &[String]) -> bool {
    Path::new(repository).join(".gitmodules").exists()
        && !mode.is_in_place()
        && !setup.iter().any(|command| command.contains("submodule"))
}

/// The notice that none of these patterns protects one of these files. What is always protected does not count, and a section
/// of a file is there or not whatever the list of files has.
pub(crate) fn protects_nothing(protect: &[String], files: &[String]) -> Result<Option<Notice>, Error> {
    let patterns: Vec<String> =
        protect.iter().filter(|pattern| protects_more_than_always(&[(*pattern).clone()])).cloned().collect();
    let protected = Protect::of(&patterns, &[])?;
    if patterns.is_empty() || !protected.sections().is_empty() {
        return Ok(None);
    }
    let own = |file: &String| protects_more_than_always(std::slice::from_ref(file));
    let is_met = files.iter().filter(|file| own(file)).any(|file| protected.covers(Path::new(file)));
    Ok((!is_met).then_some(Notice::ProtectsNothing(patterns)))
}

/// What the user should know about a goal whatever it begins with.
pub fn notices_about(goal: &Goal) -> Vec<Notice> {
    let no_checks = goal.checks.is_empty().then_some(Notice::NoChecks);
    let unprotected = (!protects_more_than_always(&goal.protect)).then_some(Notice::UnprotectedTests);
    no_checks.into_iter().chain(unprotected).collect()
}

/// The notice that commits with the goal's work are Towline's. This is unknown for a goal of an earlier version.
pub(crate) fn identity_notice(goal: &Goal) -> Option<Notice> {
    goal.workspace.git.as_ref().filter(|git| git.author.is_none()).map(|_| Notice::NoIdentity)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_path_that_is_not_utf_8_is_refused() {
        assert_eq!(in_utf8(Path::new("/a/ü")).ok().as_deref(), Some("/a/ü"));
        let refused = in_utf8(Path::new(OsStr::from_bytes(b"/a/\xff"))).unwrap_err();
        assert_eq!(refused.kind().exit_code(), 2);
    }

    #[test]
    fn patterns_that_match_no_file_are_named_and_files_that_are_always_protected_do_not_count() {
        let files = ["src/lib.rs", "tests/it.rs", "towline.toml"];
        let named = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            protects_nothing(&patterns, &files.map(str::to_owned)).expect("patterns")
        };
        let typo = vec!["tsets/**".to_owned()];
        assert_eq!(named(&["tsets/**"]), Some(Notice::ProtectsNothing(typo.clone())));
        assert_eq!(named(&["tsets/**", "towline.toml"]), Some(Notice::ProtectsNothing(typo)));
        assert_eq!(named(&["tsets/**", "tests/**"]), None);
        assert_eq!(named(&["Cargo.toml#dependencies"]), None);
        assert_eq!(named(&[]), None);
    }
}
