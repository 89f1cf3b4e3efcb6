//! The process to start: one builder for fresh and resumed sessions.

use towline_core::SessionPlan;

use crate::protocol::LaunchContext;
use crate::settings::{AgentSettings, Permission};

/// Program and arguments. The prompt is not among them: it is read from standard input.
pub(super) fn argv(settings: &AgentSettings, context: &LaunchContext<'_>) -> Vec<String> {
    let mut argv = settings.command.clone();
    // Without a terminal, its usual mode refuses all that it would ask about.
    let mode = if settings.permission == Permission::ReadOnly { "default" } else { "yolo" };
    argv.extend(["--output-format", "stream-json", "--approval-mode", mode].map(str::to_owned));
    let (flag, session) = match context.session {
        SessionPlan::Fresh(id) => ("--session-id", id),
        SessionPlan::Resume(id) => ("--resume", id),
    };
    argv.extend([flag.to_owned(), session.to_string()]);
    if let Some(model) = context.model.or(settings.model.as_deref()) {
        argv.extend(["--model".to_owned(), model.to_owned()]);
    }
    // This flag takes any number of words. Joined with `=` it takes exactly one.
    argv.extend(settings.dirs.iter().map(|dir| format!("--include-directories={dir}")));
    argv.extend(settings.args.iter().cloned());
    argv
}
