//! Acp.

use crate::protocol::{Agent, LaunchContext, LaunchPlan, Protocol};
use crate::settings::AgentSettings;

/// Acp.
pub(crate) struct Acp;

impl Agent for Acp {
    fn plan(&self, _settings: &AgentSettings, _context: &LaunchContext<'_>) -> LaunchPlan {
        unimplemented!()
    }

    fn protocol(&self, _settings: &AgentSettings, _context: &LaunchContext<'_>) -> Box<dyn Protocol> {
        unimplemented!()
    }

    fn sign_in_hint(&self, _settings: &AgentSettings) -> String {
        unimplemented!()
    }
}
