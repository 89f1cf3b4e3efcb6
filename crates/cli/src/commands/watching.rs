//! A person who watches a goal, whichever process runs it: what they see, and what they type.

use std::sync::Arc;

use tokio::time::{Interval, MissedTickBehavior};
use towline_app::{Notifier, Steering};
use towline_core::{Envelope, Event, GoalId, Phase};
use towline_store::{GoalRecord, Store};

use crate::commands::screen::{Change, Screen};
use crate::commands::typing::Typing;
use crate::output;
use crate::view::TICK;

/// The ways to reach the person who watches a goal.
pub(super) struct Watching {
    pub(super) screen: Screen,
    goal: GoalId,
    store: Arc<dyn Store>,
    typing: Typing,
    /// Only for the process that runs the goal.
    notifier: Option<Notifier>,
    ticks: Interval,
    is_watched: bool,
}

impl Watching {
    /// Nothing is shown yet.
    pub(super) fn new(
        screen: Screen,
        goal: GoalId,
        store: Arc<dyn Store>,
        steering: Steering,
        notifier: Option<Notifier>,
    ) -> Self {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let is_watched = matches!(screen, Screen::Story(_)) && output::is_terminal();
        let typing = Typing::new(goal, Arc::clone(&store), steering, screen.echo());
        Self { screen, goal, store, typing, notifier, ticks, is_watched }
    }

    /// Shows the state of a goal that existed before.
    pub(super) async fn begin(&mut self, before: Option<&GoalRecord>) {
        if let Some(before) = before {
            self.typing.follow(&before.state.phase).await;
            self.screen.look(&self.typing);
            self.screen.go_on(before);
            self.screen.recall(before, &self.store).await;
        }
        self.screen.know(self.goal, &self.store).await;
    }

    /// Shows an event.
    pub(super) async fn take(&mut self, event: &Envelope) {
        if let Event::PhaseChanged { phase } = &event.event {
            // Before it is shown: what is typed from then on is an answer.
            self.typing.follow(phase).await;
            self.screen.know(self.goal, &self.store).await;
            self.notify(phase).await;
        }
        self.screen.look(&self.typing);
        self.screen.show(event);
    }

    async fn notify(&mut self, phase: &Phase) {
        if let Some(notifier) = self.notifier.as_mut().filter(|notifier| notifier.is_wanted())
            && let Ok(record) = self.store.load(self.goal).await
        {
            notifier.entered(phase, &record.goal, &record.state);
        }
    }

    /// Waits until it is time to look at the screen and the keyboard; forever without a screen.
    pub(super) async fn tick(&mut self) {
        if !self.is_watched {
            std::future::pending::<()>().await;
        }
        self.ticks.tick().await;
    }

    /// Draws what has changed, and passes on what was typed.
    pub(super) async fn look(&mut self) {
        if self.screen.look(&self.typing) == Change::BackInFront {
            self.screen.ask_again(self.goal);
        }
        // Without a view there is nothing to type into.
        while let Some(typed) = self.typing.line() {
            if let Err(wrong) = self.typing.send(&typed).await {
                self.screen.print(&output::brief(&wrong));
            }
        }
    }

    /// Rests until the shell lets us continue, with the terminal as it was.
    pub(super) fn suspend(&mut self) {
        self.typing.release();
        self.screen.suspend();
    }

    /// Leaves the screen for good, and returns the notifier.
    pub(super) fn finish(self) -> Option<Notifier> {
        self.screen.finish();
        self.notifier
    }
}
