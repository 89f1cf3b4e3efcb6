//! Driving one goal in the foreground: shows it, listens for Ctrl-C, and ends with the goal's exit code.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{getpid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::Instant;
use towline_agent::AgentSettings;
use towline_app::report::goal_report;
use towline_app::{Context, Error, NOTIFY_COMMAND, Notifier, State, Steering, next_steps, start_goal};
use towline_core::{AgentName, Event, Goal, PauseReason, Seq};
use towline_engine::{AgentInTrouble, Clock, EngineError, Handle, Home, StoreTrouble, SystemClock};
use towline_store::GoalRecord;
use towline_terminal::clock_time;
use towline_view::{ending, note_unprotected, step_lines, trust_line};

use crate::args::RunFormat;
use crate::commands::watching::Watching;
use crate::failure::exit_code_of;
use crate::output::{self, Layout};

/// The time that an agent or a check has to end after SIGTERM before it is killed. A machine or a container that shuts down waits
/// about ten seconds.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// The time that notification commands have after the end of a run that a signal has ended.
const NOTIFY_PATIENCE: Duration = Duration::from_secs(1);

/// What a foreground run begins with.
pub(crate) enum Beginning {
    /// A goal that does not exist yet.
    New(Box<Goal>),
    /// A goal that exists.
    Existing {
        record: Box<GoalRecord>,
        /// What the operator wants of it, in this order: all of it comes true, or nothing.
        requests: Vec<Event>,
    },
}

impl Beginning {
    fn goal(&self) -> &Goal {
        match self {
            Self::New(goal) => goal,
            Self::Existing { record, .. } => &record.goal,
        }
    }
}

/// Drives one goal with an engine of its own and shows it until it is settled.
pub(crate) struct Foreground<'a> {
    pub(crate) context: &'a Context,
    /// The state directory and store of the goal.
    pub(crate) state: State,
    /// The agents that the goal may use, for what is printed about the first.
    pub(crate) agents: BTreeMap<AgentName, AgentSettings>,
    /// What is printed.
    pub(crate) format: RunFormat,
}

impl Foreground<'_> {
    /// Drives the goal to its end, and returns it with the exit code.
    pub(crate) async fn drive(self, beginning: Beginning) -> Result<(GoalRecord, ExitCode), Error> {
        // Before anything is started: a Ctrl-C that comes early must not leave it behind.
        let mut interrupts = Interrupts::listen()?;
        let notifier = Notifier::of(self.context, not_notified);
        let first = beginning.goal().agents.first().and_then(|name| self.agents.get(name)).cloned();
        let (home, store) = (self.state.home.clone(), self.state.store.clone());
        let (engine, handle, before) = match beginning {
            Beginning::New(goal) => {
                let engine = self.context.engine_for_draft(self.state)?;
                let handle = start_goal(&engine, &home, &store, *goal).await?;
                (engine, handle, None)
            }
            Beginning::Existing { record, requests } => {
                let engine = self.context.engine(self.state)?;
                let handle = engine.resume(record.goal.id, requests).await?;
                (engine, handle, Some(record))
            }
        };
        let steering = Steering::Own(handle.steerer());
        let (context, format, stored) = (self.context, self.format, Arc::clone(&store));
        let mut watching = Watching::new(context, &home, format, handle.id, stored, steering, Some(notifier));
        let after = before.as_ref().map_or(Seq(0), |before| before.last_seq);
        watching.begin(before.as_deref()).await;
        let trouble = engine.store_trouble();
        let shown = follow(&handle, after, &mut interrupts, &mut watching, trouble).await;
        if shown.is_err() {
            // The events cannot be shown any more, so the goal is ended.
            handle.cancel().await;
        }
        let record = finish(handle, &mut interrupts).await;
        engine.close().await;
        if matches!(record, Err(EngineError::StopUnrecorded { .. })) {
            // The last one to drop the store waits for its writer, which may wait for a lock.
            std::mem::forget(Arc::clone(&store));
        }
        if let Some(notifier) = watching.finish() {
            notifier.finish(interrupts.end_of_patience()).await;
        }
        shown?;
        let record = record?;
        conclude(self.context, &home, self.format, &record, first.as_ref());
        let code = exit_code_of(&record.state.phase);
        Ok((record, code))
    }
}

fn not_notified(why: &str) {
    output::eprint(format_args!("warning: the command in `{NOTIFY_COMMAND}` failed: {why}"));
}

