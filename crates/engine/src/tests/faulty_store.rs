//! A store that fails when a test wants it to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::OwnedMutexGuard;
use towline_core::{Account, Envelope, Goal, GoalId, GoalState, PoolSeq, Seq};
use towline_store::{
    Append, Appended, GoalRecord, Lease, Listed, Listing, PendingEffect, SpendQuery, Spending, Store,
    StoreError, StoredBaseline, WorkerName,
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

/// Another store, and faults.
///
/// Paused time goes on while a task waits for a thread of SQLite, but not while one waits for a thread of the runtime:
/// all calls are made on such a thread.
pub(super) struct FaultyStore {
    inner: Arc<dyn Store>,
    fault: Mutex<Option<Fault>>,
    calls: AtomicU64,
    /// Held while appends and renewals do not answer.
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl FaultyStore {
    pub(super) fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, fault: Mutex::default(), calls: AtomicU64::new(0), lock: Arc::default() }
    }

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

    async fn call<T: Send + 'static>(
        &self,
        call: Call,
        work: impl FnOnce(Arc<dyn Store>) -> BoxFuture<'static, Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(error) = self.error_of(call, When::Before) {
            return Err(error);
        }
        if call != Call::Other {
            drop(self.lock.lock().await);
        }
        let (inner, runtime) = (Arc::clone(&self.inner), Handle::current());
        let done = tokio::task::spawn_blocking(move || runtime.block_on(work(inner))).await;
        let done = done.expect("the store answers")?;
        self.error_of(call, When::After).map_or(Ok(done), Err)
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn create(
        &self,
        goal: &Goal,
        state: &GoalState,
        created: Envelope,
    ) -> Result<GoalRecord, StoreError> {
        let (goal, state) = (goal.clone(), state.clone());
        self.call(Call::Other, move |store| {
            Box::pin(async move { store.create(&goal, &state, created).await })
        })
        .await
    }

    async fn load(&self, goal: GoalId) -> Result<GoalRecord, StoreError> {
        self.call(Call::Other, move |store| Box::pin(async move { store.load(goal).await })).await
    }

    async fn find(&self, given: &str, limit: usize) -> Result<Vec<Listed>, StoreError> {
        let given = given.to_owned();
        self.call(Call::Other, move |store| Box::pin(async move { store.find(&given, limit).await })).await
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Listed>, StoreError> {
        let listing = listing.clone();
        self.call(Call::Other, move |store| Box::pin(async move { store.list(&listing).await })).await
    }

    async fn append(&self, append: Append) -> Result<Appended, StoreError> {
        self.call(Call::Append, move |store| Box::pin(async move { store.append(append).await })).await
    }

    async fn events(&self, goal: GoalId, after: Seq, limit: usize) -> Result<Vec<Envelope>, StoreError> {
        self.call(Call::Other, move |store| Box::pin(async move { store.events(goal, after, limit).await }))
            .await
    }

    async fn events_since(
        &self,
        after: PoolSeq,
        limit: usize,
    ) -> Result<Vec<(PoolSeq, Envelope)>, StoreError> {
        self.call(Call::Other, move |store| Box::pin(async move { store.events_since(after, limit).await }))
            .await
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.call(Call::Other, move |store| Box::pin(async move { store.accounts().await })).await
    }

    async fn spending(&self, query: &SpendQuery) -> Result<Vec<Spending>, StoreError> {
        let query = query.clone();
        self.call(Call::Other, move |store| Box::pin(async move { store.spending(&query).await })).await
    }

    async fn pending(&self, goal: GoalId) -> Result<Vec<PendingEffect>, StoreError> {
        self.call(Call::Other, move |store| Box::pin(async move { store.pending(goal).await })).await
    }

    async fn claim(
        &self,
        goal: GoalId,
        worker: &WorkerName,
        now: Timestamp,
        until: Timestamp,
        proven_dead: Option<&WorkerName>,
    ) -> Result<Lease, StoreError> {
        let (worker, dead) = (worker.clone(), proven_dead.cloned());
        let claim = move |store: Arc<dyn Store>| -> BoxFuture<'static, _> {
            Box::pin(async move { store.claim(goal, &worker, now, until, dead.as_ref()).await })
        };
        self.call(Call::Other, claim).await
    }

    async fn renew(&self, lease: &Lease, until: Timestamp) -> Result<Lease, StoreError> {
        let lease = lease.clone();
        self.call(Call::Renew, move |store| Box::pin(async move { store.renew(&lease, until).await })).await
    }

    async fn remove(&self, lease: &Lease) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.call(Call::Other, move |store| Box::pin(async move { store.remove(&lease).await })).await
    }

    async fn baseline(&self, key: &str) -> Result<Option<StoredBaseline>, StoreError> {
        let key = key.to_owned();
        self.call(Call::Other, move |store| Box::pin(async move { store.baseline(&key).await })).await
    }

    async fn store_baseline(&self, key: &str, baseline: &StoredBaseline) -> Result<(), StoreError> {
        let (key, baseline) = (key.to_owned(), baseline.clone());
        self.call(Call::Other, move |store| {
            Box::pin(async move { store.store_baseline(&key, &baseline).await })
        })
        .await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.call(Call::Other, move |store| Box::pin(async move { store.release(&lease).await })).await
    }
}
