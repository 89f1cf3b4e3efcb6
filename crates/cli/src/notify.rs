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
use towline_app::{NOTIFY_COMMAND, notification, notify_command};
use towline_core::{Goal, GoalState, Phase};

use crate::context::Context;
use crate::output;

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Runs the user's command, beside everything else.
pub(crate) struct Notifier {
    /// None when the user wants no notifications.
    command: Option<String>,
    running: JoinSet<()>,
    /// Ends the commands that are running.
    stop: watch::Sender<()>,
}

impl Notifier {
    /// The notifier of a goal in this repository.
    pub(crate) fn of(context: &Context, repository: &str) -> Self {
        let command = notify_command(context, Path::new(repository));
        Self { command, running: JoinSet::new(), stop: watch::Sender::new(()) }
    }

    /// Whether anybody is to be notified.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.command.is_some()
    }

    /// Notifies the user if this phase is worth it.
    pub(crate) fn entered(&mut self, phase: &Phase, goal: &Goal, state: &GoalState) {
        let Some(command) = &self.command else { return };
        let Some(notification) = notification(goal, state, phase, output::brief) else { return };
        match start(command, &notification) {
            Ok(child) => {
                self.running.spawn(watch_over(child, self.stop.subscribe()));
            }
            Err(error) => warn(&error.to_string()),
        }
    }

    /// Waits until the commands have ended, each within its time, and ends them when `stop` comes to its end.
    pub(crate) async fn finish(mut self, stop: impl Future<Output = ()>) {
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
fn start(command: &str, notification: &Notification) -> std::io::Result<Child> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .env("TOWLINE_TEXT", &notification.text)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let json = serde_json::to_vec(notification)?;
    if let Some(mut stdin) = child.stdin.take() {
        // Beside us: a command that does not read must not hold up the goal. One that ends without reading has what it needs.
        std::thread::spawn(move || stdin.write_all(&json));
    }
    Ok(child)
}

async fn watch_over(mut child: Child, mut stop: watch::Receiver<()>) {
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

fn warn(why: &str) {
    output::say(format_args!("warning: the command in `{NOTIFY_COMMAND}` failed: {why}"));
}