/// Shows events and passes on what the person wants, until nothing happens any more.
async fn follow(
    handle: &Handle,
    after: Seq,
    interrupts: &mut Interrupts,
    watching: &mut Watching,
    mut trouble: watch::Receiver<Option<StoreTrouble>>,
) -> Result<(), Error> {
    let (mut events, mut live) = (handle.events(after), handle.live());
    let mut kill_at = None;
    loop {
        tokio::select! {
            event = events.next() => match event? {
                Some(event) => watching.take(&event).await,
                None => return Ok(()),
            },
            Some(message) = live.next() => watching.write(message),
            Ok(()) = trouble.changed() => {
                // Its end is in the log.
                let trouble = trouble.borrow_and_update().clone();
                if let Some(StoreTrouble { error, until, agent }) = trouble {
                    let until = clock_time(until, SystemClock.now());
                    let agent = match agent {
                        AgentInTrouble::KeepsRunning => "the agent keeps running",
                        AgentInTrouble::Ended => "the agent was ended",
                    };
                    watching.print(&format!("warning: {error}; trying again until {until}, {agent}"));
                }
            },
            () = watching.tick() => watching.look().await,
            () = tokio::time::sleep_until(kill_at.unwrap_or_else(Instant::now)), if kill_at.is_some() => {
                kill_at = None;
                handle.kill().await;
            },
            interrupt = interrupts.next() => match interrupt {
                Interrupt::Stop => {
                    watching.print(&format!(
                        "stopping; press Ctrl-C again to end everything at once (another time, to pause: towline pause {})",
                        handle.id.short()
                    ));
                    handle.cancel().await;
                }
                Interrupt::Pause => {
                    kill_at.get_or_insert(Instant::now() + SHUTDOWN_PATIENCE);
                    handle.pause(PauseReason::Shutdown).await;
                }
                Interrupt::Kill => handle.kill().await,
                Interrupt::Suspend => watching.suspend(),
            },
        }
    }
}

/// Waits for the goal's driver to end. A person who insists is still heard.
async fn finish(handle: Handle, interrupts: &mut Interrupts) -> Result<GoalRecord, EngineError> {
    let steerer = handle.steerer();
    let result = handle.result();
    tokio::pin!(result);
    loop {
        tokio::select! {
            record = &mut result => return record,
            () = interrupts.stop() => steerer.kill().await,
        }
    }
}

/// Prints how the goal ended, and what can be done now.
pub(super) fn conclude(
    context: &Context,
    home: &Home,
    format: RunFormat,
    record: &GoalRecord,
    first: Option<&AgentSettings>,
) {
    if format.json {
        output::print_json(Layout::Pretty, &goal_report(record, home, SystemClock.now()));
    }
    if format.json || format.events {
        return;
    }
    let paint = output::paint(context);
    let mut lines = ending(paint, record, SystemClock.now());
    lines.extend(trust_line(record));
    lines.extend(step_lines(&next_steps(record, home, first)));
    lines.extend(note_unprotected(&record.goal));
    lines.iter().flat_map(|line| output::fitted(line)).for_each(output::print);
}

/// What a person wants of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// That it ends.
    Stop,
    /// That it is interrupted: the machine may be about to shut down.
    Pause,
    /// That it ends at once.
    Kill,
    /// That it rests until they let it go on.
    Suspend,
}

/// Suspends this process, as if Ctrl-Z had not been caught. This signal has no effect if there is no shell to continue
/// the process.
pub(super) fn suspend() {
    let _ = kill_process(getpid(), rustix::process::Signal::TTOU);
}

/// Signals, translated once: the first asks, the second insists.
pub(super) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    /// Caught so that the screen is in order before we rest.
    suspend: Signal,
    /// Caught so that it does not end this process: a terminal that goes away, for example with a lost connection, is no
    /// request to stop.
    hangup: Signal,
    /// Listened to for the same reason: whoever is put into the background between a look at the terminal and reading
    /// it would be stopped.
    background: Signal,
    asked: bool,
}

impl Interrupts {
    /// Listens from now on.
    pub(super) fn listen() -> Result<Self, Error> {
        let listen = |kind| {
            signal(kind).map_err(|error| Error::internal(format!("cannot listen for signals: {error}")))
        };
        let by_number = |signal: rustix::process::Signal| listen(SignalKind::from_raw(signal.as_raw()));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            suspend: by_number(rustix::process::Signal::TSTP)?,
            hangup: listen(SignalKind::hangup())?,
            background: by_number(rustix::process::Signal::TTIN)?,
            asked: false,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> Interrupt {
        let interrupt = loop {
            tokio::select! {
                _ = self.interrupt.recv() => break Interrupt::Stop,
                _ = self.terminate.recv() => break Interrupt::Pause,
                _ = self.suspend.recv() => return Interrupt::Suspend,
                _ = self.hangup.recv() => {}
                _ = self.background.recv() => {}
            }
        };
        if std::mem::replace(&mut self.asked, true) { Interrupt::Kill } else { interrupt }
    }

    /// Waits for the next one that is about stopping. This process is suspended as often as a person wants.
    pub(super) async fn stop(&mut self) {
        while self.next().await == Interrupt::Suspend {
            suspend();
        }
    }

    /// Waits for the next signal to stop; only for a moment if there was one before.
    async fn end_of_patience(&mut self) {
        let was_asked = self.asked;
        tokio::select! {
            () = self.stop() => {}
            () = tokio::time::sleep(NOTIFY_PATIENCE), if was_asked => {}
        }
    }
}
