//! The pinned Claude Code binary, and the environment in which it talks to a scripted model and nothing else.
//!
//! The other agents are in [`agents`](crate::agents).

use std::path::{Path, PathBuf};

use crate::agents::AgentCli;
use crate::scratch::search_path;

/// The pinned Claude Code binary; see [`AgentCli::program`] for where it is looked for.
///
/// # Panics
/// When it is not installed.
#[must_use]
pub fn claude_program() -> PathBuf {
    AgentCli::Claude.program()
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
