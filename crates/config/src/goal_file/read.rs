//! From the text of a goal's file to what it sets.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value as Json, json};
use toml::de::DeTable;
use towline_core::{BaselineMode, Budget, Check, Confirm, WorkspaceMode};

use super::format::{LONGEST_GOAL_FILE, Language, take_apart};
use super::{template, yaml};
use crate::convert::{baseline_mode, confirm, read_budget, unused, workspace_mode};
use crate::error::{ConfigError, Problem, Warning, WarningKind};
use crate::layer::{LayerName, Origin, Place};
use crate::schema::{KeyPath, Schema};
use crate::settings::Settings;
use crate::value::{FromValue, Value};

/// The settings of agents that a goal may have of its own, besides `mcp`.
const AGENT_KEYS: [&str; 8] =
    ["permission", "allow", "deny", "system_append", "dirs", "max_turns", "args", "mcp_file"];

/// What a goal's file sets. What it does not set is left to the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct GoalFile {
    /// What is to be done, filled in if it is a template; nothing when the file has none.
    pub prompt: Option<String>,
    /// One line for people.
    pub title: Option<String>,
    /// The agents, in order, by name.
    pub agents: Option<Vec<String>>,
    pub model: Option<String>,
    /// What is set for all of its agents, by the keys of `[agents.NAME]`.
    pub agent_settings: BTreeMap<String, Json>,
    /// How it is checked.
    pub checks: Option<Vec<Check>>,
    /// The limits that it names; the others are left out.
    pub budget: Budget,
    /// Globs of paths that stay as in the base.
    pub protect: Option<Vec<String>>,
    /// Globs of paths, and sections, that this goal may change although they are protected.
    pub unprotect: Vec<String>,
    /// Where the work happens.
    pub workspace: WorkspaceOverrides,
    /// Whether the first prompt explains unattended work.
    pub briefing: Option<bool>,
    /// Whether the checks run on the base first, and whether they must fail there.
    pub baseline: Option<BaselineMode>,
    /// Free words to find it by.
    pub labels: Vec<String>,
    /// Free data for programs.
    pub metadata: BTreeMap<String, Json>,
    /// Where it came from.
    pub origin: GoalOrigin,
    /// What is set but has no effect.
    pub warnings: Vec<Warning>,
}

/// Where the work of a goal happens, as far as its file sets it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceOverrides {
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

/// Where a goal came from, as far as its file sets it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GoalOrigin {
    pub channel: Option<String>,
    /// The conversation on that surface.
    pub thread: Option<String>,
    pub by: Option<String>,
}

/// A goal without a file sets nothing.
impl Default for GoalFile {
    fn default() -> Self {
        Self {
            prompt: None,
            title: None,
            agents: None,
            model: None,
            agent_settings: BTreeMap::new(),
            checks: None,
            budget: Budget::NONE,
            protect: None,
            unprotect: Vec::new(),
            workspace: WorkspaceOverrides::default(),
            briefing: None,
            baseline: None,
            labels: Vec::new(),
            metadata: BTreeMap::new(),
            origin: GoalOrigin::default(),
            warnings: Vec::new(),
        }
    }
}

/// Reads a goal's file, which is called `path`. All that is wrong with it is reported at once.
pub fn read_goal_file(path: &Path, text: &str) -> Result<GoalFile, ConfigError> {
    let layer = LayerName::Goal(path.to_path_buf());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let origin = Origin::of(&layer, text);
    let problem = |what: String, fix: String| {
        ConfigError::Problems(vec![Problem { what, place: origin.place(0..0), fix }])
    };
    if text.len() > LONGEST_GOAL_FILE {
        let fix = format!("{LONGEST_GOAL_FILE} are the most: put the rest into files that the prompt names");
        return Err(problem(format!("{} bytes are too much for a goal", text.len()), fix));
    }
    let parts = take_apart(path, text).map_err(|shapeless| problem(shapeless.what, shapeless.fix))?;
    let mut settings = Settings::with(Schema::GOAL);
    if let Some((language, text)) = &parts.settings {
        add(&mut settings, origin, *language, text);
    }
    let prompt_text =
        parts.body.map(|body| (text[body.clone()].to_owned(), origin.place(first_line(text, body.start))));
    convert(settings, prompt_text)
}

/// The first byte with a meaning, from a byte on.
fn first_line(text: &str, from: usize) -> std::ops::Range<usize> {
    let blank = text[from..].len() - text[from..].trim_start().len();
    from + blank..from + blank
}

fn add(settings: &mut Settings, origin: Origin<'_>, language: Language, text: &str) {
    let failed = match language {
        Language::Toml => match DeTable::parse(text) {
            Ok(table) => return settings.add_sorted(origin, table.get_ref()),
            Err(error) => ("invalid TOML", error.span().unwrap_or_default(), error.message().to_owned()),
        },
        Language::Yaml => match yaml::parse(text) {
            Ok(table) => return settings.add_sorted(origin, &table),
            Err(error) => ("invalid YAML", error.span, error.message),
        },
    };
    let (what, span, fix) = failed;
    settings.report(what.to_owned(), origin.place(span), fix);
}

