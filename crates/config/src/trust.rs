//! Which settings a repository's file may make only when the user has accepted them.
//!
//! A repository may be anybody's. Its checks, setup and budgets count at once: the user starts goals there to
//! run exactly that. Settings that give agents more (a program, a permission, a variable, a way out of the sandbox) need a person
//! who has read them.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::layer::{Layer, LayerName};
use crate::settings::Settings;
use crate::value::Value;

/// Whether a key of a repository's file needs the user's trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    NotNeeded,
    Needed,
    /// Needed, but for these values, which only narrow.
    NeededUnless(&'static [&'static str]),
    /// Needed for names of agents that the user's own settings would have to have.
    NeededForOtherAgents,
}

/// The agents that the user's own settings (file and environment) have, and whether a repository may name others. A permission that the
/// user has set for one agent means nothing if a repository can choose another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnAgents {
    names: BTreeSet<String>,
    are_chosen: bool,
}

impl OwnAgents {
    /// Those of these layers.
    pub(crate) fn of(layers: &[Layer]) -> Self {
        let mut own = Settings::default();
        let is_own = |layer: &&Layer| matches!(layer.name, LayerName::User(_) | LayerName::Environment);
        layers.iter().filter(is_own).for_each(|layer| own.add(layer));
        let listed: Option<Vec<String>> = own.get(&["defaults", "agents"]);
        let configured: Vec<String> =
            own.names_below(&["agents"]).into_iter().map(|(name, _)| name).collect();
        let is_limited = |name: &String| {
            ["permission", "allow", "deny", "fetch"]
                .iter()
                .any(|key| own.place(&["agents", name, key]).is_some())
        };
        let are_chosen = listed.is_some() || configured.iter().any(is_limited);
        Self { names: listed.into_iter().flatten().chain(configured).collect(), are_chosen }
    }

    /// Whether a repository may name this agent without the user's trust.
    pub fn may_be_named(&self, name: &str) -> bool {
        !self.are_chosen || self.names.contains(name)
    }
}

/// Which settings of a repository's file count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Trusting {
    #[default]
    All,
    /// Those that need no trust.
    WithoutWidening,
}

impl Trust {
    /// Whether this value of the key needs it.
    pub(crate) fn is_needed(self, value: &Value, own: &OwnAgents) -> bool {
        match self {
            Self::NotNeeded => false,
            Self::Needed => true,
            Self::NeededUnless(narrow) => match value {
                Value::Text(text) => !narrow.contains(&text.as_str()),
                Value::Flag(flag) => !narrow.contains(&if *flag { "true" } else { "false" }),
                _ => true,
            },
            Self::NeededForOtherAgents => match value {
                Value::List(names) => !names.iter().all(|name| own.may_be_named(name)),
                _ => true,
            },
        }
    }
}

