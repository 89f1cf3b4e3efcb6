//! Runs the user's own command when a goal needs them, waits for a quota or has ended.
//!
//! The command gets one JSON object on standard input and one line in `TOWLINE_TEXT`, and what it prints goes nowhere.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;
use towline_api::{KnownSecrets, Notification};
use towline_config::{LayerName, NotifySettings};
use towline_core::{About, Ask, Goal, GoalState, Phase, QuestionNo, StopWhy, Stopping};
use towline_engine::{Clock, SystemClock};

use crate::context::Context;
use crate::error::Error;
use crate::holds::time_of_day;

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The key of the command in the configuration.
pub const NOTIFY_COMMAND: &str = "notify.command";

/// The command of the user. It is read from the user's configuration file alone: a repository's file may be anybody's. A
/// configuration that cannot be read has none.
fn notify_command(context: &Context) -> Option<String> {
    let loaded = context.operators().ok()?;
    let is_users = matches!(loaded.sources.get(NOTIFY_COMMAND), Some(LayerName::User(_)));
    loaded.config.notify.all.command.filter(|_| is_users)
}

/// The notification for entering this phase; none if its question has been closed since.
pub fn notification(
    goal: &Goal,
    state: &GoalState,
    phase: &Phase,
    secrets: &KnownSecrets,
    now: Timestamp,
) -> Option<Notification> {
    let shown = |text: &str| secrets.brief(text);
    let title = shown(&goal.title);
    let name = format!("{title} ({})", goal.id.short());
    let time = |at: Timestamp| time_of_day(at, now, &TimeZone::system());
    let question = match phase {
        Phase::Blocked { question, .. } => {
            Some(state.question(*question).filter(|question| question.is_open())?)
        }
        _ => state.open_question(),
    };
    let reason = phase.reason().map(|reason| shown(&reason));
    let why = shown(&state.why(phase));
    let (kind, text) = match phase {
        Phase::Blocked { .. } => {
            let asked = question.map(|question| shown(&in_one_line(&question.ask))).unwrap_or_default();
            let by = phase.until().map(|until| format!(" by {}", time(until))).unwrap_or_default();
            ("needs_you", format!("{name} needs an answer{by}: {asked}"))
        }
        Phase::Escalated { .. } => ("needs_you", format!("{name} needs you{why}")),
        Phase::Limited { until, .. } => {
            ("limited", format!("{name} waits for the provider's quota until {}", time(*until)))
        }
        Phase::Done => ("done", format!("{name} is done")),
        Phase::Unproven => ("unproven", format!("{name} ended, and has no checks to prove it")),
        Phase::Failed { .. } => ("failed", format!("{name} failed{why}")),
        Phase::Stopping(Stopping { why: StopWhy::SharedBudget, .. }) => {
            ("budget", format!("{name} waits: a budget that goals share is spent"))
        }
        _ => return None,
    };
    let question = question.map(|question| shown(&question.ask.title()));
    Some(Notification {
        kind: kind.to_owned(),
        text,
        goal: goal.id.to_string(),
        title,
        repository: goal.workspace.repository.clone(),
        phase: phase.name().to_owned(),
        reason,
        until: phase.until().map(|until| until.to_string()),
        question: question.filter(|_| kind == "needs_you"),
        origin: (&goal.origin).into(),
        metadata: goal.metadata.clone(),
    })
}

/// What is asked, with the suggested answers of a question in one part.
fn in_one_line(ask: &Ask) -> String {
    let labels: Vec<&str> = match &ask.about {
        About::Choice { parts } => match parts.as_slice() {
            [part] => part.options.iter().map(|option| option.label.trim()).collect(),
            _ => Vec::new(),
        },
        About::Permission { .. } => Vec::new(),
    };
    match labels.as_slice() {
        [] => ask.title(),
        labels => format!("{} ({})", ask.title(), labels.join(", ")),
    }
}

/// The variable without which webhooks cannot be signed: it is named in the configuration, and not set.
pub fn missing_webhook_secret<'a>(context: &Context, settings: &'a NotifySettings) -> Option<&'a str> {
    let mut channels = std::iter::once(&settings.all).chain(settings.channels.values());
    let name = settings.secret_env.as_deref().filter(|name| context.variable(name).is_none())?;
    channels.any(|channel| channel.webhook.is_some()).then_some(name)
}

/// What to do about a variable that is not set.
pub(crate) fn way_to_set(context: &Context, name: &str) -> String {
    let file = context.environment_file().map(|path| path.display().to_string());
    let file = file.map(|file| format!(" or in {file}")).unwrap_or_default();
    format!("set {name} in the environment of the server{file}, or take `secret_env` out of [notify]")
}

/// Refuses to serve without the secret that webhooks are signed with: a receiver could not know who sent them.
pub fn require_webhook_secret(context: &Context, settings: &NotifySettings) -> Result<(), Error> {
    match missing_webhook_secret(context, settings) {
        Some(name) => Err(Error::usage(format!("webhooks cannot be signed: {name} is not set"))
            .hint(way_to_set(context, name))),
        None => Ok(()),
    }
}

/// Runs the user's command, beside everything else.
pub struct Notifier {
    /// None when the user wants no notifications.
    command: Option<String>,
    secrets: KnownSecrets,
    /// Called with the reason if a command failed.
    warn: fn(&str),
    /// The question that was announced last. Its phase changes again when the agent that asks is gone.
    announced: Option<QuestionNo>,
    running: JoinSet<()>,
    /// Ends the commands that are running.
    stop: watch::Sender<()>,
}

impl Notifier {
    /// The notifier of a goal.
    pub fn of(context: &Context, warn: fn(&str)) -> Self {
        let command = notify_command(context);
        let secrets = context.secrets.clone();
        let (running, stop) = (JoinSet::new(), watch::Sender::new(()));
        Self { command, secrets, warn, announced: None, running, stop }
    }

    /// Whether anybody is to be notified.
    pub const fn is_wanted(&self) -> bool {
        self.command.is_some()
    }

    /// Notifies the user if this phase is worth it.
    pub fn entered(&mut self, phase: &Phase, goal: &Goal, state: &GoalState) {
        let Some(command) = &self.command else { return };
        let now = SystemClock.now();
        let Some(notification) = notification(goal, state, phase, &self.secrets, now) else { return };
        if let Phase::Blocked { question, .. } = phase
            && self.announced.replace(*question) == Some(*question)
        {
            return;
        }
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

/// Runs the user's command to its end, within its time.
pub async fn run_notify_command(command: &str, notification: &Notification, secrets: &KnownSecrets) {
    // What the command does with it is the user's business.
    if let Ok(child) = start(command, notification, secrets) {
        let (_stop, stopped) = watch::channel(());
        watch_over(child, stopped, |_| {}).await;
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
