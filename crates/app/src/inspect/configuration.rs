//! Which layers of the configuration there are, which of them set what, and what is wrong with them.

use std::path::Path;

use towline_api::{ConfigurationFacts, LayerFacts, ProblemFacts, SettingFacts};
use towline_config::{Inspection, LayerName, Problem, ShownSetting, Warning, WarningKind};

use super::rows::{Mark, Row, Section};
use crate::context::Context;
use crate::error::Action;
use crate::notify::{missing_webhook_secret, way_to_set};
use crate::trust::WideningFile;

/// Reads all layers, also where one is broken.
pub(crate) fn look(context: &Context) -> (Section<ConfigurationFacts>, Inspection) {
    let files = context.layer_files(&context.directory);
    let inspection = context.inspection(&context.directory, &files);
    let mut facts = ConfigurationFacts::default();
    let mut rows = Vec::new();
    add_layer(&mut facts, &mut rows, &LayerName::Defaults, "read", &inspection);
    for file in &files {
        let state = match &file.text {
            Ok(Some(_)) => "read",
            Ok(None) => "absent",
            Err(error) => {
                rows.push(unreadable(&file.name, error));
                "unreadable"
            }
        };
        add_layer(&mut facts, &mut rows, &file.name, state, &inspection);
    }
    let environment = if inspection.settings.iter().any(|setting| setting.layer == LayerName::Environment) {
        "read"
    } else {
        "absent"
    };
    add_layer(&mut facts, &mut rows, &LayerName::Environment, environment, &inspection);
    rows.extend(inspection.problems.iter().map(problem_row));
    rows.extend(inspection.warnings.iter().map(warning_row));
    rows.extend(trust_row(context, &inspection));
    rows.extend(server_row(context, &inspection));
    facts.settings = inspection.settings.iter().map(setting_facts).collect();
    facts.untrusted = inspection.withheld.iter().map(setting_facts).collect();
    facts.warnings = inspection.warnings.iter().map(ToString::to_string).collect();
    facts.errors = inspection.problems.iter().map(error_facts).collect();
    (Section { facts, rows }, inspection)
}

fn add_layer(
    facts: &mut ConfigurationFacts,
    rows: &mut Vec<Row>,
    name: &LayerName,
    state: &'static str,
    inspection: &Inspection,
) {
    let own: Vec<&ShownSetting> =
        inspection.settings.iter().filter(|setting| setting.layer == *name).collect();
    let path = path_of(name).map(|path| path.display().to_string());
    facts.layers.push(LayerFacts {
        layer: word_for(name).to_owned(),
        path: path.clone(),
        state: state.to_owned(),
        settings: own.len(),
    });
    let is_default = *name == LayerName::Defaults;
    let mut row = match state {
        "read" if is_default => {
            let row = Row::new(Mark::Plain, word_for(name), format!("{} settings", own.len()));
            Row { more: Some((Action::ListSettings, "lists them")), ..row }
        }
        "read" => {
            let text = path.unwrap_or_else(|| "variables TOWLINE_SET_…".to_owned());
            let broken = inspection.problems.iter().any(|problem| problem.place.layer == *name);
            Row::new(if broken { Mark::Plain } else { Mark::Good }, word_for(name), text)
        }
        "absent" => {
            let text = path.map_or_else(|| "nothing set".to_owned(), |path| format!("none: {path}"));
            let more = matches!(name, LayerName::Repository(_)).then_some((Action::Init, "writes one"));
            Row { more, ..Row::new(Mark::Plain, word_for(name), text) }
        }
        _ => return,
    };
    if !is_default {
        row.details = own.iter().map(|setting| shown(setting)).collect();
        let withheld = inspection.withheld.iter().filter(|setting| setting.layer == *name);
        row.details.extend(withheld.map(|setting| format!("not trusted: {}", shown(setting))));
    }
    rows.push(row);
}

fn shown(setting: &ShownSetting) -> String {
    match &setting.value {
        Some(value) => format!("{} = {value}", setting.key),
        None => format!("{} (not shown)", setting.key),
    }
}

fn setting_facts(setting: &ShownSetting) -> SettingFacts {
    let ShownSetting { key, value, layer } = setting;
    let path = path_of(layer).map(|path| path.display().to_string());
    SettingFacts { key: key.clone(), value: value.clone(), layer: word_for(layer).to_owned(), path }
}

fn error_facts(problem: &Problem) -> ProblemFacts {
    let Problem { what, place, fix } = problem;
    ProblemFacts { what: what.clone(), place: place.to_string(), fix: fix.clone() }
}

fn problem_row(problem: &Problem) -> Row {
    let Problem { what, place, fix } = problem;
    Row::new(Mark::Problem, "error", format!("{what} in {place}")).fix(fix.as_str())
}

fn warning_row(warning: &Warning) -> Row {
    let fix = match warning.kind {
        WarningKind::Unused => "take it out: it does nothing",
        WarningKind::VisiblePrompt => "use one of the others if the program can",
        WarningKind::NoTemplate => "set `template = true`, or take it out",
    };
    Row::new(Mark::Note, "warning", warning.to_string()).fix(fix)
}

/// The settings of the repository's file that the user has to accept first.
fn trust_row(context: &Context, inspection: &Inspection) -> Option<Row> {
    let file = inspection.withheld.iter().find_map(|setting| path_of(&setting.layer))?;
    let widening = WideningFile::of(context, file, &inspection.widening).ok().flatten()?;
    let refusal = widening.refusal();
    let row = Row::new(Mark::Problem, "trust", refusal.message());
    Some(match refusal.way_out() {
        Some(fix) => row.fix(fix),
        None => row,
    })
}

/// What stops `towline up`.
fn server_row(context: &Context, inspection: &Inspection) -> Option<Row> {
    let server = match context.for_server() {
        Ok(server) => server,
        Err(error) => {
            let row = Row::new(Mark::Problem, "env file", error.message());
            return Some(match error.way_out() {
                Some(fix) => row.fix(fix),
                None => row.fix("correct it, or move it away"),
            });
        }
    };
    let name = missing_webhook_secret(&server, &inspection.config.notify)?;
    let what = format!("cannot be signed: {name} is not set");
    Some(Row::new(Mark::Problem, "webhooks", what).fix(way_to_set(context, name)))
}

fn unreadable(name: &LayerName, error: &std::io::Error) -> Row {
    Row::new(Mark::Problem, word_for(name), format!("cannot read {name}: {error}"))
        .fix("make it a text file that you may read, or move it away")
}

fn path_of(name: &LayerName) -> Option<&Path> {
    match name {
        LayerName::User(path) | LayerName::Repository(path) | LayerName::Goal(path) => Some(path),
        LayerName::Defaults | LayerName::Environment | LayerName::Flags | LayerName::StoredGoal => None,
    }
}

const fn word_for(name: &LayerName) -> &'static str {
    match name {
        LayerName::Defaults => "defaults",
        LayerName::User(_) => "user",
        LayerName::Repository(_) => "repository",
        LayerName::Environment => "environment",
        LayerName::Flags => "flags",
        LayerName::Goal(_) | LayerName::StoredGoal => "goal",
    }
}
