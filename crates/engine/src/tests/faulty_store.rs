//! A store that fails when a test wants it to.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::OwnedMutexGuard;
use towline_core::{Account, AgentName, Envelope, Goal, GoalId, GoalState, MicroUsd, PoolGoal, PoolSeq, Seq};
use towline_store::{
    Append, Appended, GoalRecord, Lease, Listed, Listing, MemoryStore, NoticeId, NoticeOutcome,
    PendingEffect, PendingNotice, PoolView, QueuedGoal, SpendBy, Spending, SpentByProject, Store, StoreError,
    StoredBaseline, StoredReply, Unmet, WorkerName,
};

/// A kind of call to the store that tests distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Append,
    Renew,
    Other,
}

/// When a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Before,
    /// It has taken effect, and reports an error all the same.
    After,
}

struct Fault {
    when: When,
    decide: Box<dyn FnMut(Call) -> Option<StoreError> + Send>,
}

/// A store in memory, and faults.
#[derive(Default)]
pub(super) struct FaultyStore {
    inner: MemoryStore,
    fault: Mutex<Option<Fault>>,
    calls: AtomicU64,
    /// Held while appends and renewals do not answer.
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl FaultyStore {
    /// Has appends and renewals wait until the guard is dropped.
    pub(super) async fn hang(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.lock).lock_owned().await
    }

    /// How often it was called.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// From now on, calls fail for which this gives an error.
    pub(super) fn fail(&self, decide: impl FnMut(Call) -> Option<StoreError> + Send + 'static) {
        self.set(Some(Fault { when: When::Before, decide: Box::new(decide) }));
    }

    /// The same for calls that have taken effect.
    pub(super) fn fail_after(&self, decide: impl FnMut(Call) -> Option<StoreError> + Send + 'static) {
        self.set(Some(Fault { when: When::After, decide: Box::new(decide) }));
    }

    /// From now on, no call fails.
    pub(super) fn heal(&self) {
        self.set(None);
    }

    fn set(&self, fault: Option<Fault>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    fn error_of(&self, call: Call, when: When) -> Option<StoreError> {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.as_mut().filter(|fault| fault.when == when).and_then(|fault| (fault.decide)(call))
    }

    async fn appending<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.call(Call::Append, work).await
    }

    async fn renewing<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.call(Call::Renew, work).await
    }

    async fn other<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.call(Call::Other, work).await
    }

    async fn call<T>(
        &self,
        call: Call,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(error) = self.error_of(call, When::Before) {
            return Err(error);
        }
        if call != Call::Other {
            drop(self.lock.lock().await);
        }
        let done = work.await?;
        self.error_of(call, When::After).map_or(Ok(done), Err)
    }
}

/// A store whose methods only pass on, each by the method of its own that is named behind it.
macro_rules! pass_on {
    ($store:ty: $(async fn $name:ident(&self $(, $argument:ident: $kind:ty)*) -> $result:ty { $how:ident })+) => {
        #[async_trait]
        impl Store for $store {
            $(async fn $name(&self $(, $argument: $kind)*) -> Result<$result, StoreError> {
                self.$how(Store::$name(&self.inner $(, $argument)*)).await
            })+
        }
    };
}

pass_on! {
    FaultyStore:
    async fn create_all(&self, goals: &[(Goal, GoalState, Envelope)]) -> Vec<GoalRecord> { other }
    async fn load(&self, goal: GoalId) -> GoalRecord { other }
    async fn find(&self, given: &str, limit: usize) -> Vec<Listed> { other }
    async fn list(&self, listing: &Listing) -> Vec<Listed> { other }
    async fn append(&self, append: Append) -> Appended { appending }
    async fn events(&self, goal: GoalId, after: Seq, limit: usize) -> Vec<Envelope> { other }
    async fn events_since(&self, after: PoolSeq, limit: usize) -> Vec<(PoolSeq, Envelope)> { other }
    async fn last_place(&self) -> PoolSeq { other }
    async fn accounts(&self) -> Vec<Account> { other }
    async fn set_account(&self, account: &Account) -> () { other }
    async fn usual_costs(&self) -> BTreeMap<AgentName, MicroUsd> { other }
    async fn pool(&self, most: usize) -> PoolView { other }
    async fn ready(&self, after: (Timestamp, GoalId), limit: usize) -> Vec<PoolGoal> { other }
    async fn queue(&self, after: Option<(Timestamp, GoalId)>, limit: usize) -> Vec<QueuedGoal> { other }
    async fn unmet(&self, goal: GoalId) -> Vec<Unmet> { other }
    async fn next_wake(&self) -> Option<Timestamp> { other }
    async fn settled(&self) -> () { other }
    async fn notices(&self, now: Timestamp, limit: usize) -> Vec<PendingNotice> { other }
    async fn settle_notice(&self, notice: NoticeId, outcome: NoticeOutcome) -> () { other }
    async fn begin_reply(&self, key: &str, reply: &StoredReply, since: Timestamp) -> Option<StoredReply> { other }
    async fn finish_reply(&self, key: &str, reply: Option<&StoredReply>) -> () { other }
    async fn spending(&self, since: Timestamp, by: SpendBy) -> Vec<Spending> { other }
    async fn spent(&self, during: Option<(Timestamp, Timestamp)>) -> SpentByProject { other }
    async fn pending(&self, goal: GoalId) -> Vec<PendingEffect> { other }
    async fn claim(&self, goal: GoalId, worker: &WorkerName, now: Timestamp, until: Timestamp, dead: Option<&WorkerName>) -> Lease { other }
    async fn renew(&self, lease: &Lease, until: Timestamp) -> Lease { renewing }
    async fn remove(&self, lease: &Lease) -> () { other }
    async fn baseline(&self, key: &str) -> Option<StoredBaseline> { other }
    async fn store_baseline(&self, key: &str, baseline: &StoredBaseline) -> () { other }
    async fn release(&self, lease: &Lease) -> () { other }
}
