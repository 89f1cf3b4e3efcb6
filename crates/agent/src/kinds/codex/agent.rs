//! Codex as a kind of agent.

use towline_core::SessionId;

use super::plan::{approval_policy, sandbox};
use super::protocol::CodexProtocol;
use crate::abilities::{self, Abilities, Ability};
use crate::environment::{Environment, Extra, environment};
use crate::own_files::{OwnFiles, named_or_below_home};
use crate::protocol::{Agent, LaunchContext, Protocol};
use crate::settings::AgentSettings;
use crate::sign_in::{SignIn, SignInClue};
use crate::version::{TestedVersions, Version};

/// The version of the recordings and of the tests with the real program.
const TESTED: TestedVersions = TestedVersions { oldest: [0, 166, 0], newest: [0, 166, 0] };

/// Variables that a Codex sets for its child processes. Towline may be one of them, but the agents that it starts are
/// separate sessions.
const OUTER_SESSION: [&str; 6] = [
    "CODEX_APPLY_PATCH_PRESERVE_LINE_ENDINGS",
    "CODEX_CI",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "CODEX_TOOL_CALL_ID",
    "CODEX_VERSION",
];

const OUTER_SESSION_PREFIXES: [&str; 4] =
    ["CODEX_INTERNAL_", "CODEX_NETWORK_PROXY_", "CODEX_SANDBOX", "CODEX_SNAPSHOT_"];

pub(crate) struct Codex;

impl Agent for Codex {
    fn argv(&self, settings: &AgentSettings, _context: &LaunchContext<'_>) -> Vec<String> {
        let mut argv = settings.command.clone();
        argv.push("app-server".to_owned());
        argv.extend(settings.args.iter().cloned());
        argv
    }

    /// The settings that begin a thread are on the command line of its own screen.
    fn interactive(
        &self,
        settings: &AgentSettings,
        session: &SessionId,
        model: Option<&str>,
    ) -> Option<Vec<String>> {
        let mut argv = settings.command.clone();
        argv.extend(["resume".to_owned(), session.to_string()]);
        argv.extend(settings.model_option(model));
        argv.extend(
            ["--ask-for-approval", approval_policy(settings), "--sandbox", sandbox(settings)]
                .map(str::to_owned),
        );
        argv.extend(settings.args.iter().cloned());
        Some(argv)
    }

    fn protocol(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol> {
        Box::new(CodexProtocol::new(settings, context))
    }

    fn sign_in_hint(&self, settings: &AgentSettings) -> String {
        format!("run `{} login`, or set OPENAI_API_KEY", settings.command.join(" "))
    }

    fn sign_in(&self, _settings: &AgentSettings, environment: &Environment) -> SignIn {
        let home = named_or_below_home(environment, "CODEX_HOME", ".codex");
        let file = home.map(|home| SignInClue::File(home.join("auth.json")));
        let key = SignInClue::Variable("OPENAI_API_KEY".into());
        SignIn::ShownBy(file.into_iter().chain([key]).collect())
    }

    fn own_files(&self, _settings: &AgentSettings, environment: &Environment) -> Vec<OwnFiles> {
        let directory = named_or_below_home(environment, "CODEX_HOME", ".codex");
        let files = |directory| OwnFiles {
            credentials: &["auth.json"],
            settings: &[
                "AGENTS.md",
                "AGENTS.override.md",
                "agents",
                "config.toml",
                "hooks",
                "hooks.json",
                "prompts",
                "rules",
                "skills",
            ],
            ..OwnFiles::at(directory)
        };
        directory.into_iter().map(files).collect()
    }

    fn environment(&self, settings: &AgentSettings, inherited: &Environment) -> Environment {
        let extra = Extra {
            prefixes: vec!["OPENAI_", "CODEX_"],
            except: OUTER_SESSION.to_vec(),
            except_prefixes: OUTER_SESSION_PREFIXES.to_vec(),
            ..Extra::default()
        };
        environment(settings, inherited, &extra)
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
