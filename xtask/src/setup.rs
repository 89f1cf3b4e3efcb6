//! Installs what the tests need and is not in the repository: programs of the system (`packages`), the agent CLIs, jest and what
//! builds and tests the page (`npm`), a pytest, clients of the HTTP interface and readers of proofs (`python`).

mod npm;
mod packages;
mod python;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{Places, command};
use npm::Packages;
use python::Environment;

/// The agents by name, and what the tests start of each: a native binary, or a script for node. A `*` matches what
/// depends on the platform.
const CLIS: &[(&str, &str)] = &[
    ("Claude Code", "node_modules/@anthropic-ai/claude-code-*/claude"),
    ("older Claude Code", "node_modules/claude-code-older/node_modules/@anthropic-ai/claude-code-*/claude"),
    ("Codex", "node_modules/@openai/codex-*/vendor/*/bin/codex"),
    ("Gemini CLI", "node_modules/@google/gemini-cli/bundle/gemini.js"),
    ("opencode", "node_modules/opencode-*/bin/opencode"),
];

/// The test runner for projects in JavaScript.
const JEST: &[(&str, &str)] = &[("jest", "node_modules/jest/bin/jest.js")];

/// What checks, builds and tests the page.
const PAGE: &[(&str, &str)] = &[
    ("svelte-check", "node_modules/svelte-check/bin/svelte-check"),
    ("vite", "node_modules/vite/bin/vite.js"),
    ("vitest", "node_modules/vitest/vitest.mjs"),
    ("playwright", "node_modules/playwright-core/index.js"),
    ("axe", "node_modules/axe-core/axe.min.js"),
];

/// Makes sure that everything is installed; does nothing when it is.
pub(crate) fn install(places: &Places) -> Result<()> {
    packages::install(places)?;
    let pinned = places.root.join("agents");
    let agents = Packages { name: "agents", pinned: &pinned, folder: &places.agents, programs: CLIS };
    agents.install(places)?;
    let jest = Packages { name: "jest", pinned: &pinned.join("jest"), folder: &places.jest, programs: JEST };
    jest.install(places)?;
    let web = places.root.join("web");
    let page = Packages { name: "page", pinned: &web, folder: &places.page, programs: PAGE };
    page.install(places)?;
    show_packages(&web, &page)?;
    let pytest =
        Environment { name: "pytest", pinned: &pinned, folder: &places.python, program: "bin/pytest" };
    pytest.install(places)?;
    let clients = Environment {
        name: "clients",
        pinned: &pinned.join("clients"),
        folder: &places.clients,
        program: "bin/schemathesis",
    };
    clients.install(places)
}

/// Has the source of the page find its packages, which are not beside it, through a symlink. Packages that are found already stay: those of
/// another target folder, or those that somebody has installed beside the source.
fn show_packages(web: &Path, page: &Packages<'_>) -> Result<()> {
    let place = web.join("node_modules");
    let _exclusive = wait_for_turn(page.folder)?;
    let elsewhere = fs::read_link(&place).ok();
    let is_current = |packages: &Path| packages.parent().is_some_and(|folder| page.is_current(folder));
    if elsewhere.as_deref().map_or_else(|| place.is_dir(), is_current) {
        return Ok(());
    }
    if elsewhere.is_some() {
        fs::remove_file(&place).with_context(|| format!("cannot remove {}", place.display()))?;
    }
    symlink(page.folder.join("node_modules"), &place)
        .with_context(|| format!("cannot create {}", place.display()))
}

/// Installs what the manifest pins into a folder of its own, with a lock file that names no registry.
pub(crate) fn install_newest(folder: &Path, manifest: &serde_json::Value) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let _exclusive = wait_for_turn(folder)?;
    let text = format!("{manifest:#}\n");
    Packages { name: "agents", pinned: folder, folder, programs: CLIS }.install_newest(text.as_bytes())
}

pub(crate) fn require_npm(places: &Places) -> Result<()> {
    require("npm", "install Node 20+ and npm", &places.root)
}

/// Two set-ups of one checkout at the same time would undo each other's work.
fn wait_for_turn(folder: &Path) -> Result<File> {
    let path = folder.join("setup.lock");
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

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}
