//! The process to start: one builder for fresh and resumed sessions.

use towline_core::SessionId;

use crate::protocol::LaunchContext;
use crate::settings::{AgentSettings, Permission};

/// Program and arguments. The prompt is not among them: it is read from standard input.
pub(super) fn argv(settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String> {
    let mut argv = settings.command.clone();
    argv.extend(["--output-format", "stream-json"].map(str::to_owned));
    argv.extend(options(settings, context.session_option("--session-id"), context.model));
    argv
}

/// The same settings in the program's own screen.
pub(super) fn interactive(settings: &AgentSettings, session: &SessionId, model: Option<&str>) -> Vec<String> {
    let mut argv = settings.command.clone();
    argv.extend(options(settings, ["--resume".to_owned(), session.to_string()], model));
    argv
}

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
