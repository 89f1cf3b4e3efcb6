//! Who may drive a goal: taking its lease, and beginning to drive it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use towline_core::{Event, Goal, GoalId, Illegal, Incoming, Seq, Source, Stamp, StepOutcome, step};
use towline_store::{GoalRecord, Lease, StoreError};

use crate::driver::{Driver, Grant};
use crate::engine::{Driven, InHand, LEASE, RESTING, Shared};
use crate::error::EngineError;
use crate::feed::Feed;
use crate::handle::Handle;
use crate::news::own;
use crate::place::{DirectoryLock, must_be_alone};
use crate::pool::{Notice, Orders};
use crate::presence::is_dead;
use crate::resolver::ProjectRead;

/// How long a living engine may take to renew a lease: it does so three times while the lease holds.
const RENEWAL_PATIENCE: Duration = Duration::from_secs(30);
const RENEWAL_PAUSE: Duration = Duration::from_millis(500);

/// How often, and with what pause, it is looked whether an engine that cannot be reached is dead.
pub(crate) const DEATH_TRIES: u32 = 40;
pub(crate) const DEATH_PAUSE: Duration = Duration::from_millis(50);

impl Shared {
    /// What belongs to the project of a goal. A server does not wait for one that does not answer.
    pub(crate) async fn project_of(&self, goal: &Goal) -> Result<ProjectRead, EngineError> {
        let (resolver, reading) = (Arc::clone(&self.resolver), goal.clone());
        let read = move || ProjectRead::of(resolver.as_ref(), &reading);
        let Some(rules) = &self.rules else { return Ok(read()) };
        let directory = &goal.workspace.repository;
        let found = rules.reads().read(directory, read).await;
        found.map_err(|why| EngineError::NoAnswer { directory: directory.clone(), why })
    }

    /// If a goal works in place, waits until it can begin there, and fails if another goal is at work there.
    pub(crate) async fn lock_directory(&self, goal: &Goal) -> Result<Option<DirectoryLock>, EngineError> {
        if !goal.workspace.mode.is_in_place() {
            return Ok(None);
        }
        let lock = DirectoryLock::take(&self.home).await?;
        let folder = Path::new(&goal.workspace.repository);
        must_be_alone(&self.home, self.store.as_ref(), goal.id, folder).await?;
        Ok(Some(lock))
    }

    /// Drives a goal as it was when it was looked up.
    pub(crate) async fn drive(
        self: &Arc<Self>,
        record: GoalRecord,
        requests: Vec<Event>,
        grant: Option<Grant>,
        lock: Option<DirectoryLock>,
    ) -> Result<Handle, EngineError> {
        let goal = record.goal.id;
        refuse(&record, &requests, self.clock.now())?;
        let project = self.project_of(&record.goal).await?;
        let _in_hand = self.take_in_hand(goal).ok_or(EngineError::Busy { goal })?;
        let lease = self.claim(goal).await?;
        // From here on the lease protects the directory.
        drop(lock);
        // The holder before may have changed it until a moment ago.
        let record = self.store.load(goal).await?;
        if let Err(refused) = refuse(&record, &requests, self.clock.now()) {
            // A lease that cannot be released expires by itself.
            let _ = self.store.release(&lease).await;
            return Err(refused);
        }
        let (sender, inbox) = mpsc::channel(16);
        let orders = Orders { goal, inbox: sender, pool: self.pool.clone() };
        let feed = Feed::new();
        let source = feed.source();
        // Known before its first event, so that every process that sees the goal can reach its driver.
        self.set_driven(goal, Some(Driven { orders: orders.clone(), feed: source.clone() }));
        let driver = Driver::new(Arc::clone(self), record, project, lease, inbox, feed);
        let driver = match driver.begin(requests, grant).await {
            Ok(driver) => driver,
            Err(error) => {
                self.set_driven(goal, None);
                return Err(error);
            }
        };
        let (outcome, result) = oneshot::channel();
        let begun = Notice::Begun { goal, driver: Box::new(driver), outcome };
        // A pool that is gone drops the sender of the outcome.
        let _ = self.pool.send(begun).await;
        Ok(Handle::new(Arc::clone(&self.store), orders, source, result))
    }

    /// Takes the lease of a goal whose engine could not be reached any more: it may take a moment until it is known to be
    /// dead, and another task of this process may just have the goal.
    pub(crate) async fn claim_in_time(
        self: &Arc<Self>,
        goal: GoalId,
        requests: &[Event],
    ) -> Result<(InHand, Lease), EngineError> {
        let mut tries = 0;
        loop {
            let record = self.store.load(goal).await?;
            if !requests.is_empty() {
                refuse(&record, requests, self.clock.now())?;
            }
            let claimed = match self.take_in_hand(goal) {
                Some(in_hand) => self.claim(goal).await.map(|lease| (in_hand, lease)),
                None => Err(EngineError::Busy { goal }),
            };
            match claimed {
                Err(EngineError::Busy { .. }) if tries < DEATH_TRIES => {
                    tries += 1;
                    tokio::time::sleep(DEATH_PAUSE).await;
                }
                claimed => return claimed,
            }
        }
    }

