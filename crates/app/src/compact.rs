//! Summarises a goal's conversation before its next prompt.

use std::collections::BTreeMap;

use towline_agent::{Ability, AgentSettings, agent};
use towline_core::AgentName;
use towline_engine::GoalCommand;

use crate::agents::{agents_of, not_configured};
use crate::context::Context;
use crate::error::{Action, Error};
use crate::find::Found;
use crate::steer::{Taken, steer};

/// Requests a summary, unless the agent that holds the conversation cannot make one.
pub async fn compact(context: &Context, found: Found, focus: Option<String>) -> Result<Taken, Error> {
    let (goal, state) = (&found.record.goal, &found.record.state);
    let of_session = state.session.as_ref().map(|session| &session.agent);
    let agent = of_session.or_else(|| state.last_attempt().map(|attempt| &attempt.agent));
    if let Some(reason) = refusal(agent, &agents_of(context, goal)?.agents) {
        let message = format!("the conversation of goal {} cannot be summarised: {reason}", goal.id.short());
        return Err(Error::usage(message)
            .hint([("start a new conversation when the goal has stopped", Action::RetryFresh(goal.id))]));
    }
    steer(context, found, GoalCommand::Compact { focus }).await
}

/// Why there is no summary to be had.
fn refusal(name: Option<&AgentName>, agents: &BTreeMap<AgentName, AgentSettings>) -> Option<String> {
    let Some(name) = name else {
        return Some("it has none yet".to_owned());
    };
    let Some(settings) = agents.get(name) else {
        return Some(not_configured(name));
    };
    match agent(settings.kind).abilities(settings).compaction {
        Ability::No(instead) => Some(format!("agent `{name}` has no such command; {instead}")),
        Ability::Yes(_) | Ability::Partly(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use towline_config::{Layer, LayerContent, LayerName};

    use super::*;

    /// What is wrong with a summary for an agent that is started by this command.
    fn refusal_of(kind: &str, command: &str) -> Option<String> {
        let text = format!("[agents.a]\nkind = \"{kind}\"\ncommand = [\"{command}\"]\n");
        let layer = Layer { name: LayerName::User("config.toml".into()), content: LayerContent::Toml(text) };
        let settings = towline_config::load(&[layer]).expect("loads").config.agents["a"].clone();
        let name = AgentName::new("a");
        refusal(Some(&name.clone()), &BTreeMap::from([(name, settings)]))
    }

    #[test]
    fn an_agent_that_cannot_summarise_its_conversation_is_named_at_once() {
        for (kind, command) in [("claude", "claude"), ("codex", "codex"), ("acp", "opencode"), ("acp", "any")]
        {
            assert_eq!(refusal_of(kind, command), None, "{kind} {command}");
        }
        for (kind, command) in [("gemini", "gemini"), ("acp", "gemini"), ("command", "aider")] {
            let reason = refusal_of(kind, command).expect("a reason");
            assert!(reason.starts_with("agent `a` has no such command; "), "{reason}");
        }
        assert_eq!(refusal(None, &BTreeMap::new()).as_deref(), Some("it has none yet"));
    }
}
