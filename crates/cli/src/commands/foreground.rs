//! Driving one goal in the foreground: shows it, listens for Ctrl-C, and ends with the goal's exit code.

use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};
use towline_agent::AgentSettings;
use towline_core::Seq;
use towline_engine::{Clock, Engine, Handle, Home, SystemClock};
use towline_store::GoalRecord;

use crate::args::RunFormat;
use crate::context::Context;
use crate::failure::{Failure, exit_code_of};
use crate::output;
use crate::report::GoalReport;
use crate::view::{Live, Paint, ending, next_steps};

/// Shows a goal until it is settled.
pub(crate) struct Foreground<'a> {
    /// This process.
    pub(crate) context: &'a Context,
    /// Where the goal is kept.
    pub(crate) home: &'a Home,
    /// The first agent's settings, for the way out when it is not signed in.
    pub(crate) settings: Option<&'a AgentSettings>,
    /// What is printed.
    pub(crate) format: RunFormat,
}

impl Foreground<'_> {
    /// Follows the goal to its end; gives what has become of it.
    pub(crate) async fn follow(
        &self,
        engine: Engine,
        handle: Handle,
        after: Seq,
    ) -> Result<(GoalRecord, ExitCode), Failure> {
        let mut interrupts = Interrupts::listen()?;
        let mut screen = Screen::new(self.context, self.format);
        let mut events = handle.events(after);
        loop {
            tokio::select! {
                event = events.next() => match event? {
                    Some(event) => screen.show(&event),
                    None => break,
                },
                insistence = interrupts.next() => match insistence {
                    Insistence::Asks => {
                        screen.print("stopping; press Ctrl-C again to end everything at once");
                        handle.cancel().await;
                    }
                    Insistence::Insists => handle.kill().await,
                },
            }
        }
        let record = handle.result().await;
        engine.close().await;
        let record = record?;
        screen.finish();
        self.conclude(&record);
        let code = exit_code_of(&record.state.phase);
        Ok((record, code))
    }

    fn conclude(&self, record: &GoalRecord) {
        if self.format.json {
            output::print_json(&GoalReport::of(record, self.home, SystemClock.now()));
        }
        if self.format.json || self.format.events {
            return;
        }
        let paint = Paint::for_stdout(self.context);
        output::print(ending(paint, record));
        for (what, command) in next_steps(record, self.settings) {
            output::print(format_args!("  {:<20} {command}", format!("{what}:")));
        }
    }
}

/// Where the events go.
enum Screen {
    Story(Box<Live>),
    Events,
    Silent,
}

impl Screen {
    fn new(context: &Context, format: RunFormat) -> Self {
        match format {
            RunFormat { events: true, .. } => Self::Events,
            RunFormat { json: true, .. } => Self::Silent,
            _ => Self::Story(Box::new(Live::new(Paint::for_stdout(context)))),
        }
    }

    fn show(&mut self, event: &towline_core::Envelope) {
        match self {
            Self::Story(live) => live.show(event),
            Self::Events => output::print_json_line(event),
            Self::Silent => {}
        }
    }

    fn print(&self, text: &str) {
        match self {
            Self::Story(live) => live.print(text),
            Self::Events | Self::Silent => output::say(format_args!("{text}")),
        }
    }

    fn finish(self) {
        if let Self::Story(live) = self {
            live.finish();
        }
    }
}

/// How much a person wants the run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Insistence {
    Asks,
    Insists,
}

/// Signals, translated once: the first asks, the second insists.
struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    /// Listened to so that it does not end us: a terminal that goes away, as when a connection drops, is no wish to
    /// stop.
    hangup: Signal,
    asked: bool,
}

impl Interrupts {
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::internal(format!("cannot listen for signals: {error}")))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            asked: false,
        })
    }

    async fn next(&mut self) -> Insistence {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => break,
                _ = self.terminate.recv() => break,
                _ = self.hangup.recv() => {}
            }
        }
        if std::mem::replace(&mut self.asked, true) { Insistence::Insists } else { Insistence::Asks }
    }
}
