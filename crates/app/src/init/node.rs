//! Projects with a `package.json`: which manager, which scripts, and what a clean checkout needs first.

use serde_json::{Map, Value};

use super::plan::Planned;
use super::tree::{Tree, above};

/// What npm writes into the script `test` of a project that has none.
const PLACEHOLDER: &str = "no test specified";

/// Test runners that wait for changes instead of ending, unless `CI` is set.
const WATCHERS: [&str; 3] = ["react-scripts", "vitest", "watch"];

/// Scripts that make useful checks if they pass, most useful first.
const FURTHER: [&str; 5] = ["typecheck", "type-check", "check", "lint", "build"];

/// The program that installs packages and runs scripts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct NodeManager {
    program: &'static str,
    /// Installs exactly the versions of the lock file.
    install_locked: &'static str,
    /// Installs without leaving a lock file that would become part of the work.
    install_unlocked: &'static str,
}

impl NodeManager {
    const NPM: Self = Self::new("npm", "npm ci", "npm install --no-package-lock");
    const PNPM: Self = Self::new("pnpm", "pnpm install --frozen-lockfile", "pnpm install --no-lockfile");
    /// Yarn up to 1.
    const YARN: Self = Self::new("yarn", "yarn install --frozen-lockfile", "yarn install --no-lockfile");
    /// Yarn from 2.
    const BERRY: Self = Self::new("yarn", "yarn install --immutable", "yarn install");
    const BUN: Self = Self::new("bun", "bun install --frozen-lockfile", "bun install --no-save");

    const fn new(
        program: &'static str,
        install_locked: &'static str,
        install_unlocked: &'static str,
    ) -> Self {
        Self { program, install_locked, install_unlocked }
    }

    fn run(self, script: &str) -> String {
        match (self.program, script) {
            // `bun test` is bun's own runner.
            (program, "test") if program != "bun" => format!("{program} test"),
            (program, script) => format!("{program} run {script}"),
        }
    }
}

struct Package {
    json: Map<String, Value>,
    /// The manager whose lock file lies beside it.
    locked_by: Option<NodeManager>,
    /// The manager that it asks for.
    wanted: Option<NodeManager>,
    has_workspaces: bool,
}

impl Package {
    fn read(tree: &Tree, folder: &str) -> Option<Self> {
        let json: Map<String, Value> = serde_json::from_str(tree.text(folder, "package.json")?).ok()?;
        let wanted = json.get("packageManager").and_then(Value::as_str).and_then(wanted);
        let is_berry = wanted == Some(NodeManager::BERRY) || tree.has(folder, ".yarnrc.yml");
        let yarn = if is_berry { NodeManager::BERRY } else { NodeManager::YARN };
        let locks = [
            ("package-lock.json", NodeManager::NPM),
            ("npm-shrinkwrap.json", NodeManager::NPM),
            ("pnpm-lock.yaml", NodeManager::PNPM),
            ("yarn.lock", yarn),
            ("bun.lock", NodeManager::BUN),
            ("bun.lockb", NodeManager::BUN),
        ];
        let locked_by =
            locks.into_iter().find(|(lock, _)| tree.has(folder, lock)).map(|(_, manager)| manager);
        let has_workspaces = json.contains_key("workspaces") || tree.has(folder, "pnpm-workspace.yaml");
        Some(Self { json, locked_by, wanted, has_workspaces })
    }

    fn manager(&self) -> NodeManager {
        self.locked_by.or(self.wanted).unwrap_or(NodeManager::NPM)
    }

    fn script(&self, name: &str) -> Option<&str> {
        self.json.get("scripts")?.get(name)?.as_str()
    }

    fn has_dependencies(&self) -> bool {
        let kinds = ["dependencies", "devDependencies", "optionalDependencies"];
        let some =
            |kind: &str| self.json.get(kind).and_then(Value::as_object).is_some_and(|all| !all.is_empty());
        kinds.into_iter().any(some)
    }

    /// The command that tests it, if it has a real one.
    fn test(&self, manager: NodeManager) -> Option<String> {
        let script = self.script("test").filter(|script| !script.contains(PLACEHOLDER))?;
        let run = manager.run("test");
        let watches = WATCHERS.iter().any(|watcher| script.contains(watcher));
        Some(if watches { format!("CI=true {run}") } else { run })
    }

    /// What else it can check.
    fn further(&self, manager: NodeManager) -> Vec<(String, String)> {
        let there = FURTHER.into_iter().filter(|name| self.script(name).is_some());
        there.map(|name| (name.to_owned(), manager.run(name))).collect()
    }
}

fn wanted(name: &str) -> Option<NodeManager> {
    let (program, version) = name.split_once('@').unwrap_or((name, ""));
    match program {
        "npm" => Some(NodeManager::NPM),
        "pnpm" => Some(NodeManager::PNPM),
        "yarn" if version.starts_with("1.") => Some(NodeManager::YARN),
        "yarn" => Some(NodeManager::BERRY),
        "bun" => Some(NodeManager::BUN),
        _ => None,
    }
}

/// What a folder with a `package.json` is checked by.
pub(super) fn look(tree: &Tree, folder: &str) -> Option<Planned> {
    let package = Package::read(tree, folder)?;
    let workspace = workspace_above(tree, folder, &package);
    // What belongs to a workspace is installed with it, by its manager.
    let manager = workspace.as_ref().map_or_else(|| package.manager(), Package::manager);
    if workspace.as_ref().is_some_and(|above| above.test(manager).is_some()) {
        return None;
    }
    let mut planned = Planned::of(folder, manager.program);
    if workspace.is_none() && (package.has_dependencies() || package.has_workspaces) {
        let install =
            if package.locked_by.is_some() { manager.install_locked } else { manager.install_unlocked };
        planned.setup.push(install.to_owned());
    }
    let mut further = package.further(manager);
    match package.test(manager) {
        Some(run) => planned.checks.push((format!("{} test", manager.program), run)),
        // Without tests, the next best thing that can fail. In a workspace the tests of its members are better.
        None if workspace.is_none() && !package.has_workspaces && !further.is_empty() => {
            planned.checks.push(further.remove(0));
        }
        None => {}
    }
    planned.suggestions = further;
    Some(planned)
}

/// The package above this folder whose workspace it is part of. A package with a lock file of its own is not.
fn workspace_above(tree: &Tree, folder: &str, package: &Package) -> Option<Package> {
    let read = |above| Package::read(tree, above).filter(|above| above.has_workspaces);
    above(folder).filter(|_| package.locked_by.is_none()).find_map(read)
}
