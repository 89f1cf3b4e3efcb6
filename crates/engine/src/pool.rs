//! The owner of an engine's goals: it knows which are driven, which wait for a slot and which for a time.
//!
//! A driver ends when its goal begins to wait. The goal then has no task, and its lease is not renewed: it lasts as long as
//! the engine lives, so that other processes know whom to ask. A slot, a time or an order starts the next driver.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use towline_core::GoalId;
use towline_store::GoalRecord;

use crate::clock::Alarm;
use crate::contained::contained_future;
use crate::driver::{Driver, Left, Order, Waiting};
use crate::engine::{Shared, TRACES};
use crate::error::EngineError;

/// How many notices may wait for the pool, which never waits itself.
pub(crate) const NOTICES_WAITING: usize = 64;

/// How a goal ended, or why it is not driven any more.
pub(crate) type Outcome = Result<GoalRecord, EngineError>;

/// What the pool must know.
pub(crate) enum Notice {
    /// A goal was claimed. Its outcome is sent when nothing happens any more without the operator.
    Begun { goal: GoalId, driver: Box<Driver>, outcome: oneshot::Sender<Outcome> },
    /// An order was sent to this goal.
    Ordered(GoalId),
    /// No goal is added any more: the pool ends with its last one.
    Close,
    /// The pool ends at once, as the death of its process would end it: what runs goes on under its supervisor.
    Leave,
    /// The driver of this goal is to end as the death of its process would end it.
    #[cfg(test)]
    Crash { goal: GoalId, done: oneshot::Sender<()> },
}

/// The way to a goal of this engine, whether it is driven or waits.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    pub(crate) goal: GoalId,
    pub(crate) inbox: mpsc::Sender<Box<Order>>,
    pub(crate) pool: mpsc::Sender<Notice>,
}

/// This engine does not look after the goal any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GoalGone;

impl Orders {
    pub(crate) async fn send(&self, order: Order) -> Result<(), GoalGone> {
        self.inbox.send(Box::new(order)).await.map_err(|_| GoalGone)?;
        // After the order: a goal that waits is resumed for it.
        self.pool.send(Notice::Ordered(self.goal)).await.map_err(|_| GoalGone)
    }
}

/// A goal of this engine.
struct Seat {
    outcome: oneshot::Sender<Outcome>,
    is: Is,
}

enum Is {
    Driven(
        #[cfg_attr(not(test), expect(dead_code, reason = "only tests end a driver from outside"))]
        AbortHandle,
    ),
    Waiting(Box<Waiting>),
    #[cfg(test)]
    Crashing(oneshot::Sender<()>),
}

/// The goals of an engine.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    notices: mpsc::Receiver<Notice>,
    alarm: Box<dyn Alarm>,
    removals: watch::Receiver<()>,
    goals: HashMap<GoalId, Seat>,
    drivers: JoinSet<Left>,
    driven: HashMap<Id, GoalId>,
    /// When waiting goals are to be resumed.
    due: BTreeSet<(Timestamp, GoalId)>,
    is_closing: bool,
    is_leaving: bool,
}

impl Pool {
    pub(crate) fn new(shared: Arc<Shared>, notices: mpsc::Receiver<Notice>, alarm: Box<dyn Alarm>) -> Self {
        Self {
            removals: shared.watch.removals(),
            shared,
            notices,
            alarm,
            goals: HashMap::new(),
            drivers: JoinSet::new(),
            driven: HashMap::new(),
            due: BTreeSet::new(),
            is_closing: false,
            is_leaving: false,
        }
    }

    /// Looks after the goals until the engine is closed and the last one is over.
    pub(crate) async fn run(mut self) {
        let slots = Arc::clone(&self.shared.slots);
        while !(self.is_leaving || self.is_closing && self.goals.is_empty()) {
            let next = self.due.first().map(|(at, _)| *at);
            tokio::select! {
                Some(notice) = self.notices.recv() => self.on_notice(notice),
                Some(left) = self.drivers.join_next_with_id() => self.on_left(left),
                () = slots.freed() => self.grant_slots(),
                () = self.alarm.ring(next) => self.resume_due(),
                Ok(()) = self.removals.changed() => self.end_if_state_is_gone(),
            }
        }
    }

    fn on_notice(&mut self, notice: Notice) {
        match notice {
            Notice::Begun { goal, driver, outcome } => {
                let task = self.spawn(goal, driver.run());
                self.goals.insert(goal, Seat { outcome, is: Is::Driven(task) });
            }
            Notice::Ordered(goal) => self.resume(goal),
            Notice::Close => self.is_closing = true,
            Notice::Leave => self.is_leaving = true,
            #[cfg(test)]
            Notice::Crash { goal, done } => self.crash(goal, done),
        }
    }

