//! `[agents.NAME]`: which agents there are.

use std::collections::{BTreeMap, BTreeSet};

use towline_agent::{AgentSettings, Kind, McpServer, Permission, agent};
use towline_core::{AgentName, SessionLimits, Timeouts};

use crate::builtin_agents;
use crate::command_agents;
use crate::convert::Config;
use crate::error::{ConfigError, Warning, did_you_mean};
use crate::kind_keys;
use crate::layer::Place;
use crate::mcp_file::check_url;
use crate::prices;
use crate::schema::KeyPath;
use crate::settings::Settings;
use crate::suggest::nearest;

/// The settings of an agent by its name.
pub fn resolve_agent<'a>(config: &'a Config, name: &str) -> Result<&'a AgentSettings, ConfigError> {
    config.agents.get(name).ok_or_else(|| {
        let known: Vec<String> = config.agents.keys().cloned().collect();
        let nearest = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
        ConfigError::UnknownAgent { name: name.to_owned(), known, nearest }
    })
}

/// The agents of a configuration.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    /// Those that can be used.
    pub(crate) usable: BTreeMap<String, AgentSettings>,
    /// Those with problems, which have been reported.
    pub(crate) broken: BTreeSet<String>,
    /// What its author may not expect.
    pub(crate) warnings: Vec<Warning>,
}

/// Reads all agents. Problems are reported to `settings`.
pub(crate) fn read(settings: &mut Settings) -> Agents {
    let mut agents = Agents::default();
    let prices = prices::read(settings);
    for (name, place) in settings.names_below(&["agents"]) {
        if let Some(mut read) = read_agent(settings, &name, place) {
            read.prices.clone_from(&prices);
            agents.warnings.extend(command_agents::visible_prompt(settings, &name, &read));
            agents.usable.insert(name, read);
        } else {
            agents.broken.insert(name);
        }
    }
    agents
}

/// The agents to use, in order. Each must be there.
pub(crate) fn in_order(settings: &mut Settings, agents: &Agents) -> Vec<AgentName> {
    const KEY: [&str; 2] = ["defaults", "agents"];
    let names: Vec<String> = settings.get(&KEY).unwrap_or_default();
    let Some(place) = settings.place(&KEY).cloned() else { return Vec::new() };
    if names.is_empty() {
        let fix = "name at least one, such as `agents = [\"claude\"]`".to_owned();
        settings.report("no agent in `defaults.agents`".to_owned(), place, fix);
        return Vec::new();
    }
    let is_there = |name: &String| agents.usable.contains_key(name) || agents.broken.contains(name);
    for name in names.iter().filter(|name| !is_there(name)) {
        let known: Vec<&str> = agents.usable.keys().map(String::as_str).collect();
        let meant = did_you_mean(nearest(name, known.iter().copied()));
        let fix = format!("known agents: {}{meant}", known.join(", "));
        settings.report(format!("unknown agent `{name}`"), place.clone(), fix);
    }
    names.into_iter().map(AgentName::new).collect()
}

fn is_agent_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !name.is_empty() && name.chars().all(fits)
}

/// An agent without a `kind`: a new one, or a slip of the pen in the name of another.
fn report_no_kind(settings: &mut Settings, name: &str, place: Place) {
    let defined: Vec<String> = settings
        .names_below(&["agents"])
        .into_iter()
        .map(|(other, _)| other)
        .filter(|other| settings.place(&["agents", other, "kind"]).is_some())
        .collect();
    let meant = nearest(name, defined.iter().map(String::as_str)).map(|other| format!("agents.{other}"));
    let fix = format!(
        "a new agent needs `kind` and `command`, such as `kind = \"claude\"` and `command = [\"claude\"]`{}",
        did_you_mean(meant.as_deref())
    );
    settings.report(format!("`agents.{name}` has no `kind`"), place, fix);
}

