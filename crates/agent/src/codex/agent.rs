//! Codex as one of the agents.

use super::plan;
use super::protocol::CodexProtocol;
use crate::protocol::{Agent, LaunchContext, LaunchPlan, Protocol};
use crate::settings::AgentSettings;

/// Codex.
pub(crate) struct Codex;

impl Agent for Codex {
    fn plan(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> LaunchPlan {
        LaunchPlan { argv: plan::argv(settings), env: plan::env(settings, context) }
    }

    fn protocol(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol> {
        Box::new(CodexProtocol::new(settings, context))
    }

    fn sign_in_hint(&self, settings: &AgentSettings) -> String {
        format!("run `{} login`, or set OPENAI_API_KEY", settings.command.join(" "))
    }
}
