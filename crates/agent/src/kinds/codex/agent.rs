//! Codex as a kind of agent.

use std::path::PathBuf;

use towline_core::SessionId;

use super::plan;
use super::protocol::CodexProtocol;
use crate::abilities::{self, Abilities, Ability};
use crate::environment::Environment;
use crate::protocol::{Agent, LaunchContext, Protocol};
use crate::settings::AgentSettings;
use crate::sign_in::{SignIn, SignInClue};
use crate::version::{TestedVersions, Version};

/// The version of the recordings and of the tests with the real program.
const TESTED: TestedVersions = TestedVersions { oldest: [0, 166, 0], newest: [0, 166, 0] };

pub(crate) struct Codex;

impl Agent for Codex {
    fn argv(&self, settings: &AgentSettings, _context: &LaunchContext<'_>) -> Vec<String> {
        plan::argv(settings)
    }

    fn interactive(
        &self,
        settings: &AgentSettings,
        session: &SessionId,
        model: Option<&str>,
    ) -> Option<Vec<String>> {
        Some(plan::interactive(settings, session, model))
    }

    fn protocol(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol> {
        Box::new(CodexProtocol::new(settings, context))
    }

    fn sign_in_hint(&self, settings: &AgentSettings) -> String {
        format!("run `{} login`, or set OPENAI_API_KEY", settings.command.join(" "))
    }

    fn sign_in(&self, _settings: &AgentSettings, environment: &Environment) -> SignIn {
        let home = environment.get("CODEX_HOME").cloned();
        let home = home.or_else(|| environment.get("HOME").map(|home| format!("{home}/.codex")));
        let file = home.map(|home| SignInClue::File(PathBuf::from(home).join("auth.json")));
        let key = SignInClue::Variable("OPENAI_API_KEY".into());
        SignIn::ShownBy(file.into_iter().chain([key]).collect())
    }

    fn environment(&self, settings: &AgentSettings, inherited: &Environment) -> Environment {
        plan::env(settings, inherited)
    }

    fn version_command(&self, settings: &AgentSettings) -> Option<Vec<String>> {
        Some(settings.command.iter().cloned().chain(["--version".to_owned()]).collect())
    }

    /// It prints `codex-cli 0.166.0`.
    fn version(&self, output: &str) -> Option<Version> {
        output.lines().find(|line| line.starts_with("codex-cli ")).and_then(Version::find)
    }

    fn tested(&self, _settings: &AgentSettings) -> Option<TestedVersions> {
        Some(TESTED)
    }

    fn install_hint(&self, _settings: &AgentSettings) -> Option<&'static str> {
        Some("install Codex (`npm install -g @openai/codex`)")
    }

    fn abilities(&self, settings: &AgentSettings) -> Abilities {
        Abilities {
            resume: abilities::resume(self.resuming(settings)),
            steering: Ability::Yes("it gets your messages during its turn"),
            permissions: abilities::permissions(settings),
            questions: Ability::Yes("with its request for input, which waits for your answer"),
            compaction: Ability::Yes("with `thread/compact/start`, before the prompt"),
            tokens: Ability::Yes("including subagents"),
            cost: Ability::Partly(abilities::ESTIMATED_COST),
            mcp: Ability::Yes("with the settings of the conversation"),
        }
    }
}
