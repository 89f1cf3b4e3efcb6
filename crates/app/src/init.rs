//! A first `towline.toml`: looks at the project and at the agents, and proposes a file that works as it is.
//!
//! `look` reads the disk, `plan` decides, `file` writes it down in words; here they are put together. No agent is started, and
//! nothing but the one file is written.

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

use towline_api::{InitReport, InstalledAgent, ProposedCheck, SignedIn};
use towline_config::{Inspection, LayerName};
use towline_workspace::{Repository, WorkspaceError};

use self::file::Agents;
use self::plan::Plan;
pub use self::plan::Protection;
pub(crate) use self::presets::is_preset;
use crate::context::{Context, LayerFile};
use crate::error::{Action, Error};
use crate::find;
use crate::inspect::{Mark, Row, sign_in};

const FILE: &str = "towline.toml";

/// A file that is proposed for a project.
pub struct Proposal {
    /// As programs read it; without what is missing and what to do next.
    pub report: InitReport,
    /// What is missing, each with what to do about it.
    pub missing: Vec<Row>,
    /// The protected paths by what they belong to.
    pub protected: Vec<Protection>,
    /// Whether the project has a commit.
    pub has_commits: bool,
}

/// What to do with the file that is proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing {
    /// Only propose it.
    No,
    /// Write it unless there is one.
    New,
    /// Replace the one that is there.
    Replace,
}

/// Proposes a file for the project that the context's directory is in, and writes it when asked to.
pub fn init(context: &Context, writing: Writing) -> Result<Proposal, Error> {
    let place = Place::find(context)?;
    let path = place.root.join(FILE);
    if writing == Writing::New && path.symlink_metadata().is_ok() {
        return Err(already_there(&path));
    }
    let plan = plan::plan(&look::look(&place.root));
    let (agents, installed) = agents(context);
    let text = file::text(&plan, &agents);
    if writing != Writing::No {
        write(&path, &text, writing == Writing::Replace).map_err(|error| not_written(&path, &error))?;
    }
    let missing = missing(context, &place, &plan, &installed);
    let report = report(&place, &plan, installed, text, writing != Writing::No);
    Ok(Proposal { report, missing, protected: plan.protect, has_commits: place.has_commits })
}

fn report(
    place: &Place,
    plan: &Plan,
    agents: Vec<InstalledAgent>,
    text: String,
    written: bool,
) -> InitReport {
    let commands = |checks: &[plan::Command]| {
        let check =
            |check: &plan::Command| ProposedCheck { name: check.name.clone(), run: check.run.clone() };
        checks.iter().map(check).collect()
    };
    InitReport {
        path: place.root.join(FILE).display().to_string(),
        written,
        repository: place.repository.as_ref().map(|repository| repository.root().display().to_string()),
        missing: Vec::new(),
        next: Vec::new(),
        agents,
        checks: commands(&plan.checks),
        suggestions: commands(&plan.suggestions),
        setup: plan.setup.clone(),
        copy: plan.copy.clone(),
        warm: plan.warm.clone(),
        protect: plan.protect.iter().flat_map(|part| part.paths.clone()).collect(),
        text,
    }
}

/// Where the file goes: commands and paths in it are relative to the top of the repository.
struct Place {
    root: PathBuf,
    repository: Option<Repository>,
    has_commits: bool,
}

impl Place {
    fn find(context: &Context) -> Result<Self, Error> {
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

/// The agents that the file names, and those that are installed. The file names only agents that every Towline knows:
/// other users of the repository do not have the agents of this user.
fn agents(context: &Context) -> (Agents, Vec<InstalledAgent>) {
    let files = context.layer_files(&context.directory);
    let of_user: Vec<LayerFile> =
        files.into_iter().filter(|file| matches!(file.name, LayerName::User(_))).collect();
    let inspection = context.inspection(&context.directory, &of_user);
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
    let (ready, others): (Vec<String>, Vec<String>) =
        found.iter().map(|agent| agent.name.clone()).partition(|name| is_ready(context, &inspection, name));
    // What is written here needs no trust of its author, as long as there is such an agent.
    let may_be_named = |names: Vec<String>| {
        let named: Vec<String> =
            names.iter().filter(|name| inspection.own_agents.may_be_named(name)).cloned().collect();
        if named.is_empty() { names } else { named }
    };
    // Where none is ready, any of them is as good.
    let names = may_be_named(if ready.is_empty() { others } else { ready });
    (if names.is_empty() { Agents::None } else { Agents::Installed(names) }, found)
}

/// Whether the agent is signed in, or need not be.
fn is_ready(context: &Context, inspection: &Inspection, name: &str) -> bool {
    let Some(settings) = inspection.config.agents.get(name) else { return false };
    let environment = towline_agent::agent(settings.kind).environment(settings, &context.environment);
    sign_in::look(settings, &environment) != SignedIn::NotSeen
}

fn installed(context: &Context, inspection: &Inspection, names: &[String]) -> Vec<InstalledAgent> {
    let look = |name: &String| {
        let path = find::agent_program(context, inspection.config.agents.get(name)?).ok()?;
        Some(InstalledAgent { name: name.clone(), path: path.display().to_string() })
    };
    names.iter().filter_map(look).collect()
}

fn missing(context: &Context, place: &Place, plan: &Plan, agents: &[InstalledAgent]) -> Vec<Row> {
    let missing = |about: &str, what: &str| Row::new(Mark::Note, about, what);
    let mut all = Vec::new();
    if place.repository.is_none() {
        let what = "this folder is in no git repository, so there is nothing to undo a change with";
        let fix = [("make it one as below, or work in the folder itself", Action::RunInPlace)];
        all.push(missing("git", what).fix(fix));
    }
    if agents.is_empty() {
        all.push(missing("agents", "none is installed").fix(how_to_get_one()));
    }
    if plan.checks.is_empty() {
        let what = "nothing to run was found, and without a check a goal can end as unproven at best";
        let fix = [("write one into the file, or give it to the run", Action::GiveCheck)];
        all.push(missing("checks", what).fix(fix));
    }
    let search_path = context.variable("PATH");
    let absent =
        plan.programs.iter().filter(|program| find::program(program, &place.root, search_path).is_none());
    all.extend(absent.map(|program| {
        let what = format!("`{program}` was not found on PATH, but a check or the setup runs it");
        missing(program, &what).fix("install it, or change the file")
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

fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    let create =
        |path: &Path| OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes());
    // A file that another process wrote meanwhile is not overwritten either.
    if !force {
        return create(path);
    }
    // A rename replaces the whole file or nothing, and a symlink instead of its target.
    let draft = path.with_extension(format!("toml.{}.new", std::process::id()));
    create(&draft).and_then(|()| fs::rename(&draft, path)).inspect_err(|_| {
        // It may not even have been made.
        let _ = fs::remove_file(&draft);
    })
}

fn already_there(path: &Path) -> Error {
    Error::usage(format!("{} is already there, and was left as it is", path.display()))
        .hint([("see what would be written", Action::PrintInit), ("replace the file", Action::ForceInit)])
}

fn not_written(path: &Path, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return already_there(path);
    }
    Error::internal(format!("cannot write {}: {error}", path.display()))
        .hint([("see what belongs there", Action::PrintInit)])
}
