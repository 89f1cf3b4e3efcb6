//! Codex.

use crate::protocol::{Agent, LaunchContext, LaunchPlan, Protocol};
use crate::settings::AgentSettings;

/// Codex.
pub(crate) struct Codex;

impl Agent for Codex {
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
