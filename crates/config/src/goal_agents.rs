//! What a goal sets for its agents, as a layer over the configuration: so the same rules hold for it, whichever agent it
//! reaches, when the goal is created and whenever it is resumed.

use std::collections::BTreeMap;

use serde_json::Value;
use towline_core::AgentName;

use crate::layer::{Layer, LayerContent, LayerName};

/// The layer that has these agents set as the goal wants it: `settings` are the keys of `[agents.NAME]`.
pub fn goal_agents_layer<'a>(
    name: LayerName,
    agents: impl IntoIterator<Item = &'a AgentName>,
    settings: &BTreeMap<String, Value>,
) -> Layer {
    let mut text = String::new();
    if !settings.is_empty() {
        for agent in agents {
            text.push_str(&format!("[agents.{}]\n", toml(&Value::from(agent.as_str()))));
            for (key, value) in settings {
                text.push_str(&format!("{key} = {}\n", toml(value)));
            }
        }
    }
    Layer { name, content: LayerContent::Generated(text) }
}

/// A value in TOML. There is no null among settings.
fn toml(value: &Value) -> String {
    toml::Value::try_from(value).unwrap_or_else(|_| toml::Value::from("")).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_setting_reaches_every_agent_of_the_goal() {
        let settings = json!({
            "allow": ["Bash(git *)", "a\nb \"c\""],
            "max_turns": 3,
            "mcp": {"do.cs": {"command": ["docs-mcp"]}},
            "permission": "ask",
        });
        let settings: BTreeMap<String, Value> = serde_json::from_value(settings).unwrap();
        let agents = ["claude", "codex"].map(AgentName::new);
        let layer = goal_agents_layer(LayerName::StoredGoal, &agents, &settings);
        let loaded = crate::load(&[layer]).unwrap_or_else(|error| panic!("{error}"));
        for name in ["claude", "codex"] {
            let agent = &loaded.config.agents[name];
            assert_eq!(agent.allow, ["Bash(git *)", "a\nb \"c\""]);
            assert_eq!(agent.max_turns, Some(3));
            assert_eq!(agent.mcp["do.cs"].command, ["docs-mcp"]);
            assert_eq!(agent.permission, towline_agent::Permission::Ask);
        }
        assert_eq!(loaded.config.agents["gemini"].allow, Vec::<String>::new());
    }
}