    fn spawn(&mut self, goal: GoalId, driver: impl Future<Output = Left> + Send + 'static) -> AbortHandle {
        let task = self.drivers.spawn(contained_future(driver));
        self.driven.insert(task.id(), goal);
        task
    }

    fn on_left(&mut self, left: Result<(Id, Left), JoinError>) {
        let (id, left) = match left {
            Ok((id, left)) => (id, Some(left)),
            Err(lost) => (lost.id(), None),
        };
        let Some(goal) = self.driven.remove(&id) else { return };
        match left {
            Some(Left::Waiting(waiting)) => self.on_waiting(goal, waiting),
            Some(Left::Over(outcome)) => self.on_over(goal, *outcome),
            None => {
                tracing::error!(target: TRACES, goal = goal.short(), "its driver panicked");
                self.on_over(goal, Err(EngineError::DriverLost { goal }));
            }
        }
    }

    fn on_waiting(&mut self, goal: GoalId, waiting: Box<Waiting>) {
        let Some(seat) = self.goals.get_mut(&goal) else { return };
        self.due.extend(waiting.wakes_at.map(|at| (at, goal)));
        let is_ordered = !waiting.orders.is_empty();
        seat.is = Is::Waiting(waiting);
        if is_ordered {
            self.resume(goal);
        }
    }

    fn on_over(&mut self, goal: GoalId, outcome: Outcome) {
        tracing::debug!(target: TRACES, goal = goal.short(), "the engine does not look after it any more");
        self.shared.set_driven(goal, None);
        if self.shared.rules.is_some() {
            self.shared.signals.note_end(goal, outcome.as_ref().err().map(ToString::to_string));
        }
        let Some(seat) = self.goals.remove(&goal) else { return };
        #[cfg(test)]
        if let Is::Crashing(done) = seat.is {
            let _ = done.send(());
            return;
        }
        // The process that started the goal may not wait for its end.
        let _ = seat.outcome.send(outcome);
    }

    /// Starts a driver for a goal that waits. One that is driven takes its orders by itself.
    fn resume(&mut self, goal: GoalId) {
        let Some(mut seat) = self.goals.remove(&goal) else { return };
        if let Is::Waiting(waiting) = seat.is {
            if let Some(at) = waiting.wakes_at {
                self.due.remove(&(at, goal));
            }
            seat.is = Is::Driven(self.spawn(goal, Driver::resume(Arc::clone(&self.shared), *waiting)));
        }
        self.goals.insert(goal, seat);
    }

    fn resume_due(&mut self) {
        let now = self.shared.clock.now();
        while let Some((at, goal)) = self.due.first().copied()
            && at <= now
        {
            self.due.pop_first();
            tracing::debug!(target: TRACES, goal = goal.short(), %at, "is due");
            self.resume(goal);
        }
    }

    /// Gives free slots to those who wait longest.
    fn grant_slots(&mut self) {
        while let Some((goal, slot)) = self.shared.slots.grant() {
            tracing::debug!(target: TRACES, goal = goal.short(), "gets a slot");
            // A goal that is over has left the queue; one that cannot take the order has another one before it.
            if let Some(driven) = self.shared.driven(goal)
                && driven.orders.inbox.try_send(Box::new(Order::Slot(slot))).is_ok()
            {
                self.resume(goal);
            }
        }
    }

    /// Nothing can be recorded without the state directory, so no goal can be resumed.
    fn end_if_state_is_gone(&mut self) {
        if self.shared.watch.check().is_ok() {
            return;
        }
        let waiting = self.goals.iter().filter(|(_, seat)| matches!(seat.is, Is::Waiting(_)));
        for goal in waiting.map(|(goal, _)| *goal).collect::<Vec<_>>() {
            if let Err(gone) = self.shared.watch.check() {
                self.on_over(goal, Err(gone));
            }
        }
    }

    #[cfg(test)]
    fn crash(&mut self, goal: GoalId, done: oneshot::Sender<()>) {
        let Some(mut seat) = self.goals.remove(&goal) else { return };
        if let Is::Driven(task) = &seat.is {
            task.abort();
            seat.is = Is::Crashing(done);
            self.goals.insert(goal, seat);
        } else {
            self.shared.set_driven(goal, None);
            let _ = done.send(());
        }
    }
}
