//! Gemini CLI in its headless mode as a kind of agent.

use towline_core::{LaunchProblem, SessionId};

use super::protocol::GeminiProtocol;
use crate::abilities::{self, Abilities, Ability};
use crate::environment::Environment;
use crate::kinds::acp::Acp;
use crate::own_files::OwnFiles;
use crate::protocol::{Agent, LaunchContext, Protocol, RefusedSettings, Restriction, Stdio};
use crate::settings::{AgentSettings, Permission};
use crate::sign_in::SignIn;
use crate::version::{TestedVersions, Version};

/// What to do instead of settings that this mode cannot express.
const USE_ACP: &str = "Gemini CLI supports it with `kind = \"acp\"` and `command = [\"gemini\", \"--acp\"]`";

/// Gemini CLI with its JSON stream. The same program speaks ACP: what does not depend on the mode is there.
pub(crate) struct Gemini;

impl Agent for Gemini {
    fn argv(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String> {
        let mut argv = settings.command.clone();
        argv.extend(["--output-format", "stream-json"].map(str::to_owned));
        argv.extend(options(settings, context.session_option("--session-id"), context.model));
        argv
    }

    /// With a pipe, it loses the unwritten rest of its output when it exits.
    fn stdio(&self, _settings: &AgentSettings) -> Stdio {
        Stdio::OutputFile
    }

    fn refused_settings(&self) -> &'static [RefusedSettings] {
        &[RefusedSettings { keys: &["deny", "mcp", "mcp_file"], fix: USE_ACP }]
    }

    /// This mode never asks. So under `edits` its own settings could still let it run commands.
    fn refuses_permission(&self, permission: Permission) -> Option<&'static str> {
        (!matches!(permission, Permission::Bypass | Permission::ReadOnly)).then_some(USE_ACP)
    }

    fn restriction(&self) -> Restriction {
        Restriction::Otherwise(
            "In this mode it can only be restricted by `permission = \"read-only\"`: the agent\n      \
             `gemini`, which speaks ACP, supports all of them.",
        )
    }

    /// The configuration refuses the same. This check makes sure that rules without effect are never ignored.
    fn refuses(&self, settings: &AgentSettings, _context: &LaunchContext<'_>) -> Option<LaunchProblem> {
        let is_enforced = self.refuses_permission(settings.permission).is_none() && settings.deny.is_empty();
        (!is_enforced).then(|| LaunchProblem::Other {
            message: "an agent of the kind `gemini` never asks for permission, so nothing can be forbidden; \
                      use Gemini CLI with `kind = \"acp\"` and `command = [\"gemini\", \"--acp\"]`"
                .to_owned(),
        })
    }

    fn interactive(
        &self,
        settings: &AgentSettings,
        session: &SessionId,
        model: Option<&str>,
    ) -> Option<Vec<String>> {
        let mut argv = settings.command.clone();
        argv.extend(options(settings, ["--resume".to_owned(), session.to_string()], model));
        Some(argv)
    }

    fn protocol(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol> {
        Box::new(GeminiProtocol::new(settings, context))
    }

    fn sign_in_hint(&self, settings: &AgentSettings) -> String {
        Acp::Any.sign_in_hint(settings)
    }

    fn sign_in(&self, settings: &AgentSettings, environment: &Environment) -> SignIn {
        Acp::Any.sign_in(settings, environment)
    }

    fn own_files(&self, settings: &AgentSettings, environment: &Environment) -> Vec<OwnFiles> {
        Acp::Any.own_files(settings, environment)
    }

    fn environment(&self, settings: &AgentSettings, inherited: &Environment) -> Environment {
        Acp::Any.environment(settings, inherited)
    }

    fn version_command(&self, settings: &AgentSettings) -> Option<Vec<String>> {
        Acp::Any.version_command(settings)
    }

    fn version(&self, output: &str) -> Option<Version> {
        Acp::Any.version(output)
    }

    fn tested(&self, settings: &AgentSettings) -> Option<TestedVersions> {
        Acp::Any.tested(settings)
    }

    fn install_hint(&self, settings: &AgentSettings) -> Option<&'static str> {
        Acp::Any.install_hint(settings)
    }

    fn abilities(&self, settings: &AgentSettings) -> Abilities {
        Abilities {
            permissions: match settings.permission {
                Permission::ReadOnly => Ability::Yes("it reads; everything else is refused"),
                _ => Ability::No("it may do everything; with `kind = \"acp\"` it asks first"),
            },
            tokens: Ability::Yes("per model, at the end of the turn"),
            cost: Ability::Partly(abilities::ESTIMATED_COST),
            mcp: Ability::No("it gets none, not even Towline's own tools; with `kind = \"acp\"` it does"),
            ..Abilities::least(self.resuming(settings))
        }
    }
}

/// The options of both modes. The prompt is not among them: it is read from standard input.
fn options(settings: &AgentSettings, session: [String; 2], model: Option<&str>) -> Vec<String> {
    // Without a terminal, its default mode refuses everything that needs permission.
    let mode = if settings.permission == Permission::ReadOnly { "default" } else { "yolo" };
    let mut argv = ["--approval-mode", mode].map(str::to_owned).to_vec();
    argv.extend(session);
    argv.extend(settings.model_option(model));
    // This flag takes any number of words. Joined with `=` it takes exactly one.
    argv.extend(settings.dirs.iter().map(|dir| format!("--include-directories={dir}")));
    argv.extend(settings.args.iter().cloned());
    argv
}
