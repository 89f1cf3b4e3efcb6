//! A person or a program that watches a goal, whichever process runs it: what is shown, and what is typed.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};
use towline_app::{Context, Holds, Notifier, State, Steering, hold_report};
use towline_core::{Envelope, Event, GoalId, HoldReason, Phase, Seq};
use towline_engine::{Clock, Home, LiveMessage, SystemClock};
use towline_store::{GoalRecord, Store};
use towline_terminal::{Place, how_to_answer};

use crate::args::RunFormat;
use crate::commands::foreground::suspend;
use crate::commands::typing::{Echo, Typing};
use crate::live::{LastLine, Live, TICK};
use crate::output::{self, Layout};

/// How often a view looks why its goal waits in the queue.
const HOLD_PAUSE: Duration = Duration::from_secs(2);

/// How many events of a goal that is resumed are searched for tools that still run.
const RECALLED: usize = 1_000;

/// The ways to get the attention of the person who watches a goal.
pub(super) struct Watching {
    goal: GoalId,
    store: Arc<dyn Store>,
    format: RunFormat,
    /// What a person sees; none if the output is for a program.
    live: Option<Live>,
    typing: Typing,
    /// Only for the process that runs the goal.
    notifier: Option<Notifier>,
    ticks: Interval,
    context: Context,
    home: Home,
    /// When to look next why the goal waits in the queue.
    look_at_hold: Option<Instant>,
}

impl Watching {
    /// Nothing is shown yet.
    pub(super) fn new(
        context: &Context,
        home: &Home,
        format: RunFormat,
        goal: GoalId,
        store: Arc<dyn Store>,
        steering: Steering,
        notifier: Option<Notifier>,
    ) -> Self {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let live = (!format.json && !format.events).then(|| Live::new(context, home.clone()));
        let has_block = live.as_ref().is_some_and(Live::has_block);
        let echo = if has_block { Echo::View } else { Echo::Terminal };
        let typing = Typing::new(goal, Arc::clone(&store), steering, echo);
        let (context, home) = (context.clone(), home.clone());
        Self { goal, store, format, live, typing, notifier, ticks, context, home, look_at_hold: None }
    }

    /// Shows the state of a goal that existed before. What cannot be read is not shown.
    pub(super) async fn begin(&mut self, before: Option<&GoalRecord>) {
        if let Some(before) = before {
            self.typing.follow(&before.state.phase).await;
            self.look_at_screen();
            if let Some(live) = &mut self.live {
                live.print(&format!("goal {}  {}", self.goal.short(), output::brief(&before.goal.title)));
                let place = if self.notifier.is_some() { Place::Here } else { Place::Elsewhere };
                live.go_on(before, place);
                let after = Seq(before.last_seq.0.saturating_sub(RECALLED as u64));
                live.recall(&self.store.events(self.goal, after, RECALLED).await.unwrap_or_default());
            } else {
                print_open_question(self.goal, &before.state.phase);
            }
        }
        self.know().await;
    }

    /// Shows an event.
    pub(super) async fn take(&mut self, event: &Envelope) {
        let phase = match &event.event {
            Event::PhaseChanged { phase } => Some(phase),
            _ => None,
        };
        if let Some(phase) = phase {
            // Before it is shown: what is typed from then on is an answer.
            self.typing.follow(phase).await;
            self.know().await;
            self.notify(phase).await;
        }
        self.look_at_screen();
        if let Some(live) = &mut self.live {
            return live.show(event);
        }
        if self.format.events {
            output::print_json(Layout::Line, event);
        }
        phase.into_iter().for_each(|phase| print_open_question(self.goal, phase));
    }

    /// Takes over what is stored about the goal, where that is shown. What cannot be read is not shown.
    async fn know(&mut self) {
        if let Some(live) = self.live.as_mut().filter(|live| live.has_block())
            && let Ok(record) = self.store.load(self.goal).await
        {
            live.know(&record);
            self.look_at_hold = (record.state.phase == Phase::Queued).then(Instant::now);
            self.know_hold().await;
        }
    }

    /// Takes over why the goal waits in the queue: what it waits for changes without an event of its own.
    async fn know_hold(&mut self) {
        if self.look_at_hold.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.look_at_hold = Some(Instant::now() + HOLD_PAUSE);
        let Ok(record) = self.store.load(self.goal).await else { return };
        let state = State { home: self.home.clone(), store: Arc::clone(&self.store) };
        let now = SystemClock.now();
        let holds = Holds::of_records(&self.context, &state, &[record], now).await.unwrap_or_default();
        // A goal of an engine of its own needs no server.
        let waits = holds.of(self.goal).filter(|reason| **reason != HoldReason::NoServer);
        let why = waits.map(|reason| hold_report(reason, now).text);
        self.live.iter_mut().for_each(|live| live.hold(why.clone()));
    }

    async fn notify(&mut self, phase: &Phase) {
        if let Some(notifier) = self.notifier.as_mut().filter(|notifier| notifier.is_wanted())
            && let Ok(record) = self.store.load(self.goal).await
        {
            notifier.entered(phase, &record.goal, &record.state);
        }
    }

    /// Shows the message that the agent is writing.
    pub(super) fn write(&mut self, message: LiveMessage) {
        if let Some(live) = &mut self.live {
            live.write(message.text);
        }
    }

    /// Prints a line beside the events.
    pub(super) fn print(&mut self, text: &str) {
        match &mut self.live {
            Some(live) => live.print(text),
            None => output::eprint(format_args!("{text}")),
        }
    }

    /// Waits until it is time to look at the screen and the keyboard; forever without a screen.
    pub(super) async fn tick(&mut self) {
        if self.live.is_none() || !output::is_terminal() {
            std::future::pending::<()>().await;
        }
        self.ticks.tick().await;
    }

    /// Draws what has changed, and passes on what was typed.
    pub(super) async fn look(&mut self) {
        self.know_hold().await;
        let is_back = self.look_at_screen();
        if let Some(live) = self.live.as_mut().filter(|_| is_back) {
            live.ask_again(self.goal);
        }
        // Without a view there is nothing to type into.
        while let Some(typed) = self.typing.line() {
            if let Err(wrong) = self.typing.send(&typed).await {
                self.print(&output::brief(&wrong));
            }
        }
    }

    /// The next line that was typed, for whoever asks something else than the agent does.
    pub(super) fn typed(&mut self) -> Option<String> {
        self.look_at_screen();
        Some(self.typing.line()?.text.trim().to_lowercase())
    }

    /// Takes note of whose the screen is. Returns whether it is ours again, with who knows what on it.
    fn look_at_screen(&mut self) -> bool {
        let Some(live) = &mut self.live else { return false };
        let now = if output::is_in_front() { LastLine::Lives } else { LastLine::Foreign };
        let before = live.look(now, self.typing.prompt());
        (before, now) == (LastLine::Foreign, LastLine::Lives)
    }

    /// Rests until the shell lets us continue, with the terminal as it was.
    pub(super) fn suspend(&mut self) {
        self.typing.release();
        self.live.iter_mut().for_each(Live::step_aside);
        suspend();
    }

    /// Leaves the screen for good, and returns the notifier.
    pub(super) fn finish(mut self) -> Option<Notifier> {
        self.live.iter_mut().for_each(Live::step_aside);
        self.notifier
    }
}

/// Prints the question that a run waits for, for output without a view.
fn print_open_question(goal: GoalId, phase: &Phase) {
    if let Phase::Blocked { .. } = phase {
        let command = how_to_answer(goal, None);
        output::eprint(format_args!("waiting for an answer; see `towline questions`, then: {command}"));
    }
}
