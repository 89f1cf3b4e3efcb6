//! Recording while the store may fail.
//!
//! A disk that is full for a moment, or a process that locks the database, is no reason to end a healthy agent: the driver
//! tries again. Until then it takes in nothing more, so executors wait and agents go on printing to their logs. It gives up
//! when its lease has expired, because another engine may drive the goal by then.
//!
//! An operator's stop does not wait for the store. What runs is ended as a crash would end it: nothing more of it is taken in, and
//! the raw logs have it. The driver then records the stop, and reads the logs from where the goal's log ends.

use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, Unit};
use tokio::sync::mpsc;
use tokio::time::Instant;
use towline_core::{Event, Phase, Source, StopWhy, show_duration};
use towline_store::{Append, Appended, StoreError};

use super::transition::Transition;
use super::{Driver, NEWS_WAITING, Order};
use crate::engine::{LEASE, Shared};
use crate::error::EngineError;
use crate::news::StopLevel;

/// The pause before the second try; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long the store may take to record an operator's stop before what runs is ended without it.
const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// A store that fails for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreTrouble {
    pub error: String,
    /// Until when it is tried again.
    pub until: Timestamp,
    pub agent: AgentInTrouble,
}

/// What happens to a goal's agent while the store fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentInTrouble {
    KeepsRunning,
    /// The operator stopped the goal.
    Ended,
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
                notifies: self.shared.rules.is_some(),
                goal: self.goal.id,
                generation: self.lease.generation,
                expected: self.seq,
                events: transition.events.clone(),
                state: transition.state.clone(),
                effects: transition.effects.clone(),
                settled: transition.settled.clone(),
                at: self.shared.clock.now(),
            };
            let store = Arc::clone(&self.shared.store);
            let appended = match self.ask_store(store.append(append), Some(transition)).await {
                Ok(appended) => appended,
                // A commit that reported an error may have reached the disk all the same.
                Err(StoreError::Conflict { found, .. }) if is_retry && self.is_recorded(transition).await => {
                    Appended { events: Vec::new(), last_seq: found }
                }
                Err(error) if error.is_passing() => {
                    self.wait_for_store(error, transition).await?;
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
                None => return Err(self.give_up(error, None)),
            },
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn try_to_renew(&mut self) -> Result<(), StoreError> {
        let asked_at = Instant::now();
        let (shared, lease) = (Arc::clone(&self.shared), self.lease.clone());
        self.lease = self.ask_store(shared.renew(&lease), None).await?;
        self.lease_ends.send_replace(asked_at + LEASE);
        self.renew_at = Instant::now() + LEASE / 3;
        self.trace("lease renewed", self.lease.until);
        Ok(())
    }

    /// Waits for an answer of the store, and for orders meanwhile. A locked database does not answer for long: whoever stops the goal
    /// does not wait for it.
    async fn ask_store<T>(
        &mut self,
        call: impl Future<Output = Result<T, StoreError>>,
        transition: Option<&Transition>,
    ) -> Result<T, StoreError> {
        tokio::pin!(call);
        let mut patience = None;
        loop {
            if patience.is_none() && self.is_not_to_wait(transition) {
                patience = Some(Instant::now() + STOP_PATIENCE);
            }
            tokio::select! {
                answer = &mut call => return answer,
                () = tokio::time::sleep_until(patience.unwrap_or_else(Instant::now)), if patience.is_some() => {
                    return Err(unanswered(&self.shared));
                }
                Some(order) = self.orders.recv() => self.defer(order),
            }
        }
    }

    /// Keeps an order until the store works. The most urgent one is carried out at once.
    pub(super) fn defer(&mut self, order: Box<Order>) {
        match *order {
            Order::Kill => {
                self.is_insisted_on = true;
                self.raise_stop(StopLevel::Kill);
            }
            // Cannot grow without limit: whoever sent it waits for the outcome.
            _ => self.deferred.push_back(order),
        }
    }

    /// The operator's stop that is not recorded or not carried out yet.
    fn stop_request(&self, transition: Option<&Transition>) -> Option<&'static str> {
        let stopping = match &self.state.phase {
            Phase::Stopping(stopping) => match stopping.why {
                StopWhy::Cancel => Some(Event::CancelRequested.request()),
                StopWhy::Pause { reason } => Some(Event::PauseRequested { reason }.request()),
                _ => None,
            },
            _ => None,
        };
        let recording = transition.into_iter().flat_map(|transition| &transition.events);
        let recording = recording.filter(|event| event.source == Source::Operator).map(|event| &event.event);
        let deferred = self.deferred.iter().filter_map(|order| match &**order {
            Order::Event { event, .. } => Some(event),
            _ => None,
        });
        let unrecorded = recording.chain(deferred).find(|event| is_stop(event)).map(Event::request);
        self.ended_for.or(unrecorded).or(stopping)
    }

    /// Whether something has to be ended, or the operator insists, although nothing can be recorded.
    fn is_not_to_wait(&self, transition: Option<&Transition>) -> bool {
        let must_end_work = !self.work.is_empty() && self.stop_request(transition).is_some();
        self.is_insisted_on || (self.ended_for.is_none() && must_end_work)
    }

    /// Ends what runs for a stop that could not be recorded, and records the stop as soon as the store works. What the logs have that
    /// is not recorded is read again from there.
    pub(super) async fn record_stop(&mut self, unrecorded: EngineError) -> Result<(), EngineError> {
        let EngineError::StopUnrecorded { request, .. } = &unrecorded else { return Err(unrecorded) };
        self.trace("ended unrecorded", request);
        self.ended_for = Some(request);
        self.abandon().await;
        self.work.shutdown().await;
        (self.sender, self.news) = mpsc::channel(NEWS_WAITING);
        if self.is_insisted_on {
            return Err(unrecorded);
        }
        let request = self.accept_stops();
        loop {
            // An append that reported an error may have taken effect.
            match self.shared.store.load(self.goal.id).await {
                Ok(record) => (self.state, self.seq) = (record.state, record.last_seq),
                Err(error) if error.is_passing() => {}
                Err(error) => return Err(error.into()),
            }
            let request = request.clone().filter(|_| !self.state.phase.is_settled());
            match self.try_to_begin(Vec::from_iter(request)).await {
                Err(EngineError::Store(StoreError::Conflict { .. })) => {}
                begun => return begun,
            }
        }
    }

    /// Takes the operator's stops out of the orders that wait, and gives the one that counts: a cancel ends more than a pause. All are
    /// carried out by it, so their senders need not wait.
    fn accept_stops(&mut self) -> Option<Event> {
        let mut request = None;
        for order in std::mem::take(&mut self.deferred) {
            match *order {
                Order::Event { event, done } if is_stop(&event) => {
                    // The sender may be gone by now.
                    let _ = done.send(Ok(()));
                    if request != Some(Event::CancelRequested) {
                        request = Some(event);
                    }
                }
                _ => self.deferred.push_back(order),
            }
        }
        request
    }

    /// Waits before the next try. Whoever stops the goal does not have to wait.
    async fn wait_for_store(
        &mut self,
        error: StoreError,
        transition: &Transition,
    ) -> Result<(), EngineError> {
        let transition = Some(transition);
        if self.is_not_to_wait(transition) {
            return Err(self.give_up(error, transition));
        }
        if Instant::now() >= self.renew_at {
            match self.try_to_renew().await {
                Err(error) if !error.is_passing() => return Err(error.into()),
                _ => {}
            }
        }
        let Some(pause) = self.note_outage(&error) else { return Err(self.give_up(error, transition)) };
        let next_try = Instant::now() + pause;
        while !self.is_not_to_wait(transition) {
            tokio::select! {
                () = tokio::time::sleep_until(next_try) => return self.shared.watch.check(),
                Some(order) = self.orders.recv() => self.defer(order),
            }
        }
        Err(self.give_up(error, transition))
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
        let agent =
            if self.ended_for.is_some() { AgentInTrouble::Ended } else { AgentInTrouble::KeepsRunning };
        let trouble = Some(StoreTrouble { error: outage.error.clone(), until, agent });
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

    /// Why the driver does not wait for the store any longer.
    fn give_up(&self, source: StoreError, transition: Option<&Transition>) -> EngineError {
        let goal = self.goal.id;
        let has_ended_work = self.ended_for.is_some() || !self.work.is_empty();
        match self.stop_request(transition).filter(|_| has_ended_work) {
            Some(request) => EngineError::StopUnrecorded { goal, request, source },
            None if self.is_insisted_on => source.into(),
            None => EngineError::LeaseExpired { goal, source },
        }
    }
}

/// Whether an operator's request ends what runs.
fn is_stop(event: &Event) -> bool {
    matches!(event, Event::CancelRequested | Event::PauseRequested { .. })
}

pub(super) fn unanswered(shared: &Shared) -> StoreError {
    let path = shared.home.database().display().to_string();
    StoreError::Unavailable { path, message: "it does not answer".to_owned() }
}
