//! `towline init`: looks at the project and at the agents, and writes a `towline.toml` that works as it is.
//!
//! `look` reads the disk, `plan` decides, `file` writes it down in words; here they are put together and told. No agent
//! is started, and nothing but the one file is written.

mod file;
mod look;
mod node;
mod others;
mod plan;
mod presets;
mod python;
#[cfg(test)]
mod tests;
mod tree;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use towline_config::{Inspection, LayerName};
use towline_workspace::{Repository, WorkspaceError};

use crate::context::{Context, LayerFile};
use crate::failure::Failure;
use crate::inspect::lines::rows_lines;
use crate::inspect::rows::{Mark, Row};
use crate::view::Paint;
use crate::{
    find,
    output::{self, Layout},
};
use file::Agents;
use plan::{Command, Plan, Protection};

const FILE: &str = "towline.toml";

/// Write a towline.toml for this project.
#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// Replace the file that is there
    #[arg(long)]
    force: bool,
    /// Show what would be written, and write nothing
    #[arg(long, alias = "stdout", conflicts_with = "force")]
    print: bool,
    /// Print what was found and written as JSON
    #[arg(long)]
    json: bool,
}

/// An agent whose program is there.
#[derive(Debug, Serialize)]
struct Installed {
    name: String,
    path: String,
}

/// All that was found and done: the shape that programs rely on.
#[derive(Debug, Serialize)]
struct Report {
    path: String,
    written: bool,
    /// The top of the git repository; null where there is none.
    repository: Option<String>,
    agents: Vec<Installed>,
    checks: Vec<Command>,
    suggestions: Vec<Command>,
    setup: Vec<String>,
    copy: Vec<String>,
    warm: Vec<String>,
    protect: Vec<String>,
    #[serde(skip)]
    protected: Vec<Protection>,
    /// What is missing for a goal to be done here, each with what to do about it.
    missing: Vec<Missing>,
    /// What to type next.
    next: Vec<String>,
    text: String,
}

#[derive(Debug, Clone, Serialize)]
struct Missing {
    about: String,
    what: String,
    fix: String,
}