fn read_agent(settings: &mut Settings, name: &str, place: Place) -> Option<AgentSettings> {
    if !is_agent_name(name) {
        let fix = "use lower-case letters, digits, `-` and `_`".to_owned();
        settings.report(format!("`{name}` is no name for an agent"), place, fix);
        return None;
    }
    let Some(kind) = settings.get::<String>(&["agents", name, "kind"]) else {
        report_no_kind(settings, name, place);
        return None;
    };
    // The table of keys lets no other word be set.
    let kind: Kind = kind.parse().ok()?;
    let command = settings.get::<Vec<String>>(&["agents", name, "command"]);
    // An agent without a command is this program itself, wherever that is.
    let Some(command) = command.or_else(|| (!agent(kind).needs_command()).then(Vec::new)) else {
        let fix = format!("add the program to start, such as `command = [\"{}\"]`", kind.name());
        settings.report(format!("`agents.{name}` has no `command`"), place, fix);
        return None;
    };
    kind_keys::check(settings, name, kind)?;
    let cli = command_agents::read(settings, name, kind, &command)?;
    let api = builtin_agents::read(settings, name, kind)?;
    let permission = settings.get::<String>(&["agents", name, "permission"]);
    let permission = permission.and_then(|name| name.parse().ok()).unwrap_or(Permission::Deny);
    let mcp = read_mcp(settings, name);
    let list = |key| settings.get(&["agents", name, key]).unwrap_or_default();
    let time = |key| settings.get(&["agents", name, key]).unwrap_or_default();
    Some(AgentSettings {
        kind,
        command,
        model: settings.get(&["agents", name, "model"]),
        permission,
        allow: list("allow"),
        deny: list("deny"),
        system_append: settings.get(&["agents", name, "system_append"]),
        dirs: list("dirs"),
        max_turns: settings.get(&["agents", name, "max_turns"]).and_then(|turns: u64| turns.try_into().ok()),
        mcp,
        mcp_file: settings.get(&["agents", name, "mcp_file"]),
        args: list("args"),
        env: read_texts(settings, &["agents", name, "env"]),
        pass_env: list("pass_env"),
        sessions: SessionLimits {
            context_threshold: settings.get(&["agents", name, "context_threshold"]).unwrap_or_default(),
            idle: time("session_idle_limit"),
            age: time("session_age_limit"),
            outlives_process: true,
            compact_focus: settings.get(&["agents", name, "compact_focus"]),
        },
        timeouts: Timeouts {
            startup: time("startup_timeout"),
            idle: time("idle_timeout"),
            turn: time("turn_timeout"),
        },
        stop_grace: time("stop_grace"),
        account: settings.get(&["agents", name, "account"]),
        cli,
        api,
        prices: BTreeMap::new(),
    })
}

fn read_mcp(settings: &mut Settings, name: &str) -> BTreeMap<String, McpServer> {
    let mut servers = BTreeMap::new();
    for (server, place) in settings.names_below(&["agents", name, "mcp"]) {
        if server == McpServer::TOWLINE {
            let what =
                format!("`agents.{name}.mcp` has a server `{server}`, which is the name of Towline's own");
            settings.report(what, place, "give it another name".to_owned());
            continue;
        }
        let path = ["agents", name, "mcp", server.as_str()];
        let key = |key| [path.as_slice(), &[key]].concat();
        let command: Option<Vec<String>> = settings.get(&key("command"));
        let url: Option<String> = settings.get(&key("url"));
        let headers = read_texts(settings, &key("headers"));
        let problem = match (&command, &url) {
            (None, None) => Some("has neither a `command` nor a `url`".to_owned()),
            (Some(_), Some(_)) => Some("has both a `command` and a `url`".to_owned()),
            (Some(_), None) if !headers.is_empty() => Some("has `headers` and no `url`".to_owned()),
            (None, Some(url)) => check_url(url).err(),
            (Some(_), None) => None,
        };
        if let Some(problem) = problem {
            let fix = format!(
                "give it a program to start, `{server} = {{ command = [\"…\"] }}`, or an address, \
                 `{server} = {{ url = \"https://…\" }}`"
            );
            settings.report(format!("`{}` {problem}", KeyPath::of(&path)), place, fix);
            continue;
        }
        let command = command.unwrap_or_default();
        servers.insert(server, McpServer { command, url, headers, ..McpServer::default() });
    }
    servers
}

fn read_texts(settings: &Settings, path: &[&str]) -> BTreeMap<String, String> {
    let names = settings.names_below(path).into_iter();
    names.filter_map(|(key, _)| Some((key.clone(), settings.get(&[path, &[&key]].concat())?))).collect()
}
