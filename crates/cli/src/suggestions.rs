//! Which commands are offered for a word that is none.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue};

use crate::args::Args;

/// Suggests commands for words that other tools use.
pub(crate) fn with_suggestions(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let commands: &[&str] = match word.as_str() {
        "stop" | "kill" | "abort" | "quit" => &["cancel", "pause"],
        "list" | "status" | "ps" => &["ls", "show"],
        "continue" | "start" => &["resume", "run"],
        "delete" | "remove" => &["rm"],
        "apply" | "accept" => &["merge"],
        "follow" | "tail" => &["attach", "logs"],
        "message" | "say" | "send" => &["tell"],
        _ => return without_hidden(error),
    };
    let commands = commands.iter().map(|command| (*command).to_owned()).collect();
    error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(commands));
    error
}

/// The error without suggestions that no help lists.
fn without_hidden(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::Strings(suggested)) = error.get(ContextKind::SuggestedSubcommand) else {
        return error;
    };
    let args = Args::command();
    let is_listed = |name: &&String| {
        args.get_subcommands().any(|command| command.get_name() == *name && !command.is_hide_set())
    };
    let listed: Vec<String> = suggested.iter().filter(is_listed).cloned().collect();
    if listed.is_empty() {
        error.remove(ContextKind::SuggestedSubcommand);
    } else {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(listed));
    }
    error
}
