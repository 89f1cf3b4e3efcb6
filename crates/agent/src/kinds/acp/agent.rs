//! ACP agents as a kind of agent.

use std::time::Duration;

use towline_core::SessionId;

use super::plan;
use super::preset::Preset;
use super::protocol::AcpProtocol;
use crate::abilities::Abilities;
use crate::environment::Environment;
use crate::protocol::{Agent, LaunchContext, Protocol, Resuming};
use crate::settings::AgentSettings;
use crate::sign_in::SignIn;
use crate::version::{TestedVersions, Version};

/// An agent that speaks the Agent Client Protocol.
pub(crate) enum Acp {
    /// Any program that speaks the protocol.
    Any,
    /// The agent inside the binary.
    Builtin,
}

impl Agent for Acp {
    fn argv(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String> {
        plan::argv(settings, context)
    }

    fn interactive(
        &self,
        settings: &AgentSettings,
        session: &SessionId,
        model: Option<&str>,
    ) -> Option<Vec<String>> {
        (Preset::of(settings) == Preset::Opencode).then(|| plan::opencode_screen(settings, session, model))
    }

    fn protocol(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol> {
        Box::new(AcpProtocol::new(settings, context))
    }

    fn sign_in_hint(&self, settings: &AgentSettings) -> String {
        Preset::of(settings).sign_in_hint(settings)
    }

    fn sign_in(&self, settings: &AgentSettings, environment: &Environment) -> SignIn {
        Preset::of(settings).sign_in(settings, environment)
    }

    fn environment(&self, settings: &AgentSettings, inherited: &Environment) -> Environment {
        plan::env(settings, inherited)
    }

    /// The program alone: its arguments make it an ACP agent.
    fn version_command(&self, settings: &AgentSettings) -> Option<Vec<String>> {
        if Preset::of(settings) == Preset::Builtin {
            return None;
        }
        Some(settings.command.iter().take(1).cloned().chain(["--version".to_owned()]).collect())
    }

    fn version(&self, output: &str) -> Option<Version> {
        output.lines().find_map(Version::find)
    }

    fn tested(&self, settings: &AgentSettings) -> Option<TestedVersions> {
        Preset::of(settings).tested()
    }

    fn install_hint(&self, settings: &AgentSettings) -> Option<&'static str> {
        Preset::of(settings).install_hint()
    }

    fn exit_patience(&self, settings: &AgentSettings) -> Duration {
        Preset::of(settings).exit_patience()
    }

    fn resuming(&self, settings: &AgentSettings) -> Resuming {
        Preset::of(settings).resuming()
    }

    fn abilities(&self, settings: &AgentSettings) -> Abilities {
        Preset::of(settings).abilities(settings)
    }

    fn needs_command(&self) -> bool {
        matches!(self, Self::Any)
    }

    fn own_settings(&self) -> &'static [&'static str] {
        match self {
            Self::Any => &[],
            Self::Builtin => {
                &["provider", "api", "base_url", "key_env", "context_window", "max_output", "fetch"]
            }
        }
    }

    fn takes_http_servers(&self) -> bool {
        matches!(self, Self::Any)
    }

    fn reports_unknown_price(&self) -> bool {
        matches!(self, Self::Builtin)
    }
}
