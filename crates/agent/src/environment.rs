//! Which variables an agent gets: an allow-list, never the whole environment.
//!
//! Neighbours: each agent's launch plan. What belongs to one kind of agent alone is said by that agent as an
//! [`Extra`]; what every program needs to run at all is here. Nothing here reads the environment itself.

use std::collections::BTreeMap;

use crate::settings::AgentSettings;

/// What every program may need: where things are, who it runs for, language, terminal, and the way to the network.
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

/// Beginnings of the names that agents have their credentials and settings under.
const OF_AGENTS: [&str; 7] =
    ["ANTHROPIC_", "CLAUDE_", "CODEX_", "GEMINI_", "GOOGLE_", "OPENAI_", "OPENCODE_"];

/// Whether a variable is meant for an agent: no other program of the user's needs its account with a model.
pub fn is_agents_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    OF_AGENTS.iter().any(|prefix| name.starts_with(prefix))
}

/// What one kind of agent is given beyond what every program needs.
#[derive(Debug, Default)]
pub(crate) struct Extra {
    /// Whole names.
    pub(crate) names: Vec<&'static str>,
    /// Beginnings of names.
    pub(crate) prefixes: Vec<&'static str>,
    /// Exceptions from `prefixes`: whole names.
    pub(crate) except: Vec<&'static str>,
    /// Exceptions from `prefixes`: beginnings of names.
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

/// The environment of an agent, but for what Towline itself says about the attempt. What the settings set wins over
/// what is inherited.
pub(crate) fn environment(
    settings: &AgentSettings,
    inherited: &BTreeMap<String, String>,
    extra: &Extra,
) -> BTreeMap<String, String> {
    let named = |name: &str| settings.pass_env.iter().any(|passed| passed == name);
    let passed_on = inherited.iter().filter(|(name, _)| is_basic(name) || extra.admits(name) || named(name));
    passed_on.chain(&settings.env).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn is_basic(name: &str) -> bool {
    BASE.contains(&name) || BASE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
