//! A store in memory, for tests of what is above the store: nothing waits for a disk, and nothing outlives the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use towline_core::{
    Account, Attempt, AttemptNo, Envelope, Generation, Goal, GoalId, GoalState, PoolSeq, Seq,
};

use crate::ledger::{AccountReport, Amounts, SpendBy, SpendQuery, Spending, account_reports, quarter};
use crate::{
    Append, Appended, Cursor, GoalRecord, GoalSummary, Lease, Listed, Listing, MOST_BASELINES, Order,
    PendingEffect, Store, StoreError, StoredBaseline, WorkerName,
};

/// Goals in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    pool: Arc<Mutex<Pool>>,
    baselines: Arc<Mutex<BTreeMap<String, StoredBaseline>>>,
}

/// Everything about all goals.
#[derive(Debug, Default)]
struct Pool {
    goals: BTreeMap<GoalId, Stored>,
    /// The last event's place among those of all goals.
    place: PoolSeq,
    accounts: BTreeMap<String, Account>,
    ledger: BTreeMap<(GoalId, AttemptNo, Timestamp), LedgerRow>,
}

#[derive(Debug)]
struct LedgerRow {
    project: String,
    account: String,
    amounts: Amounts,
}

/// Everything about one goal.
#[derive(Debug)]
struct Stored {
    record: GoalRecord,
    /// The newest generation that any lease has had.
    generation: Generation,
    events: Vec<(PoolSeq, Envelope)>,
    outbox: Vec<PendingEffect>,
    settled: BTreeSet<String>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        // A test that panicked while it held the lock has failed already.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn baselines(&self) -> MutexGuard<'_, BTreeMap<String, StoredBaseline>> {
        self.baselines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(
        &self,
        goal: GoalId,
        work: impl FnOnce(&mut Stored) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        work(self.pool().goals.get_mut(&goal).ok_or(StoreError::NotFound(goal))?)
    }
}

impl Pool {
    fn append(&mut self, append: Append) -> Result<Appended, StoreError> {
        let (events, at) = (append.events.clone(), append.at);
        let stored = self.goals.get_mut(&append.goal).ok_or(StoreError::NotFound(append.goal))?;
        let appended = stored.append(append, &mut self.place)?;
        let GoalRecord { goal, state, .. } = &stored.record;
        let account_of = |attempt: &Attempt| {
            goal.accounts.get(&attempt.agent).cloned().unwrap_or_else(|| attempt.agent.to_string())
        };
        for AccountReport { attempt, status, at } in account_reports(&events, state) {
            let (name, agent) = (account_of(attempt), attempt.agent.clone());
            let known = self.accounts.get(&name).is_some_and(|known| known.status == status);
            if !known {
                self.accounts.insert(name.clone(), Account { name, agent, status, updated_at: at });
            }
        }
        if let Some(attempt) = state.last_attempt().filter(|attempt| !attempt.usage.is_empty()) {
            let key = (goal.id, attempt.n, quarter(at));
            let rows = self
                .ledger
                .range((goal.id, attempt.n, Timestamp::MIN)..=(goal.id, attempt.n, Timestamp::MAX));
            let mut others = Amounts::default();
            rows.filter(|(other, _)| **other != key).for_each(|(_, row)| others += row.amounts);
            let (project, account) = (goal.workspace.repository.clone(), account_of(attempt));
            let amounts = Amounts::from(attempt.usage) - others;
            self.ledger.insert(key, LedgerRow { project, account, amounts });
        }
        Ok(appended)
    }

    fn spending(&self, query: &SpendQuery) -> Vec<Spending> {
        let is_wanted =
            |wanted: &Option<String>, found: &String| wanted.as_ref().is_none_or(|it| it == found);
        let mut sums: BTreeMap<String, Amounts> = BTreeMap::new();
        for ((_, _, at), LedgerRow { project, account, amounts }) in &self.ledger {
            let is_in_time = (quarter(query.from)..query.until).contains(at);
            if is_in_time && is_wanted(&query.project, project) && is_wanted(&query.account, account) {
                let key = match query.by {
                    SpendBy::Time => format!("{at:.9}"),
                    SpendBy::Project => project.clone(),
                    SpendBy::Account => account.clone(),
                };
                *sums.entry(key).or_default() += *amounts;
            }
        }
        sums.into_iter().map(|(key, amounts)| Spending { key, amounts }).collect()
    }
}

