//! Claude Code as a kind of agent.

use towline_core::SessionId;

use super::classify::ROOT_FIX;
use super::protocol::ClaudeProtocol;
use super::{plan, sign_in};
use crate::abilities::{self, Abilities, Ability};
use crate::environment::Environment;
use crate::protocol::{Agent, LaunchContext, Protocol};
use crate::settings::AgentSettings;
use crate::sign_in::SignIn;
use crate::version::{TestedVersions, Version};

/// The conformance tests run with the oldest and with the newest.
const TESTED: TestedVersions = TestedVersions { oldest: [2, 1, 197], newest: [2, 1, 325] };

pub(crate) struct Claude;

impl Agent for Claude {
    fn argv(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String> {
        plan::argv(settings, context)
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
        Box::new(ClaudeProtocol::new(settings, context))
    }

    fn sign_in_hint(&self, settings: &AgentSettings) -> String {
        format!("run `{}` and then `/login`, or set ANTHROPIC_API_KEY", settings.command.join(" "))
    }

    fn sign_in(&self, _settings: &AgentSettings, environment: &Environment) -> SignIn {
        SignIn::ShownBy(sign_in::clues(environment))
    }

    fn environment(&self, settings: &AgentSettings, inherited: &Environment) -> Environment {
        plan::env(settings, inherited)
    }

    fn provider(&self, settings: &AgentSettings, environment: &Environment) -> Option<String> {
        plan::provider(settings, environment)
    }

    fn refuses_root(&self, settings: &AgentSettings, environment: &Environment) -> Option<&'static str> {
        plan::refuses_root(settings, environment).then_some(ROOT_FIX)
    }

    fn version_command(&self, settings: &AgentSettings) -> Option<Vec<String>> {
        Some(settings.command.iter().cloned().chain(["--version".to_owned()]).collect())
    }

    /// It prints `2.1.197 (Claude Code)`.
    fn version(&self, output: &str) -> Option<Version> {
        output.lines().find(|line| line.contains("(Claude Code)")).and_then(Version::find)
    }

    fn tested(&self, _settings: &AgentSettings) -> Option<TestedVersions> {
        Some(TESTED)
    }

    fn install_hint(&self, _settings: &AgentSettings) -> Option<&'static str> {
        Some("install Claude Code (`npm install -g @anthropic-ai/claude-code`)")
    }

    fn abilities(&self, settings: &AgentSettings) -> Abilities {
        Abilities {
            resume: abilities::resume(self.resuming(settings)),
            steering: Ability::Yes("it gets your messages during its turn, after the running tool call"),
            permissions: abilities::permissions(settings),
            questions: Ability::Yes("with `AskUserQuestion`, which waits for your answer"),
            compaction: Ability::Yes("with `/compact`, before the prompt"),
            tokens: Ability::Yes("per model, including subagents"),
            cost: Ability::Yes("in dollars, by its own count; estimated until the turn ends"),
            mcp: Ability::Yes("with `--mcp-config`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Tested;

    #[test]
    fn its_version_is_read_from_its_own_line_alone() {
        let outputs =
            ["2.1.197 (Claude Code)\n", "update 9.9.9 is out\n2.2.0 (Claude Code)\n", "1.2.3\n", ""];
        let versions = outputs.map(|output| Claude.version(output).map(|version| version.to_string()));
        assert_eq!(versions, [Some("2.1.197".to_owned()), Some("2.2.0".to_owned()), None, None]);
    }

    #[test]
    fn the_versions_of_the_conformance_tests_are_the_tested_ones() {
        let compared = ["2.1.196", "2.1.197", "2.1.325", "2.1.326"]
            .map(|version| TESTED.compare(&Version::find(version).expect("a version")));
        assert_eq!(compared, [Tested::Older, Tested::Within, Tested::Within, Tested::Newer]);
    }
}
