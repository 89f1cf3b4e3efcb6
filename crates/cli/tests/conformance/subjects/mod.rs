//! The agents of the suite, one file each. What one of them cannot do, and what holds for it in another way, is said in
//! `exceptions`.

mod builtin;
mod claude;
mod codex;
mod gemini;
mod gemini_stream;
mod opencode;
mod plain;

pub(crate) use builtin::{builtin_anthropic, builtin_chat, builtin_gemini, builtin_responses};
pub(crate) use claude::claude;
pub(crate) use codex::codex;
pub(crate) use gemini::gemini;
pub(crate) use gemini_stream::gemini_stream;
pub(crate) use opencode::opencode;
pub(crate) use plain::plain;

use towline_testkit::agents::AgentCli;

/// The settings of a CLI that is started with these arguments.
fn settings_of(cli: AgentCli, kind: &str, args: &[&str]) -> String {
    let program = cli.program().display().to_string();
    let command: Vec<&str> = [program.as_str()].into_iter().chain(args.iter().copied()).collect();
    format!("kind = {kind:?}\ncommand = {command:?}\n")
}

/// Whether a command line is the CLI's, and not that of the shim above it.
fn is_program(cli: AgentCli, command: &str) -> bool {
    command.contains(&*cli.program().to_string_lossy()) && !command.contains(" shim ")
}
