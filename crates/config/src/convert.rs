//! From layers to the configuration that the program works with.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value as Json;
use toml::de::DeTable;
use towline_agent::AgentSettings;
use towline_core::{
    AgentName, BaselineMode, Budget, Caps, Check, Confirm, SandboxSettings, Tokens, WorkspaceMode,
};

use crate::agents::{self, Agents};
use crate::error::{ConfigError, Problem, Warning, WarningKind};
use crate::layer::{Layer, LayerContent, LayerName, Origin};
use crate::operator::{self, NotifySettings, ServerSettings, SharedBudgets};
use crate::sandbox;
use crate::schema::{self, Effect, KeyPath};
use crate::settings::{Setting, Settings};
use crate::trust::{OwnAgents, Trusting};

const DEFAULTS: &str = include_str!("defaults.toml");
const AGENT_DEFAULTS: &str = include_str!("agent_defaults.toml");

/// A checked configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The agents for goals that name none, in order. Each is in `agents`.
    pub agents_in_order: Vec<AgentName>,
    /// Whether the first prompt explains unattended work.
    pub briefing: bool,
    /// What may be spent on a goal.
    pub budget: Budget,
    /// The checks of goals that name none.
    pub checks: Vec<Check>,
    /// Whether the checks run on the base first.
    pub baseline: BaselineMode,
    /// Globs of paths that stay as in the base.
    pub protect: Vec<String>,
    /// Where the work happens.
    pub workspace: WorkspaceSettings,
    /// How long `towline gc` leaves raw logs and conversations that nobody needs.
    pub retention: Duration,
    /// What agents, setup and checks are confined by.
    pub sandbox: SandboxSettings,
    /// How many bytes of disk space must be free for new work.
    pub free_space: u64,
    /// How many goals may run at once.
    pub caps: Caps,
    /// What goals may spend together.
    pub shared_budgets: SharedBudgets,
    pub server: ServerSettings,
    /// Who is notified when a goal needs its user or has ended.
    pub notify: NotifySettings,
    /// The agents by name. Those inside the binary may have no command: it is whoever reads this.
    pub agents: BTreeMap<String, AgentSettings>,
}

impl Config {
    /// Has the agents that are part of this program started as `program`.
    pub fn set_own_program(&mut self, program: &str) {
        for agent in self.agents.values_mut().filter(|agent| agent.command.is_empty()) {
            agent.command = vec![program.to_owned()];
        }
    }
}

/// Where the work happens, as far as it is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceSettings {
    /// Whether the agent has a directory of its own.
    pub mode: Option<WorkspaceMode>,
    /// What the work starts from, as git names it.
    pub base: Option<String>,
    /// Commands that make a fresh checkout ready.
    pub setup: Option<Vec<String>>,
    /// Ignored files that a checkout needs.
    pub copy: Option<Vec<String>>,
    /// Globs of tracked files that setup may change.
    pub generated: Option<Vec<String>>,
    /// Variables that checks and setup get although they look secret.
    pub pass_env: Option<Vec<String>>,
    /// Directories that a verdict leaves for the next one.
    pub warm: Option<Vec<String>>,
    /// How a verdict that passed with them is confirmed.
    pub confirm: Option<Confirm>,
}

/// A configuration, and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub config: Config,
    /// Which layer set what, by dotted key. Keys that nobody set and that have no default are not here.
    pub sources: BTreeMap<String, LayerName>,
    /// What is set but has no effect.
    pub warnings: Vec<Warning>,
    /// What a repository's file sets that needs the user's trust, by dotted key.
    pub widening: BTreeMap<String, Json>,
}

/// One setting as people may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSetting {
    /// Its dotted key.
    pub key: String,
    /// What it is set to, as TOML; none where that may be a secret.
    pub value: Option<String>,
    /// The layer that set it.
    pub layer: LayerName,
}

/// All that is known about layers, whether or not they make a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// What the layers set where they can be read. Agents with problems are missing.
    pub config: Config,
    /// Every setting in force, by key.
    pub settings: Vec<ShownSetting>,
    /// What a repository's file sets that needs the user's trust, by dotted key.
    pub widening: BTreeMap<String, Json>,
    /// Those of them that have no effect, because the user has not accepted them.
    pub withheld: Vec<ShownSetting>,
    /// What is set but has no effect.
    pub warnings: Vec<Warning>,
    /// What is wrong. Nothing if the configuration can be used.
    pub problems: Vec<Problem>,
    /// The agents of the user's own layers.
    pub own_agents: OwnAgents,
}

/// Reads the layers, later over earlier, all over the built-in defaults.
///
/// Tables are merged key by key; arrays, and so the list of checks, are replaced. Every layer is checked as a whole,
/// also where a later one has another word.
pub fn load(layers: &[Layer]) -> Result<Loaded, ConfigError> {
    let Inspection { config, settings, warnings, problems, widening, .. } = inspect(layers);
    if !problems.is_empty() {
        return Err(ConfigError::Problems(problems));
    }
    let sources = settings.into_iter().map(|setting| (setting.key, setting.layer)).collect();
    Ok(Loaded { config, sources, warnings, widening })
}

/// Reads the layers like [`load`], and goes on where something is wrong with them.
pub fn inspect(layers: &[Layer]) -> Inspection {
    inspect_as(layers, Trusting::All)
}

