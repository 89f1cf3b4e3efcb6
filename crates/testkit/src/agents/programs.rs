//! Where the agent CLIs are installed.

use std::fs;
use std::path::{Path, PathBuf};

use super::AgentCli;
use crate::scratch::target_directory;

/// Set by `cargo xtask test`: where the agent CLIs are installed.
const AGENTS_DIR: &str = "TOWLINE_TEST_AGENTS_DIR";

impl AgentCli {
    /// The program to start: a native binary, or for Gemini CLI a script that finds node on the `PATH`.
    ///
    /// It is looked for in the folder that `TOWLINE_TEST_AGENTS_DIR` names, or else in `agents/` of the running
    /// test's target folder, of `CARGO_TARGET_DIR`, and of the workspace's `target/`.
    pub fn program(self) -> PathBuf {
        let folders = agents_folders();
        folders.iter().find_map(|folder| find(folder, self.installed_path())).unwrap_or_else(|| {
            panic!(
                "the pinned `{}` is not installed (looked in {folders:?}): run `cargo xtask setup`",
                self.name()
            )
        })
    }

    /// Below the folder of the agents; a `*` matches what depends on the platform.
    fn installed_path(self) -> &'static str {
        match self {
            Self::Claude => "node_modules/@anthropic-ai/claude-code-*/claude",
            Self::OlderClaude => {
                "node_modules/claude-code-older/node_modules/@anthropic-ai/claude-code-*/claude"
            }
            Self::Codex => "node_modules/@openai/codex-*/vendor/*/bin/codex",
            Self::Gemini => "node_modules/@google/gemini-cli/bundle/gemini.js",
            Self::Opencode => "node_modules/opencode-*/bin/opencode",
        }
    }
}

/// The folder with `python3` and `pytest` in it, for the beginning of a `PATH`. It is beside the agent CLIs.
pub fn pytest_folder() -> PathBuf {
    folder_with("pytest", "python/bin")
}

/// The folder with `python3` and the clients of the HTTP interface in it: schemathesis, the official client of MCP and the parser of
/// Prometheus. Its packages also read proofs. It is beside the agent CLIs.
pub fn clients_folder() -> PathBuf {
    folder_with("schemathesis", "clients/bin")
}

/// The folder with `jest` in it, for the beginning of a `PATH`. Its packages are beside the agent CLIs.
pub fn jest_folder() -> PathBuf {
    folder_with("jest", "jest/node_modules/.bin")
}

/// The folder with `vitest` in it, which runs the tests of the page. Its packages are beside the agent CLIs.
pub fn page_folder() -> PathBuf {
    folder_with("vitest", "page/node_modules/.bin")
}

/// The folder beside those of the agent CLIs that has this program.
fn folder_with(program: &str, folder: &str) -> PathBuf {
    let mut folders = agents_folders().into_iter().map(|agents| agents.with_file_name(folder));
    let found = folders.find(|folder| folder.join(program).is_file());
    found.unwrap_or_else(|| panic!("the pinned {program} is not installed: run `cargo xtask setup`"))
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

/// The file below `folder` that `path` leads to. Npm installs the packages of this platform only, so the first that
/// fits a `*`, which ends a folder's name, is the right one.
fn find(folder: &Path, path: &str) -> Option<PathBuf> {
    let Some((first, rest)) = path.split_once('/') else {
        return Some(folder.join(path)).filter(|file| file.is_file());
    };
    let Some(start) = first.strip_suffix('*') else {
        return find(&folder.join(first), rest);
    };
    let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .find_map(|entry| find(&entry.path(), rest))
}
