//! Claude Code as one of the agents.

use super::plan;
use super::protocol::ClaudeProtocol;
use crate::protocol::{Agent, LaunchContext, LaunchPlan, Protocol};
use crate::settings::AgentSettings;

/// Claude Code.
pub(crate) struct Claude;

impl Agent for Claude {
    fn plan(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> LaunchPlan {
        LaunchPlan { argv: plan::argv(settings, context), env: plan::env(settings, context) }
    }

    fn protocol(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol> {
        Box::new(ClaudeProtocol::new(settings, context))
    }

    fn sign_in_hint(&self, settings: &AgentSettings) -> String {
        format!("run `{}` and then `/login`, or set ANTHROPIC_API_KEY", settings.command.join(" "))
    }
}