    /// Takes the lease of a goal of which nothing else can be read.
    pub(crate) async fn claim_unread(&self, goal: GoalId) -> Result<Lease, EngineError> {
        let now = self.clock.now();
        let until = now.checked_add(LEASE).unwrap_or(now);
        let (store, worker) = (&self.store, &self.worker);
        match store.claim(goal, worker, now, until, None).await {
            Err(StoreError::Held { worker: holder, .. }) if is_dead(&self.home.engines(), &holder) => {
                self.must_have_place(store.claim(goal, worker, now, until, Some(&holder)).await?).await
            }
            Err(StoreError::Held { .. }) => Err(EngineError::Busy { goal }),
            claimed => self.must_have_place(claimed?).await,
        }
    }

    /// Gives a goal back if another engine has taken the place of this one. Either the change of places is seen here, or the claim came
    /// before it, and the other engine finds the lease and takes the goal over.
    async fn must_have_place(&self, lease: Lease) -> Result<Lease, EngineError> {
        match self.watch.check() {
            Ok(()) => Ok(lease),
            Err(error) => {
                // A lease of an engine that counts as dead holds for nobody.
                let _ = self.store.release(&lease).await;
                Err(error)
            }
        }
    }

    /// Takes the lease, also from an engine that is dead or does not renew it any more.
    async fn claim(&self, goal: GoalId) -> Result<Lease, EngineError> {
        let GoalRecord { lease, last_seq, .. } = self.store.load(goal).await?;
        let lost = match &lease {
            Some(lease) if self.is_held(lease).await? => return Err(self.held(goal, last_seq).await?),
            lease => lease.as_ref().map(|lease| &lease.worker),
        };
        let now = self.clock.now();
        let until = now.checked_add(LEASE).unwrap_or(now);
        let claimed = self.store.claim(goal, &self.worker, now, until, lost).await;
        match claimed {
            Ok(lease) => self.must_have_place(lease).await,
            Err(StoreError::Held { goal, .. }) => Err(EngineError::Busy { goal }),
            Err(other) => Err(other.into()),
        }
    }

    /// Who has a goal whose log ends here: a person, or an engine that may release it in a moment. Nobody else writes to
    /// the log of a goal that a person has entered.
    async fn held(&self, goal: GoalId, last: Seq) -> Result<EngineError, EngineError> {
        let before = Seq(last.0.saturating_sub(1));
        let events = self.store.events(goal, before, 1).await?;
        let is_entered = events.last().is_some_and(|last| matches!(last.event, Event::Entered { .. }));
        Ok(if is_entered { EngineError::Entered { goal } } else { EngineError::Busy { goal } })
    }

    /// Whether a living engine holds this lease. The clock may have been set since it was written, or the machine was
    /// suspended. So if the lease seems expired, or longer than any lease can be, a living engine gets the time to
    /// renew it.
    async fn is_held(&self, lease: &Lease) -> Result<bool, EngineError> {
        let is_ours = lease.worker == self.worker;
        if is_ours || is_dead(&self.home.engines(), &lease.worker) {
            return Ok(false);
        }
        let now = self.clock.now();
        let latest = now.checked_add(LEASE).unwrap_or(now);
        if lease.until == RESTING || (lease.until > now && lease.until <= latest) {
            return Ok(true);
        }
        let give_up = Instant::now() + RENEWAL_PATIENCE;
        while Instant::now() < give_up {
            tokio::time::sleep(RENEWAL_PAUSE).await;
            let current = self.store.load(lease.goal).await?.lease;
            if current.as_ref() != Some(lease) {
                return Ok(current.is_some());
            }
        }
        Ok(false)
    }
}

/// Refuses requests that do not fit the phase of the goal, before anything is changed.
pub(crate) fn refuse(record: &GoalRecord, requests: &[Event], now: Timestamp) -> Result<(), EngineError> {
    let goal = record.goal.id;
    let phase = &record.state.phase;
    if requests.is_empty() && phase.is_settled() {
        let illegal = Illegal::WrongPhase { phase: phase.name(), event: "run" };
        return Err(EngineError::Illegal { goal, illegal });
    }
    let stamp = Stamp { generation: record.state.generation, attempt: None };
    let mut state = record.state.clone();
    for request in requests {
        let incoming = Incoming { source: Source::Operator, ..own(stamp, request.clone()) };
        let after = step(&record.goal, state, &incoming, now);
        if let StepOutcome::Illegal(illegal) = after.outcome {
            return Err(EngineError::Illegal { goal, illegal });
        }
        state = after.state;
    }
    Ok(())
}
