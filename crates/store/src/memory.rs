//! A store in memory, for tests of what is above the store: nothing waits for a disk, and nothing outlives the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use towline_core::{Envelope, Generation, Goal, GoalId, GoalState, Seq};

use crate::{
    Append, Appended, Cursor, GoalRecord, GoalSummary, Lease, Listed, Listing, MOST_BASELINES, NewEvent,
    Order, PendingEffect, Store, StoreError, StoredBaseline, WorkerName,
};

/// Goals in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    goals: Arc<Mutex<BTreeMap<GoalId, Stored>>>,
    baselines: Arc<Mutex<BTreeMap<String, StoredBaseline>>>,
}

/// Everything about one goal.
#[derive(Debug)]
struct Stored {
    record: GoalRecord,
    /// The newest generation that any lease has had.
    generation: Generation,
    events: Vec<Envelope>,
    outbox: Vec<PendingEffect>,
    settled: BTreeSet<String>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn goals(&self) -> MutexGuard<'_, BTreeMap<GoalId, Stored>> {
        // A test that panicked while it held the lock has failed already.
        self.goals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn baselines(&self) -> MutexGuard<'_, BTreeMap<String, StoredBaseline>> {
        self.baselines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(
        &self,
        goal: GoalId,
        work: impl FnOnce(&mut Stored) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        work(self.goals().get_mut(&goal).ok_or(StoreError::NotFound(goal))?)
    }
}

impl Stored {
    fn append(&mut self, append: Append) -> Result<Appended, StoreError> {
        let goal = append.goal;
        must_be_newest(goal, append.generation, self.generation)?;
        let found = self.record.last_seq;
        if found != append.expected {
            return Err(StoreError::Conflict { goal, expected: append.expected, found });
        }
        must_run_one_attempt(&append.state)?;
        let mut last_seq = found;
        let mut place = |event: NewEvent| {
            last_seq = last_seq.next();
            event.placed(goal, last_seq)
        };
        let events: Vec<Envelope> = append.events.into_iter().map(&mut place).collect();
        for effect in append.effects {
            let key = effect.key();
            if self.outbox.iter().all(|known| known.key != key) {
                self.outbox.push(PendingEffect { key, effect });
            }
        }
        self.settled
            .extend(append.settled.into_iter().filter(|key| self.outbox.iter().any(|it| it.key == *key)));
        self.events.extend(events.iter().cloned());
        self.record.state = append.state;
        self.record.last_seq = last_seq;
        self.record.updated_at = append.at;
        Ok(Appended { events, last_seq })
    }

    fn claim(
        &mut self,
        worker: &WorkerName,
        now: Timestamp,
        until: Timestamp,
        proven_dead: Option<&WorkerName>,
    ) -> Result<Lease, StoreError> {
        let goal = self.record.goal.id;
        if let Some(held) = &self.record.lease
            && held.worker != *worker
            && held.until > now
            && Some(&held.worker) != proven_dead
        {
            return Err(StoreError::Held { goal, worker: held.worker.clone(), until: held.until });
        }
        self.generation = self.generation.next();
        let lease = Lease { goal, worker: worker.clone(), generation: self.generation, until };
        self.record.lease = Some(lease.clone());
        Ok(lease)
    }

    /// Whether this lease is still the one in force, whatever its end.
    fn is_held_by(&self, lease: &Lease) -> bool {
        let same = |held: &Lease| held.worker == lease.worker && held.generation == lease.generation;
        self.record.lease.as_ref().is_some_and(same)
    }
}

fn must_be_newest(goal: GoalId, ours: Generation, held: Generation) -> Result<(), StoreError> {
    if ours == held { Ok(()) } else { Err(StoreError::Fenced { goal, ours, held }) }
}

fn must_run_one_attempt(state: &GoalState) -> Result<(), StoreError> {
    match state.attempts.iter().filter(|attempt| attempt.ended_at.is_none()).count() {
        0 | 1 => Ok(()),
        running => Err(StoreError::Database {
            path: "memory".to_owned(),
            message: format!("{running} attempts of one goal run at once"),
        }),
    }
}

