//! When the user is notified of a goal, and by which command.

use std::path::Path;

use towline_api::Notification;
use towline_config::LayerName;
use towline_core::{Goal, GoalState, Phase};

use crate::context::Context;

/// The key of the command in the configuration.
pub const NOTIFY_COMMAND: &str = "notify.command";

/// The command of the user for goals of this repository. It is read from the user's configuration file alone: a repository's
/// file may be anybody's. A configuration that cannot be read has none.
pub fn notify_command(context: &Context, repository: &Path) -> Option<String> {
    let loaded = context.configuration(repository).ok()?;
    let is_users = matches!(loaded.sources.get(NOTIFY_COMMAND), Some(LayerName::User(_)));
    loaded.config.notify.filter(|_| is_users)
}

/// The notification that entering this phase is worth. `shown` makes texts of others fit for one line.
pub fn notification(
    goal: &Goal,
    state: &GoalState,
    phase: &Phase,
    shown: impl Fn(&str) -> String,
) -> Option<Notification> {
    let title = shown(&goal.title);
    let question = state.open_question().map(|question| shown(&question.ask.title()));
    let reason = phase.reason().map(|reason| shown(&reason));
    let until = phase.until().map(|until| until.to_string());
    let because =
        |words: &Option<String>| words.as_ref().map_or_else(String::new, |words| format!(": {words}"));
    let (kind, text) = match phase {
        Phase::Blocked { .. } => ("needs_you", format!("{title} needs an answer{}", because(&question))),
        Phase::Escalated { .. } => ("needs_you", format!("{title} needs you{}", because(&reason))),
        Phase::Limited { .. } => {
            let until = until.clone().unwrap_or_default();
            ("limited", format!("{title} waits for the provider's quota until {until}"))
        }
        Phase::Done => ("done", format!("{title} is done")),
        Phase::Unproven => ("unproven", format!("{title} ended, and has no checks to prove it")),
        Phase::Failed { .. } => ("failed", format!("{title} failed{}", because(&reason))),
        _ => return None,
    };
    Some(Notification {
        kind: kind.to_owned(),
        text,
        goal: goal.id.to_string(),
        title,
        repository: goal.workspace.repository.clone(),
        phase: phase.name().to_owned(),
        reason,
        until,
        question: question.filter(|_| kind == "needs_you"),
        origin: (&goal.origin).into(),
        metadata: goal.metadata.clone(),
    })
}
