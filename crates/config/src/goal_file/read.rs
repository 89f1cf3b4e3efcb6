//! From the text of a goal's file to what it sets.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value as Json};
use towline_core::{BaselineMode, Budget, Check};

use super::format::{LONGEST_GOAL_FILE, Language, take_apart};
use super::template::{self, PREREQUISITES, Prepared};
use super::yaml;
use crate::convert::{WorkspaceSettings, baseline_mode, read_budget, read_workspace, unused};
use crate::error::{ConfigError, Problem, Warning, WarningKind};
use crate::layer::{LayerName, Origin, Place};
use crate::pool_values::NamedPrerequisite;
use crate::schema::{KeyPath, Schema};
use crate::settings::Settings;
use crate::value::Value;

/// The settings of agents that a goal may have of its own, besides `mcp`.
const AGENT_KEYS: [&str; 8] =
    ["permission", "allow", "deny", "system_append", "dirs", "max_turns", "args", "mcp_file"];

/// What a goal's file sets. What it does not set is left to the configuration; a goal without a file sets nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GoalFile {
    /// What is to be done; nothing when the file has none. A template is filled in, unless it needs the prerequisites.
    pub prompt: Option<String>,
    /// The values of a prompt that is filled in when the prerequisites have ended.
    pub template: Option<BTreeMap<String, Json>>,
    /// Goals that must come to their end first.
    pub after: Vec<NamedPrerequisite>,
    pub priority: Option<i32>,
    /// Globs of the files that it changes.
    pub touches: Vec<String>,
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
    pub budget: Option<Budget>,
    /// Globs of paths that stay as in the base.
    pub protect: Option<Vec<String>>,
    /// Globs of paths, and sections, that this goal may change although they are protected.
    pub unprotect: Vec<String>,
    /// Where the work happens.
    pub workspace: WorkspaceSettings,
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

/// Where a goal came from, as far as its file sets it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GoalOrigin {
    pub channel: Option<String>,
    /// The conversation on that surface.
    pub thread: Option<String>,
    pub by: Option<String>,
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
    match language {
        Language::Toml => settings.add_toml(origin, text),
        Language::Yaml => match yaml::parse(text) {
            Ok(table) => settings.add_sorted(origin, &table),
            Err(error) => {
                settings.report("invalid YAML".to_owned(), origin.place(error.span), error.message);
            }
        },
    }
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
    let (prompt, template) = prompt.unzip();
    if !settings.problems.is_empty() {
        return Err(ConfigError::Problems(settings.problems));
    }
    let origin = |key| settings.get(&["origin", key]);
    Ok(GoalFile {
        prompt: prompt.map(|prompt| prompt.trim().to_owned()).filter(|prompt| !prompt.is_empty()),
        template: template.flatten(),
        after: settings.get(&["after"]).unwrap_or_default(),
        priority: settings.get(&["priority"]),
        touches: settings.get(&["touches"]).unwrap_or_default(),
        title: settings.get(&["title"]),
        agents: settings.get(&["agents"]),
        model: settings.get(&["model"]),
        agent_settings: agent_settings(&settings),
        checks: settings.get(&["checks"]),
        budget: Some(read_budget(&settings)).filter(|budget| *budget != Budget::NONE),
        protect: settings.get(&["protect", "paths"]),
        unprotect: settings.get(&["unprotect"]).unwrap_or_default(),
        workspace: read_workspace(&settings),
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

/// The prompt, filled in if it is a template, or with the values that it is filled in with later; what is wrong with it is
/// reported.
fn fill_in(
    settings: &mut Settings,
    warnings: &mut Vec<Warning>,
    text: String,
    place: Place,
) -> Option<(String, Option<BTreeMap<String, Json>>)> {
    if settings.get(&["template"]) != Some(true) {
        if let Some(place) = settings.place(&["context"]).cloned() {
            warnings.push(Warning { key: "context".to_owned(), place, kind: WarningKind::NoTemplate });
        }
        return Some((text, None));
    }
    let context: BTreeMap<String, Json> = settings.get(&["context"]).unwrap_or_default();
    if context.contains_key(PREREQUISITES)
        && let Some(place) = settings.place(&["context"]).cloned()
    {
        let what = format!("`context` has a value `{PREREQUISITES}`, which Towline fills in");
        settings.report(what, place, "give it another name".to_owned());
        return None;
    }
    match template::prepare(&text, &context) {
        Ok(Prepared::Filled(prompt)) => Some((prompt, None)),
        Ok(Prepared::NeedsPrerequisites) => Some((text, Some(context))),
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
    // A server without a program and an address is refused together with the agents' own.
    let servers = table_as_json(settings, &["mcp"]);
    if !servers.is_empty() {
        set.insert("mcp".to_owned(), Json::Object(servers));
    }
    set
}

/// All that is set below a path.
fn table_as_json(settings: &Settings, path: &[&str]) -> Map<String, Json> {
    let names = settings.names_below(path).into_iter();
    let entries = names.filter_map(|(name, _)| {
        let path = [path, &[name.as_str()]].concat();
        let value = match settings.values.get(&KeyPath::of(&path)) {
            Some(setting) => as_json(&setting.value)?,
            None => Json::Object(table_as_json(settings, &path)),
        };
        Some((name, value))
    });
    entries.collect()
}

fn as_json(value: &Value) -> Option<Json> {
    match value {
        Value::Text(text) => Some(text.as_str().into()),
        Value::List(items) => Some(items.as_slice().into()),
        Value::Count(count) => Some((*count).into()),
        _ => None,
    }
}
