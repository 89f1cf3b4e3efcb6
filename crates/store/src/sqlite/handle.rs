//! The handle that others hold.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::Connection;
use towline_core::{Account, AgentName, Envelope, Goal, GoalId, GoalState, MicroUsd, PoolGoal, PoolSeq, Seq};

use super::failure::Failure;
use super::parts::Written;
use super::readers::Readers;
use super::writer::Writer;
use super::writes::{Creation, Transition};
use super::{baselines, connection, ledger, lists, notices, pool, prerequisites, reads, replies, writes};
use crate::upgrade::Unguarded;
use crate::{
    Append, Appended, GoalRecord, Lease, Listed, Listing, NoticeId, NoticeOutcome, PendingEffect,
    PendingNotice, PoolView, QueuedGoal, SpendBy, Spending, SpentByProject, Store, StoreError,
    StoredBaseline, StoredReply, Unmet, UpgradeGuard, WorkerName,
};

/// Goals in one SQLite file. Clones share it; several processes may have it open at once.
///
/// Dropping the last clone finishes what is queued and closes the file, which blocks for as long as that takes.
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

struct Shared {
    path: String,
    written: Arc<Written>,
    // Before the writer, so that they are gone when it closes: only the last to leave folds the log into the file,
    // and of several that leave at once none is.
    readers: Readers,
    writer: Writer,
}

