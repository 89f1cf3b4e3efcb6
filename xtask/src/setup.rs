//! Installs what the tests need and is not in the repository: the agent CLIs, pinned by `agents/package-lock.json`.
//!
//! The install scripts of the packages are not run: the native binaries are in their platform packages.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{Places, command, say};

const MANIFEST: &str = "package.json";
const LOCK: &str = "package-lock.json";

/// Holds a copy of the lock file that the installed packages belong to.
const STAMP: &str = "installed-package-lock.json";

/// Makes sure that the pinned agent CLIs are installed; does nothing when they are.
pub(crate) fn install(places: &Places) -> Result<()> {
    let source = places.root.join("agents");
    let lock = read(&source.join(LOCK))?;
    fs::create_dir_all(&places.agents)
        .with_context(|| format!("cannot create {}", places.agents.display()))?;
    let _exclusive = wait_for_turn(&places.agents)?;

    if fs::read(places.agents.join(STAMP)).is_ok_and(|stamp| stamp == lock)
        && claude(&places.agents).is_some()
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
    let Some(claude) = claude(&places.agents) else {
        bail!("npm installed no Claude Code binary for this platform below {}", places.agents.display());
    };
    write(&places.agents.join(STAMP), &lock)?;
    say(&format!("agents: installed {}", claude.display()));
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

/// The native binary from the platform package that npm chose.
fn claude(agents: &Path) -> Option<PathBuf> {
    let packages = fs::read_dir(agents.join("node_modules/@anthropic-ai")).ok()?;
    let mut binaries = packages
        .filter_map(Result::ok)
        .filter(|package| package.file_name().to_string_lossy().starts_with("claude-code-"))
        .map(|package| package.path().join("claude"));
    binaries.find(|binary| binary.is_file())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}
