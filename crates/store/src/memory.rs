//! A store in memory, for tests of what is above the store: nothing waits for a disk, and nothing outlives the process.

mod pool;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use towline_core::{
    Account, AgentName, Envelope, Generation, Goal, GoalId, GoalState, Lane, MicroUsd, PoolGoal, PoolSeq, Seq,
};

use crate::ledger::{Amounts, SpendBy, Spending, SpentByProject};
use crate::pool::PoolStanding;
use crate::{
    Append, Appended, Cursor, GoalRecord, GoalSummary, Lease, Listed, Listing, MOST_BASELINES, NoticeId,
    NoticeOutcome, Order, PendingEffect, PendingNotice, PoolView, QueuedGoal, Store, StoreError,
    StoredBaseline, StoredReply, Unmet, WorkerName,
};

/// Goals in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    pool: Arc<Mutex<Pool>>,
    baselines: Arc<Mutex<BTreeMap<String, StoredBaseline>>>,
    /// Whether what came of notifications cannot be recorded.
    refuses_outcomes: Arc<AtomicBool>,
}

impl MemoryStore {
    /// Has it refuse to record what came of notifications, as a full disk does, or take it again.
    pub fn refuse_outcomes(&self, refuses: bool) {
        self.refuses_outcomes.store(refuses, Ordering::SeqCst);
    }
}

/// Everything about all goals.
#[derive(Debug, Default)]
struct Pool {
    goals: BTreeMap<GoalId, Stored>,
    /// The last event's place among those of all goals.
    place: PoolSeq,
    accounts: BTreeMap<String, Account>,
    /// By goal, attempt (a judge below zero) and time.
    ledger: BTreeMap<(GoalId, i64, Timestamp), LedgerRow>,
    notices: BTreeMap<NoticeId, (PendingNotice, Timestamp)>,
    last_notice: u64,
    replies: BTreeMap<String, StoredReply>,
}

#[derive(Debug)]
struct LedgerRow {
    project: String,
    account: String,
    agent: String,
    model: String,
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

    fn all(&self) -> MutexGuard<'_, Pool> {
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
        work(self.all().goals.get_mut(&goal).ok_or(StoreError::NotFound(goal))?)
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

