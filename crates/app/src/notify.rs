//! Runs the user's own command when a goal needs them, waits for a quota or has ended.
//!
//! The command gets one JSON object on standard input and one line in `TOWLINE_TEXT`, and what it prints goes nowhere.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;
use towline_api::Notification;
use towline_config::LayerName;
use towline_core::{Goal, GoalState, Phase};

use crate::context::Context;
use crate::secrets::KnownSecrets;

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The key of the command in the configuration.
pub const NOTIFY_COMMAND: &str = "notify.command";

/// The command of the user for goals of this repository. It is read from the user's configuration file alone: a repository's
/// file may be anybody's. A configuration that cannot be read has none.
fn notify_command(context: &Context, repository: &Path) -> Option<String> {
    let loaded = context.configuration(repository).ok()?;
    let is_users = matches!(loaded.sources.get(NOTIFY_COMMAND), Some(LayerName::User(_)));
    loaded.config.notify.filter(|_| is_users)
}

/// The notification that entering this phase is worth.
fn notification(
    goal: &Goal,
    state: &GoalState,
    phase: &Phase,
    secrets: &KnownSecrets,
) -> Option<Notification> {
    let shown = |text: &str| secrets.brief(text);
    let title = shown(&goal.title);
    let question = state.open_question().map(|question| shown(&question.ask.title()));
    let reason = phase.reason().map(|reason| shown(&reason));
    let why = shown(&state.why(phase));
    let until = phase.until().map(|until| until.to_string());
    let (kind, text) = match phase {
        Phase::Blocked { .. } => {
            ("needs_you", format!("{title} needs an answer: {}", question.as_deref().unwrap_or_default()))
        }
        Phase::Escalated { .. } => ("needs_you", format!("{title} needs you{why}")),
        Phase::Limited { .. } => {
            let until = until.clone().unwrap_or_default();
            ("limited", format!("{title} waits for the provider's quota until {until}"))
        }
        Phase::Done => ("done", format!("{title} is done")),
        Phase::Unproven => ("unproven", format!("{title} ended, and has no checks to prove it")),
        Phase::Failed { .. } => ("failed", format!("{title} failed{why}")),
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

/// Runs the user's command, beside everything else.
pub struct Notifier {
    /// None when the user wants no notifications.
    command: Option<String>,
    secrets: KnownSecrets,
    /// Called with the reason if a command failed.
    warn: fn(&str),
    running: JoinSet<()>,
    /// Ends the commands that are running.
    stop: watch::Sender<()>,
}

impl Notifier {
    /// The notifier of a goal in this repository.
    pub fn of(context: &Context, repository: &str, warn: fn(&str)) -> Self {
        let command = notify_command(context, Path::new(repository));
        let secrets = context.secrets.clone();
        Self { command, secrets, warn, running: JoinSet::new(), stop: watch::Sender::new(()) }
    }

    /// Whether anybody is to be notified.
    pub const fn is_wanted(&self) -> bool {
        self.command.is_some()
    }

    /// Notifies the user if this phase is worth it.
    pub fn entered(&mut self, phase: &Phase, goal: &Goal, state: &GoalState) {
        let Some(command) = &self.command else { return };
        let Some(notification) = notification(goal, state, phase, &self.secrets) else { return };
        match start(command, &notification, &self.secrets) {
            Ok(child) => {
                self.running.spawn(watch_over(child, self.stop.subscribe(), self.warn));
            }
            Err(error) => (self.warn)(&error.to_string()),
        }
    }

    /// Waits until the commands have ended, each within its time, and ends them when `stop` comes to its end.
    pub async fn finish(mut self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = all_of(&mut self.running) => return,
            () = stop => {}
        }
        let _ = self.stop.send(());
        all_of(&mut self.running).await;
    }
}

async fn all_of(running: &mut JoinSet<()>) {
    while running.join_next().await.is_some() {}
}

#[expect(clippy::disallowed_methods, reason = "the owner of the user's notification command")]
fn start(command: &str, notification: &Notification, secrets: &KnownSecrets) -> std::io::Result<Child> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .env("TOWLINE_TEXT", &notification.text)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let json = secrets.json(&serde_json::to_string(notification)?);
    if let Some(mut stdin) = child.stdin.take() {
        // Beside us: a command that does not read must not hold up the goal. One that ends without reading has what it needs.
        std::thread::spawn(move || stdin.write_all(json.as_bytes()));
    }
    Ok(child)
}

async fn watch_over(mut child: Child, mut stop: watch::Receiver<()>, warn: fn(&str)) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut ended = spawn_blocking(move || child.wait());
    let why = tokio::select! {
        ended = &mut ended => return match ended {
            Ok(Ok(status)) if status.success() => {}
            Ok(Ok(status)) => warn(&status.to_string()),
            _ => warn("it was lost"),
        },
        () = sleep(LIMIT) => format!("it took longer than {} seconds and was ended", LIMIT.as_secs()),
        _ = stop.changed() => "it was still running and was ended".to_owned(),
    };
    if let Some(group) = group {
        // It may have ended by itself just now.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = ended.await;
    warn(&why);
}
