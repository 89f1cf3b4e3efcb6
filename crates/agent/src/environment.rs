//! The variables that an agent gets: an allow-list, never the whole environment.
//!
//! Neighbours: each agent's launch plan. What one kind of agent needs is in its [`Extra`]; what every program needs
//! to run at all is here. Nothing here reads the environment itself.

use std::collections::BTreeMap;

use crate::settings::AgentSettings;

/// Environment variables by name.
pub type Environment = BTreeMap<String, String>;

/// What every program may need: paths, user, language, terminal, and network settings.
const BASE: [&str; 18] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TERM",
    "TMPDIR",
    "TZ",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

const BASE_PREFIXES: [&str; 3] = ["LC_", "XDG_", "SSL_CERT_"];

/// Prefixes of the variables for agents' credentials and settings.
const OF_AGENTS: [&str; 7] =
    ["ANTHROPIC_", "CLAUDE_", "CODEX_", "GEMINI_", "GOOGLE_", "OPENAI_", "OPENCODE_"];

/// Whether a variable is meant for agents. No other program needs the user's account with a model.
pub fn is_agents_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    OF_AGENTS.iter().any(|prefix| name.starts_with(prefix))
}

/// What one kind of agent gets beyond what every program needs.
#[derive(Debug, Default)]
pub(crate) struct Extra {
    pub(crate) names: Vec<&'static str>,
    pub(crate) prefixes: Vec<&'static str>,
    /// Exceptions from `prefixes`: whole names.
    pub(crate) except: Vec<&'static str>,
    /// Exceptions from `prefixes`: prefixes of names.
    pub(crate) except_prefixes: Vec<&'static str>,
}

impl Extra {
    fn admits(&self, name: &str) -> bool {
        self.names.contains(&name)
            || (self.prefixes.iter().any(|prefix| name.starts_with(prefix))
                && !self.except.contains(&name)
                && !self.except_prefixes.iter().any(|prefix| name.starts_with(prefix)))
    }
}

/// The environment of an agent, without Towline's variables of the attempt. Variables from the settings override
/// inherited ones.
pub(crate) fn environment(settings: &AgentSettings, inherited: &Environment, extra: &Extra) -> Environment {
    let is_basic =
        |name: &str| BASE.contains(&name) || BASE_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let is_named = |name: &String| settings.pass_env.contains(name);
    let passed_on =
        inherited.iter().filter(|(name, _)| is_basic(name) || extra.admits(name) || is_named(name));
    passed_on.chain(&settings.env).map(|(name, value)| (name.clone(), value.clone())).collect()
}