    fn wakes_at(&self) -> Option<Timestamp> {
        self.record.state.wakes_at(self.record.goal.id)
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

fn names(listing: &Listing, goal: &GoalSummary, wakes_at: Option<Timestamp>) -> bool {
    let place = Cursor { created_at: goal.created_at, id: goal.id };
    let is_past = |after: Cursor| match listing.order {
        Order::NewestFirst => place < after,
        Order::OldestFirst => place > after,
    };
    listing.repository.as_ref().is_none_or(|repository| *repository == goal.repository)
        && (listing.phases.is_empty() || listing.phases.contains(&goal.phase.name()))
        && listing.settled.is_none_or(|settled| settled == goal.phase.is_settled())
        && listing.due.is_none_or(|due| wakes_at.is_some_and(|wakes_at| wakes_at <= due))
        && (!listing.held || goal.lease.is_some())
        && (!listing.asks || goal.asks)
        && listing.after.is_none_or(is_past)
}

#[async_trait]
impl Store for MemoryStore {
    async fn create_all(&self, goals: &[(Goal, GoalState, Envelope)]) -> Result<Vec<GoalRecord>, StoreError> {
        let mut pool = self.all();
        for (at, (goal, state, _)) in goals.iter().enumerate() {
            must_run_one_attempt(state)?;
            let is_given_twice = goals[..at].iter().any(|(earlier, ..)| earlier.id == goal.id);
            if is_given_twice || pool.goals.contains_key(&goal.id) {
                return Err(StoreError::Exists(goal.id));
            }
        }
        let records: Vec<GoalRecord> = goals.iter().map(GoalRecord::created).collect();
        for (record, (goal, _, created)) in records.iter().zip(goals) {
            pool.place = pool.place.next();
            let stored = Stored {
                record: record.clone(),
                generation: Generation::default(),
                events: vec![(pool.place, created.clone().placed(goal.id, record.last_seq))],
                outbox: Vec::new(),
                settled: BTreeSet::new(),
            };
            pool.goals.insert(goal.id, stored);
        }
        Ok(records)
    }

    async fn load(&self, goal: GoalId) -> Result<GoalRecord, StoreError> {
        self.with(goal, |stored| Ok(stored.record.clone().with_all_in_force()))
    }

    async fn find(&self, given: &str, limit: usize) -> Result<Vec<Listed>, StoreError> {
        let pool = self.all();
        let matching = pool.goals.values().filter(|stored| stored.record.goal.id.matches(given)).take(limit);
        Ok(matching.map(|stored| Listed::Goal(Box::new(GoalSummary::of(&stored.record)))).collect())
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Listed>, StoreError> {
        let pool = self.all();
        let mut summaries: Vec<GoalSummary> = pool
            .goals
            .values()
            .map(|stored| (GoalSummary::of(&stored.record), stored.wakes_at()))
            .filter(|(goal, wakes_at)| names(listing, goal, *wakes_at))
            .map(|(goal, _)| goal)
            .collect();
        summaries.sort_by_key(|goal| (goal.created_at, goal.id));
        if listing.order == Order::NewestFirst {
            summaries.reverse();
        }
        Ok(summaries.into_iter().take(listing.limit).map(|goal| Listed::Goal(Box::new(goal))).collect())
    }

    async fn append(&self, append: Append) -> Result<Appended, StoreError> {
        self.all().append(append)
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
        let pool = self.all();
        let later = pool.goals.values().flat_map(|stored| &stored.events).filter(|(place, _)| *place > after);
        let mut later: Vec<_> = later.cloned().collect();
        later.sort_by_key(|(place, _)| *place);
        later.truncate(limit);
        Ok(later)
    }

    async fn last_place(&self) -> Result<PoolSeq, StoreError> {
        Ok(self.all().place)
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        Ok(self.all().accounts.values().cloned().collect())
    }

    async fn set_account(&self, account: &Account) -> Result<(), StoreError> {
        self.all().accounts.insert(account.name.clone(), account.clone());
        Ok(())
    }

    async fn usual_costs(&self) -> Result<BTreeMap<AgentName, MicroUsd>, StoreError> {
        Ok(self.all().usual_costs())
    }

    async fn pool(&self, most: usize) -> Result<PoolView, StoreError> {
        let pool = self.all();
        let mut lanes: BTreeMap<Lane, usize> = BTreeMap::new();
        let mut queued = pool.standing(PoolStanding::Queued);
        queued.retain(|goal| pool.unmet(goal.goal).is_empty());
        queued.retain(|goal| {
            let of_lane = lanes.entry(goal.lane.clone()).or_default();
            *of_lane += 1;
            *of_lane <= most
        });
        Ok(PoolView { working: pool.standing(PoolStanding::Working), queued, rest: None })
    }

    async fn ready(&self, after: (Timestamp, GoalId), limit: usize) -> Result<Vec<PoolGoal>, StoreError> {
        let pool = self.all();
        let mut queued = pool.standing(PoolStanding::Queued);
        queued.retain(|goal| (goal.rank, goal.goal) > after && pool.unmet(goal.goal).is_empty());
        queued.truncate(limit);
        Ok(queued)
    }

    async fn queue(
        &self,
        after: Option<(Timestamp, GoalId)>,
        limit: usize,
    ) -> Result<Vec<QueuedGoal>, StoreError> {
        let pool = self.all();
        let queued = pool.standing(PoolStanding::Queued).into_iter();
        let queued =
            queued.filter(|goal| after.is_none_or(|after| (goal.rank, goal.goal) > after)).take(limit);
        Ok(queued.map(|goal| QueuedGoal { unmet: pool.unmet(goal.goal), goal }).collect())
    }

    async fn unmet(&self, goal: GoalId) -> Result<Vec<Unmet>, StoreError> {
        let pool = self.all();
        if pool.goals.contains_key(&goal) { Ok(pool.unmet(goal)) } else { Err(StoreError::NotFound(goal)) }
    }

    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        let pool = self.all();
        let free = pool.goals.values().filter(|stored| stored.record.lease.is_none());
        Ok(free.filter_map(Stored::wakes_at).min())
    }

    async fn settled(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn notices(&self, now: Timestamp, limit: usize) -> Result<Vec<PendingNotice>, StoreError> {
        let pool = self.all();
        let mut due: Vec<_> = pool.notices.values().filter(|(_, due)| *due <= now).collect();
        due.sort_by_key(|(notice, due)| (*due, notice.id));
        Ok(due.into_iter().take(limit).map(|(notice, _)| notice.clone()).collect())
    }

    async fn settle_notice(&self, notice: NoticeId, outcome: NoticeOutcome) -> Result<(), StoreError> {
        if self.refuses_outcomes.load(Ordering::SeqCst) {
            return Err(StoreError::NoSpace { path: "memory".to_owned() });
        }
        let mut pool = self.all();
        match outcome {
            NoticeOutcome::Settled => drop(pool.notices.remove(&notice)),
            NoticeOutcome::Again(at) => {
                if let Some((notice, due)) = pool.notices.get_mut(&notice) {
                    notice.tries += 1;
                    *due = at;
                }
            }
        }
        Ok(())
    }

    async fn begin_reply(
        &self,
        key: &str,
        reply: &StoredReply,
        since: Timestamp,
    ) -> Result<Option<StoredReply>, StoreError> {
        let mut pool = self.all();
        pool.replies.retain(|_, known| known.at >= since);
        let known = pool.replies.get(key).cloned();
        if known.is_none() {
            pool.replies.insert(key.to_owned(), reply.clone());
        }
        Ok(known)
    }

    async fn finish_reply(&self, key: &str, reply: Option<&StoredReply>) -> Result<(), StoreError> {
        let mut pool = self.all();
        match reply {
            Some(reply) => drop(pool.replies.insert(key.to_owned(), reply.clone())),
            None => drop(pool.replies.remove(key)),
        }
        Ok(())
    }

    async fn spending(&self, since: Timestamp, by: SpendBy) -> Result<Vec<Spending>, StoreError> {
        Ok(self.all().spending(since, by))
    }

    async fn spent(&self, during: Option<(Timestamp, Timestamp)>) -> Result<SpentByProject, StoreError> {
        Ok(self.all().spent(during))
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
        let mut pool = self.all();
        let stored = pool.goals.get(&lease.goal).ok_or(StoreError::NotFound(lease.goal))?;
        must_be_newest(lease.goal, lease.generation, stored.generation)?;
        pool.goals.remove(&lease.goal);
        pool.notices.retain(|_, (notice, _)| notice.goal != lease.goal);
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
        if let Some(stored) = self.all().goals.get_mut(&lease.goal)
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
