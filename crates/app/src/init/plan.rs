//! The content of a project's `towline.toml`: a pure function of what was found.
//!
//! Neighbours: `tree` is what was found, `node`, `python` and `others` know the tools, `file` writes the plan down.

use std::collections::BTreeSet;

use super::presets::{can_be_in_pattern, protections};
use super::tree::{TEST_FOLDERS, Tree, join};
use super::{node, others, python};

/// How many checks, and how many suggestions, a file may have before it is too long to help.
const MOST: usize = 12;

/// Brings the submodules into a checkout, which git makes without them.
const SUBMODULES: &str = "git submodule update --init --recursive";

/// What one tool contributes for one folder. Commands run in that folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Planned {
    folder: String,
    /// The program that the commands need.
    program: &'static str,
    /// What must hold, by name.
    pub(super) checks: Vec<(String, String)>,
    /// What could be checked, too.
    pub(super) suggestions: Vec<(String, String)>,
    /// What a clean checkout needs first.
    pub(super) setup: Vec<String>,
}

impl Planned {
    pub(super) fn of(folder: &str, program: &'static str) -> Self {
        let folder = folder.to_owned();
        Self { folder, program, checks: Vec::new(), suggestions: Vec::new(), setup: Vec::new() }
    }
}

/// A check by a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    /// The check's name.
    pub(super) name: String,
    /// The command, run at the top of the checkout.
    pub(super) run: String,
}

/// Paths and sections that are protected for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    /// What they belong to.
    pub what: &'static str,
    pub paths: Vec<String>,
}

/// The settings that the file is to have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// What must hold.
    pub(super) checks: Vec<Command>,
    /// What could be checked, too, where it passes today.
    pub(super) suggestions: Vec<Command>,
    /// What a clean checkout needs first.
    pub(super) setup: Vec<String>,
    /// Ignored files that it needs.
    pub(super) copy: Vec<String>,
    /// Directories with packages and build output that one verdict leaves for the next.
    pub(super) warm: Vec<String>,
    /// What stays as it is.
    pub(super) protect: Vec<Protection>,
    /// The programs that the commands need.
    pub(super) programs: BTreeSet<&'static str>,
}

/// Makes the plan.
pub(super) fn plan(tree: &Tree) -> Plan {
    let folders = tree.folders();
    let mut plan = Plan::default();
    // A makefile at the root that has a test target, beside no other tool, tests the whole project.
    let mut whole = false;
    for folder in &folders {
        let tools = [others::cargo, node::look, python::look, others::go, others::maven, others::gradle];
        let mut found: Vec<Planned> = tools.iter().filter_map(|look| look(tree, folder)).collect();
        if let Some(make) = others::runner(tree, folder) {
            if found.iter().all(|planned| planned.checks.is_empty()) {
                whole |= folder.is_empty();
                found.push(make);
            } else {
                found.push(Planned { suggestions: make.checks, checks: Vec::new(), ..make });
            }
        }
        for planned in found {
            plan.add(planned, whole && !folder.is_empty());
        }
    }
    plan.settle_names();
    if tree.has("", ".gitmodules") {
        // Before whatever else makes a checkout ready, because that may need them.
        plan.setup.insert(0, SUBMODULES.to_owned());
    }
    plan.copy = folders
        .iter()
        .filter(|folder| tree.has_ignored(folder, ".env"))
        .map(|folder| join(folder, ".env"))
        .collect();
    plan.warm = warm(tree, &folders);
    plan.protect = protected(tree, &folders);
    plan
}

/// Where the tools of each folder put packages and build output.
fn warm(tree: &Tree, folders: &[String]) -> Vec<String> {
    let made_by = |folder: &String| {
        let has = |names: &[&str]| names.iter().any(|name| tree.has(folder, name));
        // The members of a workspace build into the folder of the workspace.
        let is_member = || folders.iter().any(|above| is_workspace_above(tree, above, folder));
        let made = [
            (has(&["Cargo.toml"]) && !is_member(), "target"),
            (has(&["package.json"]), "node_modules"),
            (has(&["pyproject.toml", "requirements.txt"]), ".venv"),
            (has(&["pom.xml"]), "target"),
            (has(&["build.gradle", "build.gradle.kts"]), "build"),
        ];
        let made = made.into_iter().filter(|(is_made, _)| *is_made);
        made.map(|(_, name)| join(folder, name)).collect::<Vec<_>>()
    };
    folders.iter().flat_map(made_by).take(MOST).collect()
}

/// Whether a folder lies below one with a manifest of Cargo.
fn is_workspace_above(tree: &Tree, above: &str, folder: &str) -> bool {
    let is_below = above.is_empty() || folder.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
    above != folder && is_below && tree.has(above, "Cargo.toml")
}

impl Plan {
    /// Adds what a tool contributes; as suggestions if the whole project already has a check.
    fn add(&mut self, planned: Planned, has_one: bool) {
        let Planned { folder, program, checks, suggestions, setup } = planned;
        let command = |(name, run): (String, String)| Command {
            name: if folder.is_empty() { name } else { format!("{folder}: {name}") },
            run: in_folder(&folder, &run),
        };
        if !checks.is_empty() && !has_one || !setup.is_empty() {
            self.programs.insert(program);
        }
        self.setup.extend(setup.iter().map(|run| in_folder(&folder, run)));
        let checks = checks.into_iter().map(command);
        if has_one {
            self.suggestions.extend(checks)
        } else {
            self.checks.extend(checks)
        }
        self.suggestions.extend(suggestions.into_iter().map(command));
    }

    /// A file is read by people: a single check is simply the tests, and nothing goes on for ever.
    fn settle_names(&mut self) {
        let more = self.checks.split_off(self.checks.len().min(MOST));
        self.suggestions.splice(0..0, more);
        self.suggestions.truncate(MOST);
        if let [only] = self.checks.as_mut_slice()
            && only.name.ends_with("test")
        {
            only.name = "tests".to_owned();
        }
    }
}

/// A command in a folder of the checkout.
fn in_folder(folder: &str, run: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./@+".contains(c);
    match folder {
        "" => run.to_owned(),
        folder if folder.chars().all(is_plain) => format!("cd {folder} && {run}"),
        folder => format!("cd '{}' && {run}", folder.replace('\'', r"'\''")),
    }
}

/// Folders with nothing but tests in them, and what decides whether checks pass.
fn protected(tree: &Tree, folders: &[String]) -> Vec<Protection> {
    let has_files = |folder: &String| tree.below(folder).next().is_some();
    let tests = folders.iter().flat_map(|folder| TEST_FOLDERS.map(|name| join(folder, name)));
    let tests = tests.filter(|folder| has_files(folder) && can_be_in_pattern(folder));
    let tests = Protection { what: "tests", paths: tests.map(|folder| format!("{folder}/**")).collect() };
    let tests = (!tests.paths.is_empty()).then_some(tests);
    tests.into_iter().chain(protections(tree, folders)).collect()
}
