//! ACP agents as one of the kinds of agents.

use super::plan;
use super::preset::Preset;
use super::protocol::AcpProtocol;
use crate::protocol::{Agent, LaunchContext, LaunchPlan, Protocol, Resuming};
use crate::settings::AgentSettings;

/// Any agent that speaks the Agent Client Protocol.
pub(crate) struct Acp;

impl Agent for Acp {
    fn plan(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> LaunchPlan {
        LaunchPlan { argv: plan::argv(settings, context), env: plan::env(settings, context) }
    }

    fn protocol(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol> {
        Box::new(AcpProtocol::new(settings, context))
    }

    fn sign_in_hint(&self, settings: &AgentSettings) -> String {
        Preset::of(settings).sign_in_hint(settings)
    }

    fn resuming(&self, settings: &AgentSettings) -> Resuming {
        Preset::of(settings).resuming()
    }
}