impl SqliteStore {
    /// Opens the database, which is made (with its directories, for nobody but their owner) when there is none.
    /// Blocks until its tables are up to date.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_guarded(path, &(Arc::new(Unguarded) as Arc<dyn UpgradeGuard>))
    }

    /// The same, with a guard that permits an upgrade and shows its progress.
    pub fn open_guarded(path: &Path, guard: &Arc<dyn UpgradeGuard>) -> Result<Self, StoreError> {
        let connections = connection::open(path, guard)?;
        let path = path.display().to_string();
        let readers = Readers::start(&path, connections.readers)?;
        let writer = Writer::start(&path, connections.writer)?;
        Ok(Self { shared: Arc::new(Shared { path, written: Arc::default(), readers, writer }) })
    }

    pub(super) async fn write<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        self.shared.writer.write(work).await
    }

    async fn read<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        self.shared.readers.read(work).await
    }

    /// A write to one goal: what cannot be read of it concerns no other.
    async fn write_of<T, W>(&self, goal: GoalId, mut work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnMut(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        self.write(move |connection| work(connection).map_err(|failure| failure.of_goal(goal))).await
    }

    /// The same for a read.
    async fn read_of<T, W>(&self, goal: GoalId, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        self.read(move |connection| work(connection).map_err(|failure| failure.of_goal(goal))).await
    }

    fn explained(&self, failure: Failure) -> StoreError {
        failure.explained(&self.shared.path)
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create_all(&self, goals: &[(Goal, GoalState, Envelope)]) -> Result<Vec<GoalRecord>, StoreError> {
        let creations = goals.iter().map(|(goal, state, created)| Creation::new(goal, state, created));
        let creations: Vec<Creation> =
            creations.collect::<Result<_, _>>().map_err(|failure| self.explained(failure))?;
        self.write(move |connection| creations.iter().try_for_each(|creation| creation.write(connection)))
            .await?;
        Ok(goals.iter().map(GoalRecord::created).collect())
    }

    async fn load(&self, goal: GoalId) -> Result<GoalRecord, StoreError> {
        self.read_of(goal, move |connection| reads::load(connection, goal)).await
    }

    async fn find(&self, given: &str, limit: usize) -> Result<Vec<Listed>, StoreError> {
        let given = given.to_owned();
        self.read(move |connection| lists::find(connection, &given, limit)).await
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Listed>, StoreError> {
        let listing = listing.clone();
        self.read(move |connection| lists::list(connection, &listing)).await
    }

    async fn append(&self, append: Append) -> Result<Appended, StoreError> {
        let (goal, mut last_seq) = (append.goal, append.expected);
        let (transition, events) = Transition::new(append).map_err(|failure| self.explained(failure))?;
        let written = Arc::clone(&self.shared.written);
        self.write_of(goal, move |connection| transition.write(connection, &written)).await?;
        let mut placed = Vec::with_capacity(events.len());
        for event in events {
            last_seq = last_seq.next();
            placed.push(event.placed(goal, last_seq));
        }
        Ok(Appended { events: placed, last_seq })
    }

    async fn events(&self, goal: GoalId, after: Seq, limit: usize) -> Result<Vec<Envelope>, StoreError> {
        self.read_of(goal, move |connection| reads::events(connection, goal, after, limit)).await
    }

    async fn events_since(
        &self,
        after: PoolSeq,
        limit: usize,
    ) -> Result<Vec<(PoolSeq, Envelope)>, StoreError> {
        self.read(move |connection| reads::events_since(connection, after, limit)).await
    }

    async fn last_place(&self) -> Result<PoolSeq, StoreError> {
        self.read(reads::last_place).await
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.read(ledger::accounts).await
    }

    async fn set_account(&self, account: &Account) -> Result<(), StoreError> {
        let account = account.clone();
        self.write(move |connection| ledger::set_account(connection, &account)).await
    }

    async fn usual_costs(&self) -> Result<BTreeMap<AgentName, MicroUsd>, StoreError> {
        self.read(ledger::usual_costs).await
    }

    async fn pool(&self, most: usize) -> Result<PoolView, StoreError> {
        self.read(move |connection| pool::view(connection, most)).await
    }

    async fn ready(&self, after: (Timestamp, GoalId), limit: usize) -> Result<Vec<PoolGoal>, StoreError> {
        self.read(move |connection| pool::ready(connection, Some(after), limit)).await
    }

    async fn queue(
        &self,
        after: Option<(Timestamp, GoalId)>,
        limit: usize,
    ) -> Result<Vec<QueuedGoal>, StoreError> {
        self.read(move |connection| pool::queue(connection, after, limit)).await
    }

    async fn unmet(&self, goal: GoalId) -> Result<Vec<Unmet>, StoreError> {
        self.read_of(goal, move |connection| prerequisites::unmet(connection, goal)).await
    }

    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(pool::next_wake).await
    }

    async fn settled(&self) -> Result<(), StoreError> {
        // Whoever writes has the lock until its work can be read. A transaction without work writes nothing.
        self.write(|_| Ok(())).await
    }

    async fn notices(&self, now: Timestamp, limit: usize) -> Result<Vec<PendingNotice>, StoreError> {
        self.read(move |connection| notices::due(connection, now, limit)).await
    }

    async fn settle_notice(&self, notice: NoticeId, outcome: NoticeOutcome) -> Result<(), StoreError> {
        self.write(move |connection| notices::settle(connection, notice, outcome)).await
    }

    async fn begin_reply(
        &self,
        key: &str,
        reply: &StoredReply,
        since: Timestamp,
    ) -> Result<Option<StoredReply>, StoreError> {
        let (key, reply) = (key.to_owned(), reply.clone());
        self.write(move |connection| replies::begin(connection, &key, &reply, since)).await
    }

    async fn finish_reply(&self, key: &str, reply: Option<&StoredReply>) -> Result<(), StoreError> {
        let (key, reply) = (key.to_owned(), reply.cloned());
        self.write(move |connection| replies::finish(connection, &key, reply.as_ref())).await
    }

    async fn spending(&self, since: Timestamp, by: SpendBy) -> Result<Vec<Spending>, StoreError> {
        self.read(move |connection| ledger::spending(connection, since, by)).await
    }

    async fn spent(&self, during: Option<(Timestamp, Timestamp)>) -> Result<SpentByProject, StoreError> {
        self.read(move |connection| ledger::spent(connection, during)).await
    }

    async fn pending(&self, goal: GoalId) -> Result<Vec<PendingEffect>, StoreError> {
        self.read_of(goal, move |connection| reads::pending(connection, goal)).await
    }

    async fn claim(
        &self,
        goal: GoalId,
        worker: &WorkerName,
        now: Timestamp,
        until: Timestamp,
        proven_dead: Option<&WorkerName>,
    ) -> Result<Lease, StoreError> {
        let (worker, proven_dead) = (worker.clone(), proven_dead.cloned());
        self.write_of(goal, move |connection| {
            writes::claim(connection, goal, &worker, now, until, proven_dead.as_ref())
        })
        .await
    }

    async fn renew(&self, lease: &Lease, until: Timestamp) -> Result<Lease, StoreError> {
        let lease = lease.clone();
        self.write_of(lease.goal, move |connection| writes::renew(connection, &lease, until)).await
    }

    async fn remove(&self, lease: &Lease) -> Result<(), StoreError> {
        self.shared.written.forget(lease.goal);
        let lease = lease.clone();
        self.write_of(lease.goal, move |connection| writes::remove(connection, &lease)).await
    }

    async fn baseline(&self, key: &str) -> Result<Option<StoredBaseline>, StoreError> {
        let key = key.to_owned();
        self.read(move |connection| baselines::load(connection, &key)).await
    }

    async fn store_baseline(&self, key: &str, baseline: &StoredBaseline) -> Result<(), StoreError> {
        let (key, baseline) = (key.to_owned(), baseline.clone());
        self.write(move |connection| baselines::store(connection, &key, &baseline)).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        self.shared.written.forget(lease.goal);
        let lease = lease.clone();
        self.write(move |connection| writes::release(connection, &lease)).await
    }
}
