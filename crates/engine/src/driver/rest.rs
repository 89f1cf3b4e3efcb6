//! How a driver ends when its goal begins to wait, and how the next one continues.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;
use towline_core::{Event, PauseReason, Phase};
use towline_store::{GoalRecord, Lease, StoreError};

use super::clock_watch::ClockWatch;
use super::storing::unanswered;
use super::{Driver, Order, Place};
use crate::engine::{LEASE, RESTING, Shared};
use crate::error::EngineError;
use crate::feed::Feed;
use crate::news::StopLevel;
use crate::pool::Outcome;

/// The pause before a store that fails for now is asked again.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// How long running work may take to end when the driver cannot go on. Its processes are gone long before: a supervisor on a full
/// disk waits to write its record. SIGTERM has eight seconds in all.
const ABANDON_PATIENCE: Duration = Duration::from_secs(4);

/// How a driver left its goal.
pub(crate) enum Left {
    /// The goal waits.
    Waiting(Box<Waiting>),
    /// Nothing happens any more without the operator, or the goal cannot be driven.
    Over(Box<Outcome>),
}

impl Left {
    fn over(outcome: Outcome) -> Self {
        Self::Over(Box::new(outcome))
    }
}

/// A goal that waits. Nothing runs for it, so this is all that the next driver cannot find in the store.
pub(crate) struct Waiting {
    /// When it is to be resumed, if a time is what it waits for.
    pub(crate) wakes_at: Option<Timestamp>,
    /// What the operator wants of it meanwhile.
    pub(crate) orders: mpsc::Receiver<Box<Order>>,
    lease: Lease,
    feed: Feed,
    clock: ClockWatch,
}

impl Driver {
    /// Drives the goal until it waits, or nothing happens any more without the operator.
    pub(crate) async fn run(mut self) -> Left {
        let outcome = loop {
            match self.drive_and_publish().await {
                Err(unrecorded @ EngineError::StopUnrecorded { .. }) => {
                    if let Err(error) = self.record_stop(unrecorded).await {
                        break Err(error);
                    }
                }
                outcome => break outcome,
            }
        };
        match &outcome {
            Ok(()) => self.trace("driver ends", self.state.phase.name()),
            Err(error) => self.trace("driver fails", error),
        }
        match &outcome {
            Ok(()) if !self.state.phase.is_settled() && self.shared.rules.is_none() => {
                return self.rest().await;
            }
            // Another engine drives the goal now, or may do so soon, and adopts what runs.
            Err(
                EngineError::Store(StoreError::Fenced { .. })
                | EngineError::LeaseExpired { .. }
                | EngineError::TakenOver
                | EngineError::StopUnrecorded { .. },
            )
            | Ok(()) => {}
            Err(_) => self.abandon().await,
        }
        self.shared.slots.withdraw(self.place());
        let (goal, store) = (self.goal.id, Arc::clone(&self.shared.store));
        if !matches!(outcome, Err(EngineError::StopUnrecorded { .. })) {
            self.leave().await;
        }
        Left::over(match outcome {
            Ok(()) => store.load(goal).await.map_err(EngineError::from),
            Err(error) => Err(error),
        })
    }

    /// Continues with a goal that waited.
    pub(crate) async fn resume(shared: Arc<Shared>, waiting: Waiting) -> Left {
        match Self::try_to_resume(shared, waiting).await {
            Ok(driver) => driver.run().await,
            Err(error) => Left::over(Err(error)),
        }
    }

    async fn try_to_resume(shared: Arc<Shared>, waiting: Waiting) -> Result<Self, EngineError> {
        let Waiting { mut orders, lease, feed, clock, .. } = waiting;
        shared.watch.check()?;
        let mut deferred = VecDeque::new();
        let (lease, record) = tokio::select! {
            biased;
            renewed = renewed(&shared, &lease) => renewed?,
            () = insisted(&mut orders, &mut deferred) => return Err(unanswered(&shared).into()),
        };
        let read = shared.project_of(&record.goal).await?;
        let new = Self::new(shared, record, read, lease, orders, feed);
        let mut driver = Self { clock, deferred, project: None, ..new };
        driver.trace("resumed", driver.state.phase.name());
        if driver.models != driver.state.configured_models {
            driver.record_claim(None).await?;
        }
        Ok(driver)
    }

