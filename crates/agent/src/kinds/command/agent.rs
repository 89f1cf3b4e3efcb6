//! Plain programs as a kind of agent.

use towline_core::{LaunchProblem, SessionId};

use super::protocol::CommandProtocol;
use crate::abilities::{Abilities, Ability};
use crate::protocol::{Agent, LaunchContext, Protocol, RefusedSettings, Restriction, Resuming, Stdio};
use crate::settings::{AgentSettings, Permission, PromptBy};

/// The longest prompt that may be an argument: systems refuse a single argument of 128 KiB.
const LONGEST_ARGUMENT: usize = 100 * 1024;

/// What to do instead of settings that only the program itself could follow.
const NOT_ENFORCED: &str = "Towline cannot enforce it for a plain program: \
                            set the program's own options in `command` or `args`";

/// A program that takes a prompt, prints text and exits.
pub(crate) struct Command;

impl Agent for Command {
    /// The command and its arguments, with the prompt in its place, then the arguments that resume a conversation.
    fn argv(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String> {
        let with_prompt = |word: &String| match settings.cli.prompt {
            PromptBy::Stdin => word.clone(),
            PromptBy::File => word.replace(PromptBy::FILE_WORD, context.prompt_file),
            PromptBy::Argument => word.replace(PromptBy::ARGUMENT_WORD, context.prompt),
        };
        let session = context.resumed().map(SessionId::as_str).unwrap_or_default();
        let resume = settings.cli.resume.iter().filter(|_| context.resumed().is_some());
        let resume = resume.map(|word| word.replace(PromptBy::SESSION_WORD, session));
        settings.command.iter().chain(&settings.args).map(with_prompt).chain(resume).collect()
    }

    fn stdio(&self, settings: &AgentSettings) -> Stdio {
        settings.cli.terminal.map_or(Stdio::Pipes, Stdio::Terminal)
    }

    fn own_settings(&self) -> &'static [&'static str] {
        &[
            "prompt",
            "resume",
            "session_pattern",
            "cost_pattern",
            "limit_pattern",
            "terminal",
            "columns",
            "rows",
        ]
    }

    fn refused_settings(&self) -> &'static [RefusedSettings] {
        const KEYS: &[&str] =
            &["allow", "deny", "model", "system_append", "dirs", "max_turns", "startup_timeout"];
        &[
            RefusedSettings { keys: KEYS, fix: NOT_ENFORCED },
            RefusedSettings { keys: &["mcp", "mcp_file"], fix: "configure the program itself" },
        ]
    }

    fn refuses_permission(&self, permission: Permission) -> Option<&'static str> {
        (permission != Permission::Bypass).then_some(NOT_ENFORCED)
    }

    fn restriction(&self) -> Restriction {
        Restriction::Otherwise(
            "Towline cannot restrict a program of this kind: run it as a user, or in a\n      \
             container, with fewer rights.",
        )
    }

    fn refuses(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Option<LaunchProblem> {
        let length = context.prompt.len();
        let too_long = settings.cli.prompt == PromptBy::Argument && length >= LONGEST_ARGUMENT;
        too_long.then(|| LaunchProblem::Other {
            message: format!(
                "the prompt of {length} bytes is too long for an argument, which holds less than \
                 {LONGEST_ARGUMENT}; set the agent's `prompt` to \"stdin\" or \"file\""
            ),
        })
    }

    fn reads_prompt_file(&self, settings: &AgentSettings) -> bool {
        settings.cli.prompt == PromptBy::File
    }

    fn protocol(&self, settings: &AgentSettings, context: &LaunchContext<'_>) -> Box<dyn Protocol> {
        Box::new(CommandProtocol::new(settings, context))
    }

    fn sign_in_hint(&self, settings: &AgentSettings) -> String {
        let program = settings.command.first().map_or("the program", String::as_str);
        format!("sign in with `{program}` itself, or name the variable with its key in `pass_env`")
    }

    fn abilities(&self, settings: &AgentSettings) -> Abilities {
        let least = Abilities::least(self.resuming(settings));
        match settings.cli.cost_pattern {
            Some(_) => Abilities { cost: Ability::Yes("`cost_pattern` finds it in what it prints"), ..least },
            None => least,
        }
    }

    fn resuming(&self, settings: &AgentSettings) -> Resuming {
        if settings.cli.resume.is_empty() { Resuming::Never } else { Resuming::Possible }
    }
}