/// The same, where the settings of a repository's file that need the user's trust have no effect. What is wrong with the layers is
/// what is wrong with all of their settings.
pub fn inspect_without_trust(layers: &[Layer]) -> Inspection {
    let Inspection { warnings, problems, .. } = inspect(layers);
    Inspection { warnings, problems, ..inspect_as(layers, Trusting::WithoutWidening) }
}

fn inspect_as(layers: &[Layer], trusting: Trusting) -> Inspection {
    let own_agents = OwnAgents::of(layers);
    let mut settings = Settings::trusting(trusting, own_agents.clone());
    let defaults = LayerContent::Toml(DEFAULTS.to_owned());
    settings.add(&Layer { name: LayerName::Defaults, content: defaults });
    for layer in layers {
        settings.add(layer);
    }
    // What is missed later on may be missing only because of these.
    let first_problems = std::mem::take(&mut settings.problems);
    fill_in_agent_defaults(&mut settings);
    let agents = agents::read(&mut settings);
    let agents_in_order = agents::in_order(&mut settings, &agents);
    let problems =
        if first_problems.is_empty() { std::mem::take(&mut settings.problems) } else { first_problems };
    let config = Config {
        agents_in_order,
        briefing: settings.get(&["defaults", "briefing"]).unwrap_or(true),
        budget: read_budget(&settings),
        checks: settings.get(&["checks"]).unwrap_or_default(),
        baseline: baseline_mode(&settings, &["baseline", "mode"]).unwrap_or_default(),
        protect: settings.get(&["protect", "paths"]).unwrap_or_default(),
        workspace: read_workspace(&settings),
        retention: settings.get(&["retention", "logs"]).unwrap_or_default(),
        free_space: operator::free_space(&settings),
        sandbox: sandbox::read(&settings),
        caps: operator::caps(&settings),
        shared_budgets: operator::shared_budgets(&settings),
        server: operator::server(&settings),
        notify: operator::notify(&settings),
        agents: agents.usable.clone(),
    };
    let widening = &settings.widening;
    Inspection {
        config,
        settings: shown(&settings.values),
        withheld: if trusting == Trusting::All { Vec::new() } else { shown(widening) },
        widening: widening.iter().map(|(path, setting)| (path.to_string(), setting.value.json())).collect(),
        warnings: warnings(&settings, agents),
        problems,
        own_agents,
    }
}

fn shown(settings: &BTreeMap<KeyPath, Setting>) -> Vec<ShownSetting> {
    let shown = settings.iter().map(|(path, setting)| ShownSetting {
        key: path.to_string(),
        value: schema::may_be_shown(path).then(|| setting.value.to_string()),
        layer: setting.place.layer.clone(),
    });
    shown.collect()
}

/// Every agent has them, whoever named it.
fn fill_in_agent_defaults(settings: &mut Settings) {
    let Ok(defaults) = DeTable::parse(AGENT_DEFAULTS) else { return };
    for (name, _) in settings.names_below(&["agents"]) {
        let origin = Origin::of(&LayerName::Defaults, AGENT_DEFAULTS);
        let mut agent = Settings::default();
        agent.add_table(origin, &KeyPath::of(&["agents", &name]), defaults.get_ref());
        settings.fill_in(agent);
    }
}

pub(crate) fn read_budget(settings: &Settings) -> Budget {
    let count = |axis| settings.get::<u64>(&["budget", axis]);
    Budget {
        turns: count("turns"),
        attempts: count("attempts"),
        wall: settings.get(&["budget", "wall"]),
        tokens: count("tokens").map(Tokens),
        usd: settings.get(&["budget", "usd"]),
        errors: count("errors"),
        denials: count("denials"),
    }
}

pub(crate) fn read_workspace(settings: &Settings) -> WorkspaceSettings {
    let word = |key| settings.get::<String>(&["workspace", key]);
    let list = |key| settings.get(&["workspace", key]);
    // Whether the place is in a repository is found out later.
    let mode = |mode| if mode == "in-place" { WorkspaceMode::InPlace } else { WorkspaceMode::Clone };
    let confirm = |confirm| if confirm == "never" { Confirm::Never } else { Confirm::Clean };
    WorkspaceSettings {
        mode: word("mode").map(mode),
        base: word("base"),
        setup: list("setup"),
        copy: list("copy"),
        generated: list("generated"),
        pass_env: list("pass_env"),
        warm: list("warm"),
        confirm: word("confirm").map(confirm),
    }
}

/// What to do with the checks on the base, if it is set.
pub(crate) fn baseline_mode(settings: &Settings, path: &[&str]) -> Option<BaselineMode> {
    BaselineMode::named(&settings.get::<String>(path)?)
}

/// One warning for each setting without effect. Sorted by key.
fn warnings(settings: &Settings, agents: Agents) -> Vec<Warning> {
    let mut warnings = agents.warnings;
    warnings.extend(unused(settings));
    warnings.sort_by(|one, other| one.key.cmp(&other.key));
    warnings
}

/// What is set and known, but does nothing in this version.
pub(crate) fn unused(settings: &Settings) -> Vec<Warning> {
    let unused = settings.values.iter().filter(|(_, setting)| setting.effect == Effect::NotYet);
    unused
        .map(|(path, setting)| Warning {
            key: path.to_string(),
            place: setting.place.clone(),
            kind: WarningKind::Unused,
        })
        .collect()
}
