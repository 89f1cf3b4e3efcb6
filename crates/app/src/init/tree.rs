//! A project's files as `init` sees them: names, and the text of those that define how the project is built and tested.
//!
//! A plain value, so that everything that is concluded from it can be tested without a disk.

use std::collections::{BTreeMap, BTreeSet};

/// Files whose text is read. Of all others the name is enough.
pub(super) const MANIFESTS: [&str; 24] = [
    ".justfile",
    "Cargo.toml",
    "GNUmakefile",
    "Justfile",
    "Makefile",
    "Pipfile",
    "build.gradle",
    "build.gradle.kts",
    "conftest.py",
    "go.mod",
    "justfile",
    "makefile",
    "package.json",
    "pnpm-workspace.yaml",
    "pom.xml",
    "pyproject.toml",
    "pytest.ini",
    "requirements-dev.txt",
    "requirements.txt",
    "settings.gradle",
    "settings.gradle.kts",
    "setup.cfg",
    "setup.py",
    "tox.ini",
];

/// Folders that hold tests and nothing else.
pub(super) const TEST_FOLDERS: [&str; 6] = ["tests", "test", "__tests__", "spec", "e2e", "integration_tests"];

/// Folders whose manifests do not define how the project is tested.
const ASIDE: [&str; 12] = [
    "bench",
    "benches",
    "build",
    "dist",
    "example",
    "examples",
    "fixtures",
    "fuzz",
    "node_modules",
    "target",
    "third_party",
    "vendor",
];

/// How deep below the root a folder may be that is looked at by itself, as in `packages/web`.
pub(super) const DEEPEST: usize = 2;

/// The files of a project that git does not ignore, by their path from its root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tree {
    files: BTreeMap<String, String>,
    /// Files that git ignores and that a checkout may need all the same.
    ignored: BTreeSet<String>,
}

impl Tree {
    /// Adds a file with its text, which is empty where only its name counts.
    pub(super) fn add(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.files.insert(path.into(), text.into());
    }

    /// Adds a file that is there and that git ignores.
    pub(super) fn add_ignored(&mut self, path: impl Into<String>) {
        self.ignored.insert(path.into());
    }

    /// The text of a file in a folder.
    pub(super) fn text(&self, folder: &str, name: &str) -> Option<&str> {
        self.files.get(&join(folder, name)).map(String::as_str)
    }

    /// Whether there is such a file in a folder.
    pub(super) fn has(&self, folder: &str, name: &str) -> bool {
        self.files.contains_key(&join(folder, name))
    }

    /// Whether there is a file in a folder that git ignores.
    pub(super) fn has_ignored(&self, folder: &str, name: &str) -> bool {
        self.ignored.contains(&join(folder, name))
    }

    /// The files below a folder, by their path from there.
    pub(super) fn below<'a>(&'a self, folder: &str) -> impl Iterator<Item = &'a str> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        self.files.keys().filter_map(move |path| path.strip_prefix(&prefix))
    }

    /// The root, and then the folders that have a manifest or tests of pytest, by their path.
    pub(super) fn folders(&self) -> Vec<String> {
        let of_manifest = |path: &String| {
            let (folder, name) = path.rsplit_once('/')?;
            (MANIFESTS.contains(&name) && counts(folder)).then(|| folder.to_owned())
        };
        let of_tests =
            |path: &String| python_project(path).filter(|folder| counts(folder)).map(str::to_owned);
        let below = self.files.keys().flat_map(|path| of_manifest(path).into_iter().chain(of_tests(path)));
        let below: BTreeSet<String> = below.filter(|folder| !folder.is_empty()).collect();
        std::iter::once(String::new()).chain(below).collect()
    }
}

/// Whether pytest would take a file of this name for tests.
pub(super) fn is_python_test(name: &str) -> bool {
    name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}

/// The folder whose code a test of pytest is about: the one that holds the folder of tests, or the `src` around both.
fn python_project(path: &str) -> Option<&str> {
    let (within, name) = path.rsplit_once('/')?;
    let is_tests = |name: &str| TEST_FOLDERS.contains(&name) || name == "src";
    let mut at = 0;
    for part in within.split('/') {
        if is_tests(part)
            && is_python_test(name)
            && within.split('/').any(|part| TEST_FOLDERS.contains(&part))
        {
            return Some(within[..at].trim_end_matches('/'));
        }
        at += part.len() + 1;
    }
    None
}

/// Whether a folder is looked at by itself.
fn counts(folder: &str) -> bool {
    let names = || folder.split('/').filter(|name| !name.is_empty());
    let is_aside =
        |name: &str| name.starts_with('.') || ASIDE.contains(&name) || TEST_FOLDERS.contains(&name);
    names().count() <= DEEPEST && !names().any(is_aside)
}

/// The folders above a folder, the nearest first and the root last.
pub(super) fn above(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| up(folder)).skip(1)
}

fn up(folder: &str) -> Option<&str> {
    if folder.is_empty() { None } else { Some(folder.rsplit_once('/').map_or("", |(above, _)| above)) }
}

/// A path of two parts, of which the first may be the root.
pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

#[cfg(test)]
impl Tree {
    /// A tree of these files.
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        files.iter().for_each(|(path, text)| tree.add(*path, *text));
        tree
    }
}
