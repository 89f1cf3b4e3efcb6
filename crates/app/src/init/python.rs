//! Python projects that are tested by pytest, and how pytest is started in them.

use toml::Table;

use super::plan::Planned;
use super::tree::{TEST_FOLDERS, Tree, above, is_python_test, join};

/// The folders in which people keep the virtual environment of a project.
pub(super) const ENVIRONMENTS: [&str; 3] = [".venv", "venv", "env"];

/// The user's own checkout, as a clean checkout of the same repository finds it.
const OWN_CHECKOUT: &str = "$(git config towline.checkout || git rev-parse --show-toplevel)";

/// What manages the packages of the project.
struct PythonManager {
    program: &'static str,
    /// The files that only this one leaves.
    traces: &'static [&'static str],
    /// Each directory has an environment of its own, which all but uv want to be filled first.
    install: Option<&'static str>,
}

const MANAGERS: [PythonManager; 4] = [
    PythonManager { program: "uv", traces: &["uv.lock"], install: None },
    PythonManager {
        program: "poetry",
        traces: &["poetry.lock"],
        install: Some("poetry install --no-interaction"),
    },
    PythonManager { program: "pdm", traces: &["pdm.lock"], install: Some("pdm install") },
    PythonManager {
        program: "pipenv",
        traces: &["Pipfile.lock", "Pipfile"],
        install: Some("pipenv install --dev"),
    },
];

/// What a folder with Python in it is checked by; nothing if it is not tested by pytest.
pub(super) fn look(tree: &Tree, folder: &str) -> Option<Planned> {
    // Pytest looks into the folders below its own.
    let is_covered =
        || locked_by(tree, folder).is_none() && above(folder).any(|above| uses_pytest(tree, above));
    if !uses_pytest(tree, folder) || is_covered() {
        return None;
    }
    let manager = manager(tree, folder);
    let (program, run) = match manager {
        Some(manager) => (manager.program, format!("{} run pytest", manager.program)),
        None => without_manager(tree, folder),
    };
    let mut planned = Planned::of(folder, program);
    planned.setup.extend(manager.and_then(|manager| manager.install).map(str::to_owned));
    planned.checks.push(("pytest".to_owned(), run));
    let prefix = manager.map_or_else(String::new, |manager| format!("{} run ", manager.program));
    planned.suggestions =
        linters(tree, folder).map(|(name, run)| (name.to_owned(), format!("{prefix}{run}"))).collect();
    Some(planned)
}

/// Whether a folder is tested by pytest.
pub(super) fn uses_pytest(tree: &Tree, folder: &str) -> bool {
    let speak_of_it = [
        "pyproject.toml",
        "setup.cfg",
        "tox.ini",
        "Pipfile",
        "requirements.txt",
        "requirements-dev.txt",
        "setup.py",
    ];
    let spoken_of = |name: &&str| tree.text(folder, name).is_some_and(|text| text.contains("pytest"));
    let has_tests = || {
        tree.below(folder).any(|path| {
            let (within, name) = path.rsplit_once('/').unwrap_or(("", path));
            let parts: Vec<&str> = within.split('/').collect();
            let is_here = TEST_FOLDERS.contains(&parts[0]);
            let is_in_source = parts[0] == "src" && parts.iter().any(|part| TEST_FOLDERS.contains(part));
            (within.is_empty() || is_here || is_in_source) && is_python_test(name)
        })
    };
    tree.has(folder, "pytest.ini")
        || tree.has(folder, "conftest.py")
        || speak_of_it.iter().any(spoken_of)
        || has_tests()
}

fn locked_by(tree: &Tree, folder: &str) -> Option<&'static PythonManager> {
    MANAGERS.iter().find(|manager| manager.traces.iter().any(|file| tree.has(folder, file)))
}

fn manager(tree: &Tree, folder: &str) -> Option<&'static PythonManager> {
    locked_by(tree, folder).or_else(|| {
        let tools = pyproject_tools(tree, folder);
        MANAGERS.iter().find(|manager| tools.contains_key(manager.program))
    })
}

fn pyproject_tools(tree: &Tree, folder: &str) -> Table {
    let table: Table =
        tree.text(folder, "pyproject.toml").and_then(|text| text.parse().ok()).unwrap_or_default();
    table.get("tool").and_then(|tools| tools.as_table()).cloned().unwrap_or_default()
}

/// Pytest by the interpreter, which also finds modules that lie beside the tests, and the program that must be there for
/// it. A package below `src` is named before all installed ones: an installation in development mode leads to the user's
/// checkout, and not to the one in question.
fn without_manager(tree: &Tree, folder: &str) -> (&'static str, String) {
    let has_source = tree.below(folder).any(|path| path.starts_with("src/") && path.ends_with(".py"));
    let source = if has_source { "PYTHONPATH=src " } else { "" };
    let pytest = |environment: &&str| tree.has_ignored(folder, &format!("{environment}/bin/pytest"));
    match ENVIRONMENTS.iter().find(|environment| pytest(environment)) {
        Some(environment) => {
            let python = join(folder, &format!("{environment}/bin/python"));
            ("git", format!("{source}\"{OWN_CHECKOUT}/{python}\" -m pytest"))
        }
        None => ("pytest", format!("{source}python3 -m pytest")),
    }
}

/// The linters that a project has settings for.
fn linters(tree: &Tree, folder: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let tools = pyproject_tools(tree, folder);
    [("ruff", "ruff check ."), ("mypy", "mypy .")]
        .into_iter()
        .filter(move |(name, _)| tools.contains_key(*name))
}
