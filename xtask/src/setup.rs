//! Installs what the tests need and is not in the repository: the agent CLIs, pinned by `agents/package-lock.json`, and
//! (`python`) a pytest.
//!
//! The install scripts of the packages are not run: the native binaries are in their platform packages. Npm installs the
//! packages of this platform only, so the binary that is there is the right one.

mod python;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{Places, command, say};

const MANIFEST: &str = "package.json";
const LOCK: &str = "package-lock.json";

/// Holds a copy of the lock file that the installed packages belong to.
const STAMP: &str = "installed-package-lock.json";

/// The agents by name, and what the tests start of each: a native binary, or a script for node. A `*` stands for what
/// depends on the platform.
const CLIS: [(&str, &str); 4] = [
    ("Claude Code", "node_modules/@anthropic-ai/claude-code-*/claude"),
    ("Codex", "node_modules/@openai/codex-*/vendor/*/bin/codex"),
    ("Gemini CLI", "node_modules/@google/gemini-cli/bundle/gemini.js"),
    ("opencode", "node_modules/opencode-*/bin/opencode"),
];

/// Makes sure that everything is installed; does nothing when it is.
pub(crate) fn install(places: &Places) -> Result<()> {
    install_agents(places)?;
    python::install(places)
}

fn install_agents(places: &Places) -> Result<()> {
    let source = places.root.join("agents");
    let lock = read(&source.join(LOCK))?;
    fs::create_dir_all(&places.agents)
        .with_context(|| format!("cannot create {}", places.agents.display()))?;
    let _exclusive = wait_for_turn(&places.agents)?;

    if fs::read(places.agents.join(STAMP)).is_ok_and(|stamp| stamp == lock)
        && missing(&places.agents).is_empty()
    {
        say(&format!("agents: up to date in {}", places.agents.display()));
        return Ok(());
    }
    require("git", "install git (Debian: apt-get install git)", &places.root)?;
    require("npm", "install Node 20+ and npm", &places.root)?;

    write(&places.agents.join(MANIFEST), &read(&source.join(MANIFEST))?)?;
    write(&places.agents.join(LOCK), &lock)?;
    say(&format!("agents: installing into {}", places.agents.display()));
    let mut npm = command::program("npm", &places.agents);
    npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
    let status = command::status(&mut npm)?;
    if !status.success() {
        bail!(
            "`{}` in {} failed ({status}); what it printed is above",
            command::shown(&npm),
            places.agents.display()
        );
    }
    let missing = missing(&places.agents);
    if !missing.is_empty() {
        bail!(
            "npm installed no {} for this platform below {}; the tests run where all pinned agents do",
            missing.join(", no "),
            places.agents.display()
        );
    }
    write(&places.agents.join(STAMP), &lock)?;
    say(&format!("agents: installed {}", CLIS.map(|(name, _)| name).join(", ")));
    Ok(())
}

/// Two set-ups of one checkout at the same time would undo each other's work.
fn wait_for_turn(agents: &Path) -> Result<File> {
    let path = agents.join("setup.lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

fn require(program: &str, fix: &str, directory: &Path) -> Result<()> {
    if !command::is_there(&mut command::program(program, directory)) {
        bail!("`{program}` was not found, and the tests need it: {fix}");
    }
    Ok(())
}

/// The agents that are not installed.
fn missing(agents: &Path) -> Vec<&'static str> {
    CLIS.into_iter().filter(|(_, program)| find(agents, program).is_none()).map(|(name, _)| name).collect()
}

/// The file below `folder` that a path leads to, in which a folder's name may have one `*`.
fn find(folder: &Path, path: &str) -> Option<PathBuf> {
    let Some((first, rest)) = path.split_once('/') else {
        return Some(folder.join(path)).filter(|file| file.is_file());
    };
    let Some((start, end)) = first.split_once('*') else {
        return find(&folder.join(first), rest);
    };
    let fits = |name: &str| name.len() >= first.len() - 1 && name.starts_with(start) && name.ends_with(end);
    fs::read_dir(folder)
        .ok()?
        .filter_map(Result::ok)
        .filter(|entry| fits(&entry.file_name().to_string_lossy()))
        .find_map(|entry| find(&entry.path(), rest))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}