    /// Leaves a goal that waits. Its lease is not renewed any more, but names this engine as long as it lives.
    async fn rest(self) -> Left {
        let lease = match self.shared.store.renew(&self.lease, RESTING).await {
            Ok(lease) => lease,
            // It expires. The next resume notices if another engine has the goal.
            Err(error) if error.is_passing() => self.lease,
            Err(error) => return Left::over(Err(error.into())),
        };
        let wakes_at = self.state.wakes_at(self.goal.id);
        let Self { orders, feed, clock, .. } = self;
        Left::Waiting(Box::new(Waiting { wakes_at, orders, lease, feed, clock }))
    }

    /// Gives the goal back.
    pub(crate) async fn leave(self) {
        // A lease that cannot be given back runs out by itself.
        let _ = self.shared.store.release(&self.lease).await;
    }

    /// Ends everything that runs, because nothing can be recorded any more. Its output is on disk for the next driver.
    pub(super) async fn abandon(&mut self) {
        self.raise_stop(StopLevel::Kill);
        self.stop_baseline(StopLevel::Kill);
        let deadline = tokio::time::sleep(ABANDON_PATIENCE);
        tokio::pin!(deadline);
        while !self.work.is_empty() {
            tokio::select! {
                _ = self.work.join_next() => {}
                // Read and dropped, so that executors can get to their end.
                Some(batch) = self.news.recv() => drop(batch.recorded.map(|recorded| recorded.send(()))),
                Some(order) = self.orders.recv() => self.defer(order),
                () = &mut deadline => return,
            }
        }
    }

    /// Continues a goal whose attempt had been interrupted before it was resumed: whoever resumed it knows of no pause.
    pub(super) async fn continue_cut_off(&mut self) -> Result<(), EngineError> {
        let reason = PauseReason::Shutdown;
        if self.was_cut_off && self.state.phase == (Phase::Paused { reason }) {
            self.take_in(vec![self.operator(Event::ResumeRequested)]).await?;
        }
        Ok(())
    }

    /// Whether nothing runs for the goal, and nothing is to be done for it now.
    pub(super) fn is_at_rest(&self) -> bool {
        if !self.work.is_empty() {
            return false;
        }
        let waits = matches!(
            self.state.phase,
            Phase::Queued
                | Phase::Sleeping { .. }
                | Phase::Limited { .. }
                | Phase::Blocked { attempt: None, .. }
        );
        let is_ordered = !self.orders.is_empty() || !self.deferred.is_empty();
        self.state.phase.is_settled() || (waits && !is_ordered && !self.is_due() && self.outage.is_none())
    }

    /// The goal's place in the queue, which it has until it leaves it.
    pub(super) fn place(&self) -> Place {
        (self.state.queued_at.unwrap_or(self.goal.created_at), self.goal.id)
    }
}

/// Has the lease hold as that of a running goal again, and reads the goal. A store that fails for now is waited for, as long
/// as a lease lasts.
async fn renewed(shared: &Shared, lease: &Lease) -> Result<(Lease, GoalRecord), EngineError> {
    let give_up = Instant::now() + LEASE;
    loop {
        let read = async {
            let renewed = shared.renew(lease).await?;
            Ok::<_, StoreError>((renewed, shared.store.load(lease.goal).await?))
        };
        match read.await {
            Err(error) if error.is_passing() && Instant::now() < give_up => {
                tokio::time::sleep(STORE_PAUSE).await;
            }
            read => return Ok(read?),
        }
    }
}

/// Keeps orders for later, until the operator insists: nothing runs for a goal that waits, so it can be left as it is.
async fn insisted(orders: &mut mpsc::Receiver<Box<Order>>, deferred: &mut VecDeque<Box<Order>>) {
    while let Some(order) = orders.recv().await {
        if matches!(*order, Order::Kill) {
            return;
        }
        deferred.push_back(order);
    }
    std::future::pending().await
}
