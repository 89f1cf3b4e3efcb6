//! The pinned Claude Code binary, and the environment in which it talks to a scripted model and nothing else.
//!
//! `cargo xtask setup` installs it; how it is driven is the business of the agent crate.

use std::fs;
use std::path::{Path, PathBuf};

use crate::scratch::{search_path, target_directory};

/// Set by `cargo xtask test`: where the agent CLIs are installed.
const AGENTS_DIR: &str = "TOWLINE_TEST_AGENTS_DIR";

/// The pinned Claude Code binary.
///
/// It is looked for in the folder that `TOWLINE_TEST_AGENTS_DIR` names, or else in `agents/` of the running test's
/// target folder, of `CARGO_TARGET_DIR`, and of the workspace's `target/`.
///
/// # Panics
/// When it is not installed.
#[must_use]
pub fn claude_program() -> PathBuf {
    let folders = agents_folders();
    folders.iter().find_map(|folder| native_binary(folder)).unwrap_or_else(|| {
        panic!("the pinned Claude Code is not installed (looked in {folders:?}): run `cargo xtask setup`")
    })
}

/// The whole environment for a Claude Code that talks to the scripted model at `server_url`, with `home` as its
/// home. Start it with a cleared environment and these variables.
#[must_use]
pub fn claude_env(home: &Path, server_url: &str) -> Vec<(String, String)> {
    [
        ("ANTHROPIC_BASE_URL", server_url),
        ("ANTHROPIC_API_KEY", "dummy"),
        ("HOME", &home.to_string_lossy()),
        ("PATH", &search_path()),
        // Lets bypassPermissions work for root, as tests in containers often are.
        ("IS_SANDBOX", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

fn agents_folders() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os(AGENTS_DIR) {
        return vec![folder.into()];
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let chosen = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let targets = target_directory().into_iter().chain(chosen).chain([workspace]);
    targets.map(|target| target.join("agents")).collect()
}

/// Npm installs the package of this platform only, so the one that is there is the right one.
fn native_binary(agents: &Path) -> Option<PathBuf> {
    let packages = fs::read_dir(agents.join("node_modules/@anthropic-ai")).ok()?;
    let mut binaries = packages
        .filter_map(Result::ok)
        .filter(|package| package.file_name().to_string_lossy().starts_with("claude-code-"))
        .map(|package| package.path().join("claude"));
    binaries.find(|binary| binary.is_file())
}