impl Value {
    /// The value as JSON, the same for every way to write it.
    pub(crate) fn json(&self) -> Json {
        match self {
            Self::Flag(flag) => Json::from(*flag),
            Self::Count(count) => Json::from(*count),
            Self::Text(text) => Json::from(text.as_str()),
            Self::List(items) => Json::from(items.as_slice()),
            other => Json::from(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Schema, SetBy};

    /// Keys that change what a goal does and what may be spent, and give nobody more than a goal without them has.
    const NOT_NEEDED: [&str; 55] = [
        "budget.turns",
        "budget.attempts",
        "budget.wall",
        "budget.tokens",
        "budget.usd",
        "budget.errors",
        "budget.denials",
        "budget.project.usd",
        "checks",
        "checks.name",
        "checks.run",
        "checks.timeout",
        "checks.stdout",
        "checks.file",
        "checks.matches",
        "checks.untouched",
        "checks.committed",
        "checks.program",
        "checks.hidden",
        "checks.files",
        "checks.floor",
        "checks.probe",
        "checks.judge",
        "checks.agent",
        "protect.paths",
        "workspace.base",
        "workspace.setup",
        // Paths that lead out of the repository are refused.
        "workspace.copy",
        "workspace.generated",
        "workspace.warm",
        "workspace.confirm",
        "defaults.max_parallel",
        "defaults.briefing",
        "baseline.mode",
        "agents.*.model",
        // The repository has other places for words to an agent, such as AGENTS.md.
        "agents.*.system_append",
        "agents.*.compact_focus",
        "agents.*.max_turns",
        "agents.*.prompt",
        "agents.*.session_pattern",
        "agents.*.limit_pattern",
        "agents.*.terminal",
        "agents.*.columns",
        "agents.*.rows",
        "agents.*.account",
        "agents.*.startup_timeout",
        "agents.*.idle_timeout",
        "agents.*.turn_timeout",
        "agents.*.stop_grace",
        "agents.*.context_threshold",
        "agents.*.session_idle_limit",
        "agents.*.session_age_limit",
        "agents.*.api",
        "agents.*.context_window",
        "agents.*.max_output",
    ];

    /// Keys that give an agent or a check more. A list in a repository's file replaces the user's, so `deny` and `hide` are among them. A
    /// price of nothing takes the effect out of every budget of dollars.
    const NEEDED: [&str; 25] = [
        "agents.*.cost_pattern",
        "workspace.pass_env",
        "sandbox.read",
        "sandbox.write",
        "sandbox.hide",
        "agents.*.kind",
        "agents.*.command",
        "agents.*.allow",
        "agents.*.deny",
        "agents.*.dirs",
        "agents.*.mcp.*.command",
        "agents.*.mcp.*.url",
        "agents.*.mcp.*.headers.*",
        "agents.*.mcp_file",
        "agents.*.args",
        "agents.*.env.*",
        "agents.*.pass_env",
        "agents.*.resume",
        "agents.*.provider",
        "agents.*.base_url",
        "agents.*.key_env",
        "prices.*.input",
        "prices.*.output",
        "prices.*.cache_read",
        "prices.*.cache_write",
    ];

    /// Keys of which some values only narrow.
    const BY_VALUE: [(&str, &[&str]); 6] = [
        ("workspace.mode", &["clone"]),
        ("sandbox.mode", &["required"]),
        ("sandbox.network", &["false"]),
        ("sandbox.setup_network", &["false"]),
        ("sandbox.checks_network", &["false"]),
        ("agents.*.fetch", &["false"]),
    ];

    #[test]
    fn every_key_that_a_repository_may_set_is_classified_here() {
        for key in Schema::CONFIGURATION.keys().filter(|key| key.set_by == SetBy::Anybody) {
            let by_value = BY_VALUE.iter().find(|(pattern, _)| *pattern == key.pattern);
            let expected = match key.pattern {
                "defaults.agents" => Some(Trust::NeededForOtherAgents),
                "agents.*.permission" => Some(Trust::NeededUnless(&["deny", "ask", "read-only"])),
                pattern if NEEDED.contains(&pattern) => Some(Trust::Needed),
                pattern if NOT_NEEDED.contains(&pattern) => Some(Trust::NotNeeded),
                _ => by_value.map(|(_, narrow)| Trust::NeededUnless(narrow)),
            };
            assert_eq!(Some(key.trust), expected, "{}: does it give an agent more?", key.pattern);
        }
    }

    #[test]
    fn values_that_only_narrow_need_no_trust() {
        let own = OwnAgents::default();
        let mode = Trust::NeededUnless(&["required"]);
        let needed =
            ["auto", "off", "required"].map(|word| mode.is_needed(&Value::Text(word.to_owned()), &own));
        assert_eq!(needed, [true, true, false]);
        let network = Trust::NeededUnless(&["false"]);
        assert_eq!([true, false].map(|flag| network.is_needed(&Value::Flag(flag), &own)), [true, false]);
    }
}