fn convert(mut settings: Settings, body: Option<(String, Place)>) -> Result<GoalFile, ConfigError> {
    let has_body = body.is_some();
    let prompt_text =
        body.or_else(|| Some((settings.get(&["prompt"])?, settings.place(&["prompt"])?.clone())));
    if has_body && let Some(place) = settings.place(&["prompt"]).cloned() {
        let fix = "take it out: the text below the settings is the prompt".to_owned();
        settings.report("`prompt` in front matter".to_owned(), place, fix);
    }
    if settings.get::<Vec<String>>(&["agents"]).is_some_and(|agents| agents.is_empty())
        && let Some(place) = settings.place(&["agents"]).cloned()
    {
        settings.report("`agents` is empty".to_owned(), place, "name one, or leave the key out".to_owned());
    }
    let mut warnings = unused(&settings);
    let prompt = prompt_text.and_then(|(text, place)| fill_in(&mut settings, &mut warnings, text, place));
    if !settings.problems.is_empty() {
        return Err(ConfigError::Problems(settings.problems));
    }
    let workspace = |key| ["workspace", key];
    let origin = |key| settings.get(&["origin", key]);
    Ok(GoalFile {
        prompt: prompt.map(|prompt| prompt.trim().to_owned()).filter(|prompt| !prompt.is_empty()),
        title: settings.get(&["title"]),
        agents: settings.get(&["agents"]),
        model: settings.get(&["model"]),
        agent_settings: agent_settings(&settings),
        checks: settings.get(&["checks"]),
        budget: read_budget(&settings),
        protect: settings.get(&["protect", "paths"]),
        unprotect: settings.get(&["unprotect"]).unwrap_or_default(),
        workspace: WorkspaceOverrides {
            mode: workspace_mode(&settings),
            base: settings.get(&workspace("base")),
            setup: settings.get(&workspace("setup")),
            copy: settings.get(&workspace("copy")),
            generated: settings.get(&workspace("generated")),
            pass_env: settings.get(&workspace("pass_env")),
            warm: settings.get(&workspace("warm")),
            confirm: confirm(&settings),
        },
        briefing: settings.get(&["briefing"]),
        baseline: baseline(&settings),
        labels: settings.get(&["labels"]).unwrap_or_default(),
        metadata: settings.get(&["metadata"]).unwrap_or_default(),
        origin: GoalOrigin { channel: origin("channel"), thread: origin("thread"), by: origin("by") },
        warnings,
    })
}

/// `red_first = true` is another way to write `baseline = "red"`.
fn baseline(settings: &Settings) -> Option<BaselineMode> {
    let is_red = settings.get(&["red_first"]) == Some(true);
    if is_red { Some(BaselineMode::Red) } else { baseline_mode(settings, &["baseline"]) }
}

/// The prompt, filled in if it is a template; what is wrong with that is reported.
fn fill_in(
    settings: &mut Settings,
    warnings: &mut Vec<Warning>,
    text: String,
    place: Place,
) -> Option<String> {
    if settings.get(&["template"]) != Some(true) {
        if let Some(place) = settings.place(&["context"]).cloned() {
            warnings.push(Warning { key: "context".to_owned(), place, kind: WarningKind::NoTemplate });
        }
        return Some(text);
    }
    let context: BTreeMap<String, Json> = settings.get(&["context"]).unwrap_or_default();
    match template::render(&text, &context) {
        Ok(prompt) => Some(prompt),
        Err(error) => {
            let what = format!("{} (line {} of the prompt)", error.what, error.line);
            settings.report(what, place, error.fix);
            None
        }
    }
}

/// What the goal sets for its agents, as the configuration would have it below `[agents.NAME]`.
fn agent_settings(settings: &Settings) -> BTreeMap<String, Json> {
    let set = AGENT_KEYS.into_iter().filter_map(|key| {
        let value = &settings.values.get(&KeyPath::of(&[key]))?.value;
        Some((key.to_owned(), as_json(value)?))
    });
    let mut set: BTreeMap<String, Json> = set.collect();
    let servers = settings.names_below(&["mcp"]).into_iter().map(|(server, _)| {
        // One without a program and an address is refused together with the agents' own.
        let mut given = serde_json::Map::new();
        if let Some(command) = settings.get::<Vec<String>>(&["mcp", &server, "command"]) {
            given.insert("command".to_owned(), json!(command));
        }
        if let Some(url) = settings.get::<String>(&["mcp", &server, "url"]) {
            given.insert("url".to_owned(), json!(url));
        }
        let headers = settings.names_below(&["mcp", &server, "headers"]).into_iter();
        let headers = headers.filter_map(|(name, _)| {
            Some((name.clone(), Json::from(settings.get::<String>(&["mcp", &server, "headers", &name])?)))
        });
        let headers: serde_json::Map<String, Json> = headers.collect();
        if !headers.is_empty() {
            given.insert("headers".to_owned(), Json::Object(headers));
        }
        (server, Json::Object(given))
    });
    let servers: serde_json::Map<String, Json> = servers.collect();
    if !servers.is_empty() {
        set.insert("mcp".to_owned(), Json::Object(servers));
    }
    set
}

fn as_json(value: &Value) -> Option<Json> {
    String::from_value(value)
        .map(Json::from)
        .or_else(|| Vec::<String>::from_value(value).map(Json::from))
        .or_else(|| u64::from_value(value).map(Json::from))
}