fn names(listing: &Listing, goal: &GoalSummary) -> bool {
    let place = Cursor { created_at: goal.created_at, id: goal.id };
    let is_past = |after: Cursor| match listing.order {
        Order::NewestFirst => place < after,
        Order::OldestFirst => place > after,
    };
    listing.repository.as_ref().is_none_or(|repository| *repository == goal.repository)
        && (listing.phases.is_empty() || listing.phases.contains(&goal.phase.name()))
        && listing.settled.is_none_or(|settled| settled == goal.phase.is_settled())
        && listing.due.is_none_or(|due| goal.phase.until().is_some_and(|until| until <= due))
        && (!listing.held || goal.lease.is_some())
        && (!listing.asks || goal.asks)
        && listing.after.is_none_or(is_past)
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(
        &self,
        goal: &Goal,
        state: &GoalState,
        created: NewEvent,
    ) -> Result<GoalRecord, StoreError> {
        must_run_one_attempt(state)?;
        let mut goals = self.goals();
        if goals.contains_key(&goal.id) {
            return Err(StoreError::Exists(goal.id));
        }
        let (last_seq, updated_at) = (Seq(1), created.at);
        let record =
            GoalRecord { goal: goal.clone(), state: state.clone(), last_seq, lease: None, updated_at };
        let stored = Stored {
            record: record.clone(),
            generation: Generation::default(),
            events: vec![created.placed(goal.id, last_seq)],
            outbox: Vec::new(),
            settled: BTreeSet::new(),
        };
        goals.insert(goal.id, stored);
        Ok(record)
    }

    async fn load(&self, goal: GoalId) -> Result<GoalRecord, StoreError> {
        self.with(goal, |stored| Ok(stored.record.clone().with_checks_in_force()))
    }

    async fn find(&self, given: &str, limit: usize) -> Result<Vec<Listed>, StoreError> {
        let goals = self.goals();
        let matching = goals.values().filter(|stored| stored.record.goal.id.matches(given)).take(limit);
        Ok(matching.map(|stored| Listed::Goal(Box::new(GoalSummary::of(&stored.record)))).collect())
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Listed>, StoreError> {
        let goals = self.goals();
        let mut summaries: Vec<GoalSummary> = goals
            .values()
            .map(|stored| GoalSummary::of(&stored.record))
            .filter(|goal| names(listing, goal))
            .collect();
        summaries.sort_by_key(|goal| (goal.created_at, goal.id));
        if listing.order == Order::NewestFirst {
            summaries.reverse();
        }
        Ok(summaries.into_iter().take(listing.limit).map(|goal| Listed::Goal(Box::new(goal))).collect())
    }

    async fn append(&self, append: Append) -> Result<Appended, StoreError> {
        self.with(append.goal, |stored| stored.append(append))
    }

    async fn events(&self, goal: GoalId, after: Seq, limit: usize) -> Result<Vec<Envelope>, StoreError> {
        self.with(goal, |stored| {
            let later = stored.events.iter().filter(|event| event.seq > after);
            Ok(later.take(limit).cloned().collect())
        })
    }

    async fn pending(&self, goal: GoalId) -> Result<Vec<PendingEffect>, StoreError> {
        self.with(goal, |stored| {
            let waiting = stored.outbox.iter().filter(|entry| !stored.settled.contains(&entry.key));
            Ok(waiting.cloned().collect())
        })
    }

    async fn claim(
        &self,
        goal: GoalId,
        worker: &WorkerName,
        now: Timestamp,
        until: Timestamp,
        proven_dead: Option<&WorkerName>,
    ) -> Result<Lease, StoreError> {
        self.with(goal, |stored| stored.claim(worker, now, until, proven_dead))
    }

    async fn renew(&self, lease: &Lease, until: Timestamp) -> Result<Lease, StoreError> {
        self.with(lease.goal, |stored| {
            if !stored.is_held_by(lease) {
                let (ours, held) = (lease.generation, stored.generation);
                return Err(StoreError::Fenced { goal: lease.goal, ours, held });
            }
            let renewed = Lease { until, ..lease.clone() };
            stored.record.lease = Some(renewed.clone());
            Ok(renewed)
        })
    }

    async fn remove(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut goals = self.goals();
        let stored = goals.get(&lease.goal).ok_or(StoreError::NotFound(lease.goal))?;
        must_be_newest(lease.goal, lease.generation, stored.generation)?;
        goals.remove(&lease.goal);
        Ok(())
    }

    async fn baseline(&self, key: &str) -> Result<Option<StoredBaseline>, StoreError> {
        Ok(self.baselines().get(key).cloned())
    }

    async fn store_baseline(&self, key: &str, baseline: &StoredBaseline) -> Result<(), StoreError> {
        let mut baselines = self.baselines();
        baselines.insert(key.to_owned(), baseline.clone());
        while baselines.len() > MOST_BASELINES {
            let oldest = baselines.iter().min_by_key(|(_, known)| known.found_at);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            baselines.remove(&oldest);
        }
        Ok(())
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        if let Some(stored) = self.goals().get_mut(&lease.goal)
            && stored.is_held_by(lease)
        {
            stored.record.lease = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::Place;

    #[async_trait]
    impl Place for MemoryStore {
        async fn open(&self) -> Arc<dyn Store> {
            Arc::new(self.clone())
        }
    }

    crate::conformance_tests!(MemoryStore::new());
}
