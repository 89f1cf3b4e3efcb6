//! A store that does nothing any more once the server that uses it is dead.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use towline_core::{Account, AgentName, Envelope, Goal, GoalId, GoalState, MicroUsd, PoolGoal, PoolSeq, Seq};
use towline_store::{
    Append, Appended, GoalRecord, Lease, Listed, Listing, MemoryStore, NoticeId, NoticeOutcome,
    PendingEffect, PendingNotice, PoolView, QueuedGoal, SpendBy, Spending, SpentByProject, Store, StoreError,
    StoredBaseline, StoredReply, Unmet, WorkerName,
};

use super::life::Life;

/// Another store, for as long as the server lives.
pub(super) struct MortalStore {
    inner: MemoryStore,
    life: Life,
}

impl MortalStore {
    pub(super) const fn new(inner: MemoryStore, life: Life) -> Self {
        Self { inner, life }
    }

    async fn read<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.life.live().await;
        work.await
    }

    /// The server may die before a write, and after it.
    async fn write<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.life.point().await;
        let done = work.await;
        self.life.point().await;
        done
    }
}

/// Methods that only pass on.
macro_rules! pass_on {
    ($(async fn $name:ident(&self $(, $argument:ident: $kind:ty)*) -> $result:ty { $how:ident })+) => {
        #[async_trait]
        impl Store for MortalStore {
            $(async fn $name(&self $(, $argument: $kind)*) -> Result<$result, StoreError> {
                self.$how(Store::$name(&self.inner $(, $argument)*)).await
            })+
        }
    };
}

pass_on! {
    async fn create_all(&self, goals: &[(Goal, GoalState, Envelope)]) -> Vec<GoalRecord> { write }
    async fn append(&self, append: Append) -> Appended { write }
    async fn claim(&self, goal: GoalId, worker: &WorkerName, now: Timestamp, until: Timestamp, dead: Option<&WorkerName>) -> Lease { write }
    async fn renew(&self, lease: &Lease, until: Timestamp) -> Lease { write }
    async fn release(&self, lease: &Lease) -> () { write }
    async fn remove(&self, lease: &Lease) -> () { write }
    async fn store_baseline(&self, key: &str, baseline: &StoredBaseline) -> () { write }
    async fn set_account(&self, account: &Account) -> () { write }
    async fn settle_notice(&self, notice: NoticeId, outcome: NoticeOutcome) -> () { write }
    async fn begin_reply(&self, key: &str, reply: &StoredReply, since: Timestamp) -> Option<StoredReply> { write }
    async fn finish_reply(&self, key: &str, reply: Option<&StoredReply>) -> () { write }
    async fn load(&self, goal: GoalId) -> GoalRecord { read }
    async fn find(&self, given: &str, limit: usize) -> Vec<Listed> { read }
    async fn list(&self, listing: &Listing) -> Vec<Listed> { read }
    async fn events(&self, goal: GoalId, after: Seq, limit: usize) -> Vec<Envelope> { read }
    async fn events_since(&self, after: PoolSeq, limit: usize) -> Vec<(PoolSeq, Envelope)> { read }
    async fn last_place(&self) -> PoolSeq { read }
    async fn accounts(&self) -> Vec<Account> { read }
    async fn usual_costs(&self) -> BTreeMap<AgentName, MicroUsd> { read }
    async fn pool(&self, most: usize) -> PoolView { read }
    async fn ready(&self, after: (Timestamp, GoalId), limit: usize) -> Vec<PoolGoal> { read }
    async fn queue(&self, after: Option<(Timestamp, GoalId)>, limit: usize) -> Vec<QueuedGoal> { read }
    async fn unmet(&self, goal: GoalId) -> Vec<Unmet> { read }
    async fn next_wake(&self) -> Option<Timestamp> { read }
    async fn settled(&self) -> () { read }
    async fn notices(&self, now: Timestamp, limit: usize) -> Vec<PendingNotice> { read }
    async fn spending(&self, since: Timestamp, by: SpendBy) -> Vec<Spending> { read }
    async fn spent(&self, during: Option<(Timestamp, Timestamp)>) -> SpentByProject { read }
    async fn pending(&self, goal: GoalId) -> Vec<PendingEffect> { read }
    async fn baseline(&self, key: &str) -> Option<StoredBaseline> { read }
}
