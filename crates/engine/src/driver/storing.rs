//! Recording while the store may fail.
//!
//! A disk that is full for a moment, or a process that locks the database, is no reason to end a healthy agent: the driver
//! tries again. Until then it takes in nothing more, so executors wait and agents go on printing to their logs. It gives up
//! when its lease has expired, because another engine may drive the goal by then.

use std::time::Duration;

use jiff::{Timestamp, Unit};
use tokio::time::Instant;
use towline_core::{Event, show_duration};
use towline_store::{Append, Appended, StoreError};

use super::transition::Transition;
use super::{Driver, Order};
use crate::engine::LEASE;
use crate::error::EngineError;

/// The pause before the second try; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A store that fails for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreTrouble {
    pub error: String,
    /// Until when it is tried again.
    pub until: Timestamp,
}

/// How long the store has been failing.
pub(super) struct Outage {
    since: Instant,
    error: String,
    pause: Duration,
}

impl Driver {
    /// Records a transition, however often that has to be tried.
    pub(super) async fn append(&mut self, transition: &Transition) -> Result<Appended, EngineError> {
        let mut is_retry = false;
        loop {
            let append = Append {
                goal: self.goal.id,
                generation: self.lease.generation,
                expected: self.seq,
                events: transition.events.clone(),
                state: transition.state.clone(),
                effects: transition.effects.clone(),
                settled: transition.settled.clone(),
                at: self.shared.clock.now(),
            };
            let appended = match self.shared.store.append(append).await {
                Ok(appended) => appended,
                // A commit that reported an error may have reached the disk all the same.
                Err(StoreError::Conflict { found, .. }) if is_retry && self.is_recorded(transition).await => {
                    Appended { events: Vec::new(), last_seq: found }
                }
                Err(error) if error.is_passing() => {
                    self.wait_for_store(error).await?;
                    is_retry = true;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            self.end_outage();
            return Ok(appended);
        }
    }

    /// Whether exactly these events are what follows in the log.
    async fn is_recorded(&self, transition: &Transition) -> bool {
        let wanted = &transition.events;
        let stored = self.shared.store.events(self.goal.id, self.seq, wanted.len() + 1).await;
        let stored = stored.unwrap_or_default();
        let is_same = |(stored, wanted): (&towline_core::Envelope, &towline_core::Envelope)| {
            (stored.at, stored.attempt, &stored.event) == (wanted.at, wanted.attempt, &wanted.event)
        };
        stored.len() == wanted.len() && stored.iter().zip(wanted).all(is_same)
    }

    /// Renews the lease. A store that fails for now is asked again soon.
    pub(super) async fn renew(&mut self) -> Result<(), EngineError> {
        match self.try_to_renew().await {
            Ok(()) => self.end_outage(),
            Err(error) if error.is_passing() => match self.note_outage(&error) {
                Some(pause) => self.renew_at = Instant::now() + pause,
                None => return Err(self.lease_expired(error)),
            },
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn try_to_renew(&mut self) -> Result<(), StoreError> {
        let asked_at = Instant::now();
        self.lease = self.shared.renew(&self.lease).await?;
        self.lease_ends.send_replace(asked_at + LEASE);
        self.renew_at = Instant::now() + LEASE / 3;
        self.trace("lease renewed", self.lease.until);
        Ok(())
    }

    /// Waits before the next try. An order to kill ends the wait.
    async fn wait_for_store(&mut self, error: StoreError) -> Result<(), EngineError> {
        if Instant::now() >= self.renew_at {
            match self.try_to_renew().await {
                Err(error) if !error.is_passing() => return Err(error.into()),
                _ => {}
            }
        }
        let Some(pause) = self.note_outage(&error) else { return Err(self.lease_expired(error)) };
        let next_try = Instant::now() + pause;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next_try) => return self.shared.watch.check(),
                Some(order) = self.orders.recv() => match *order {
                    Order::Kill => return Err(error.into()),
                    // Cannot grow without limit: each sender waits for the outcome.
                    _ => self.deferred.push_back(order),
                },
            }
        }
    }

    /// Takes note that the store fails. Gives how long to wait before the next try; none once the lease has expired.
    fn note_outage(&mut self, error: &StoreError) -> Option<Duration> {
        self.trace("store fails", error);
        let left = self.lease_ends.borrow().saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let outage = self.outage.get_or_insert_with(|| Outage {
            since: Instant::now(),
            error: error.to_string(),
            pause: FIRST_PAUSE,
        });
        let pause = outage.pause.min(left);
        outage.pause = (outage.pause * 2).min(LONGEST_PAUSE);
        let now = self.shared.clock.now();
        // To the second, so that it is the same at each try.
        let until = now.checked_add(left).unwrap_or(now).round(Unit::Second).unwrap_or(now);
        let trouble = Some(StoreTrouble { error: outage.error.clone(), until });
        self.shared.store_trouble.send_if_modified(|current| {
            let is_news = *current != trouble;
            *current = trouble;
            is_news
        });
        Some(pause)
    }

    fn end_outage(&mut self) {
        let Some(outage) = self.outage.take() else { return };
        self.shared.store_trouble.send_replace(None);
        let lasted = show_duration(outage.since.elapsed());
        self.notice = Some(format!("nothing could be stored for {lasted}: {}", outage.error));
    }

    /// Records the outage that is over.
    pub(super) async fn report_outage(&mut self) -> Result<(), EngineError> {
        match self.notice.take() {
            Some(text) => self.take_in(vec![self.own(Event::Notice { text })]).await,
            None => Ok(()),
        }
    }

    fn lease_expired(&self, source: StoreError) -> EngineError {
        EngineError::LeaseExpired { goal: self.goal.id, source }
    }
}