/// Writes the file, or shows it, and says what comes next.
pub(crate) fn run(context: &Context, args: &Init) -> Result<ExitCode, Failure> {
    let place = Place::find(context)?;
    let path = place.root.join(FILE);
    if !args.print && !args.force && path.symlink_metadata().is_ok() {
        return Err(already_there(&path));
    }
    let plan = plan::plan(&look::look(&place.root));
    let (agents, installed) = agents(context);
    let text = file::text(&plan, &agents);
    if !args.print {
        write(&path, &text, args.force).map_err(|error| not_written(&path, &error))?;
    }
    let report = Report {
        path: path.display().to_string(),
        written: !args.print,
        repository: place.repository.as_ref().map(|repository| repository.root().display().to_string()),
        missing: missing(context, &place, &plan, &installed),
        next: next(&place, &plan),
        agents: installed,
        checks: plan.checks,
        suggestions: plan.suggestions,
        setup: plan.setup,
        copy: plan.copy,
        warm: plan.warm,
        protect: plan.protect.iter().flat_map(|part| part.paths.clone()).collect(),
        protected: plan.protect,
        text,
    };
    match (args.json, args.print) {
        (true, _) => output::tell_json(Layout::Pretty, &report),
        (false, true) => output::tell(report.text.trim_end()),
        (false, false) => tell(Paint::for_stdout(context), &report),
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the file goes: commands and paths in it are relative to the top of the repository.
struct Place {
    root: PathBuf,
    repository: Option<Repository>,
    has_commits: bool,
}

impl Place {
    fn find(context: &Context) -> Result<Self, Failure> {
        match Repository::discover(&context.directory) {
            Ok(repository) => {
                let has_commits = repository.resolve("HEAD").is_ok();
                let root = repository.root().to_path_buf();
                Ok(Self { root, repository: Some(repository), has_commits })
            }
            Err(WorkspaceError::NotARepository { .. } | WorkspaceError::GitNotStarted { .. }) => {
                Ok(Self { root: context.directory.clone(), repository: None, has_commits: false })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What the file says about agents, and which of them are there. Only the names that every Towline knows are written
/// down: an agent of the user's own is unknown to whoever else uses the repository.
fn agents(context: &Context) -> (Agents, Vec<Installed>) {
    let files = context.layer_files(&context.directory);
    let of_user: Vec<LayerFile> =
        files.into_iter().filter(|file| matches!(file.name, LayerName::User(_))).collect();
    let inspection = context.inspection(&of_user);
    let by_user = |setting: &&towline_config::ShownSetting| {
        setting.key == "defaults.agents" && matches!(setting.layer, LayerName::User(_))
    };
    if inspection.settings.iter().find(by_user).is_some() {
        let names: Vec<String> = inspection.config.agents_in_order.iter().map(ToString::to_string).collect();
        let found = installed(context, &inspection, &names);
        return (Agents::OfTheUser(names), found);
    }
    let built_in: Vec<String> = towline_config::inspect(&[]).config.agents.into_keys().collect();
    let found = installed(context, &inspection, &built_in);
    let names: Vec<String> = found.iter().map(|agent| agent.name.clone()).collect();
    (if names.is_empty() { Agents::None } else { Agents::Installed(names) }, found)
}

fn installed(context: &Context, inspection: &Inspection, names: &[String]) -> Vec<Installed> {
    let look = |name: &String| {
        let path = find::agent_program(context, inspection.config.agents.get(name)?)?;
        Some(Installed { name: name.clone(), path: path.display().to_string() })
    };
    names.iter().filter_map(look).collect()
}

fn missing(context: &Context, place: &Place, plan: &Plan, agents: &[Installed]) -> Vec<Missing> {
    let missing = |about: &str, what: String, fix: String| Missing { about: about.to_owned(), what, fix };
    let mut all = Vec::new();
    if place.repository.is_none() {
        all.push(missing(
            "git",
            "this folder is in no git repository, so there is nothing to undo a change with".to_owned(),
            "make it one as below, or work in the folder itself: `towline run --in-place`".to_owned(),
        ));
    }
    if agents.is_empty() {
        all.push(missing("agents", "none is installed".to_owned(), how_to_get_one()));
    }
    if plan.checks.is_empty() {
        let what = "nothing to run was found, and without a check a goal can end as unproven at best";
        let fix = "write one into the file, or give it to the run: `--check CMD`";
        all.push(missing("checks", what.to_owned(), fix.to_owned()));
    }
    let search_path = context.variable("PATH");
    let absent =
        plan.programs.iter().filter(|program| find::program(program, &place.root, search_path).is_none());
    all.extend(absent.map(|program| {
        let what = format!("`{program}` was not found on PATH, and the file says to run it");
        missing(program, what, "install it, or change what the file says".to_owned())
    }));
    all
}

fn how_to_get_one() -> String {
    let built_in = towline_config::inspect(&[]).config.agents;
    let hints: Vec<&str> = built_in
        .values()
        .filter_map(|settings| towline_agent::agent(settings.kind).install_hint(settings))
        .collect();
    format!("{}; then sign in to it", hints.join(", or "))
}

fn next(place: &Place, plan: &Plan) -> Vec<String> {
    let commit = match (&place.repository, place.has_commits) {
        (None, _) => "git init && git add -A && git commit -m \"Start\"",
        (Some(_), false) => "git add -A && git commit -m \"Start\"",
        (Some(_), true) => "git add towline.toml && git commit -m \"Add towline.toml\"",
    };
    let check = if plan.checks.is_empty() { " --check \"./test.sh\"" } else { "" };
    vec![commit.to_owned(), format!("towline run \"fix the failing test\"{check}")]
}

fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    let create =
        |path: &Path| OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes());
    // Whoever was faster since we looked is not overwritten either.
    if !force {
        return create(path);
    }
    // What is there is replaced whole or not at all, and a link itself instead of what it leads to.
    let draft = path.with_extension(format!("toml.{}.new", std::process::id()));
    create(&draft).and_then(|()| fs::rename(&draft, path)).inspect_err(|_| {
        // It may not even have been made.
        let _ = fs::remove_file(&draft);
    })
}

fn already_there(path: &Path) -> Failure {
    Failure::usage(format!("{} is already there, and was left as it is", path.display()))
        .hint("`towline init --print` shows what would be written; `--force` replaces the file")
}

fn not_written(path: &Path, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return already_there(path);
    }
    Failure::internal(format!("cannot write {}: {error}", path.display()))
        .hint("`towline init --print` shows what belongs there")
}

fn tell(paint: Paint, report: &Report) {
    output::tell(format_args!("{} {}", paint.good("wrote"), output::printable(&report.path)));
    output::tell("");
    rows_lines(paint, &rows(report)).iter().for_each(output::tell);
    output::tell("");
    output::tell(paint.bold("next"));
    report.next.iter().for_each(|command| output::tell(format_args!("  {command}")));
}

/// The first of what is protected for one reason, and how many there are.
fn protected(part: &Protection) -> String {
    const SHOWN: usize = 3;
    let first = part.paths.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match part.paths.len().saturating_sub(SHOWN) {
        0 => format!("{}: {first}", part.what),
        more => format!("{}: {first} and {more} more in the file", part.what),
    }
}

fn rows(report: &Report) -> Vec<Row> {
    let good = |label: &str, text: String| Row::new(Mark::Good, label, text);
    let mut rows = Vec::new();
    rows.extend(report.agents.iter().map(|agent| good("agent", format!("{} ({})", agent.name, agent.path))));
    rows.extend(report.checks.iter().map(|check| good("check", check.run.clone())));
    if !report.suggestions.is_empty() {
        let names: Vec<&str> = report.suggestions.iter().map(|check| check.name.as_str()).collect();
        let text = format!("{} (commented out in the file)", names.join(", "));
        rows.push(Row::new(Mark::Plain, "could be", text));
    }
    rows.extend(report.setup.iter().map(|command| good("setup", command.clone())));
    rows.extend(report.copy.iter().map(|file| good("copy", file.clone())));
    rows.extend(report.protected.iter().map(|part| good("protected", protected(part))));
    rows.extend(
        report
            .missing
            .iter()
            .map(|missing| Row::new(Mark::Note, &missing.about, &missing.what).fix(&missing.fix)),
    );
    rows
}