impl Stored {
    fn append(&mut self, append: Append, place: &mut PoolSeq) -> Result<Appended, StoreError> {
        let goal = append.goal;
        must_be_newest(goal, append.generation, self.generation)?;
        let found = self.record.last_seq;
        if found != append.expected {
            return Err(StoreError::Conflict { goal, expected: append.expected, found });
        }
        must_run_one_attempt(&append.state)?;
        let mut last_seq = found;
        let mut placed = |event: Envelope| {
            last_seq = last_seq.next();
            event.placed(goal, last_seq)
        };
        let events: Vec<Envelope> = append.events.into_iter().map(&mut placed).collect();
        for effect in append.effects {
            let key = effect.key();
            if self.outbox.iter().all(|known| known.key != key) {
                self.outbox.push(PendingEffect { key, effect });
            }
        }
        self.settled
            .extend(append.settled.into_iter().filter(|key| self.outbox.iter().any(|it| it.key == *key)));
        for event in &events {
            *place = place.next();
            self.events.push((*place, event.clone()));
        }
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
        created: Envelope,
    ) -> Result<GoalRecord, StoreError> {
        must_run_one_attempt(state)?;
        let mut pool = self.pool();
        if pool.goals.contains_key(&goal.id) {
            return Err(StoreError::Exists(goal.id));
        }
        pool.place = pool.place.next();
        let (last_seq, updated_at) = (Seq(1), created.at);
        let record =
            GoalRecord { goal: goal.clone(), state: state.clone(), last_seq, lease: None, updated_at };
        let stored = Stored {
            record: record.clone(),
            generation: Generation::default(),
            events: vec![(pool.place, created.placed(goal.id, last_seq))],
            outbox: Vec::new(),
            settled: BTreeSet::new(),
        };
        pool.goals.insert(goal.id, stored);
        Ok(record)
    }

    async fn load(&self, goal: GoalId) -> Result<GoalRecord, StoreError> {
        self.with(goal, |stored| Ok(stored.record.clone().with_checks_in_force()))
    }

    async fn find(&self, given: &str, limit: usize) -> Result<Vec<Listed>, StoreError> {
        let pool = self.pool();
        let matching = pool.goals.values().filter(|stored| stored.record.goal.id.matches(given)).take(limit);
        Ok(matching.map(|stored| Listed::Goal(Box::new(GoalSummary::of(&stored.record)))).collect())
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Listed>, StoreError> {
        let pool = self.pool();
        let mut summaries: Vec<GoalSummary> = pool
            .goals
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
        self.pool().append(append)
    }

    async fn events(&self, goal: GoalId, after: Seq, limit: usize) -> Result<Vec<Envelope>, StoreError> {
        self.with(goal, |stored| {
            let later = stored.events.iter().map(|(_, event)| event).filter(|event| event.seq > after);
            Ok(later.take(limit).cloned().collect())
        })
    }

    async fn events_since(
        &self,
        after: PoolSeq,
        limit: usize,
    ) -> Result<Vec<(PoolSeq, Envelope)>, StoreError> {
        let pool = self.pool();
        let later = pool.goals.values().flat_map(|stored| &stored.events).filter(|(place, _)| *place > after);
        let mut later: Vec<_> = later.cloned().collect();
        later.sort_by_key(|(place, _)| *place);
        later.truncate(limit);
        Ok(later)
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        Ok(self.pool().accounts.values().cloned().collect())
    }

    async fn spending(&self, query: &SpendQuery) -> Result<Vec<Spending>, StoreError> {
        Ok(self.pool().spending(query))
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
        let mut pool = self.pool();
        let stored = pool.goals.get(&lease.goal).ok_or(StoreError::NotFound(lease.goal))?;
        must_be_newest(lease.goal, lease.generation, stored.generation)?;
        pool.goals.remove(&lease.goal);
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
        if let Some(stored) = self.pool().goals.get_mut(&lease.goal)
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
