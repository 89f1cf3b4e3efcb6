//! The store in domain words.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use towline_core::{
    Account, AgentName, BaselineCheck, Effect, Envelope, Generation, Goal, GoalId, GoalState, MicroUsd,
    PoolGoal, PoolSeq, Seq,
};

use crate::{
    Listed, Listing, NoticeId, NoticeOutcome, PendingNotice, PoolView, QueuedGoal, SpendBy, Spending,
    SpentByProject, StoredReply, Unmet,
};

/// The name of a process that can hold leases.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerName(pub String);

/// A goal with everything that is known about it now.
#[derive(Debug, Clone, PartialEq)]
pub struct GoalRecord {
    /// The goal as created, but for what came into force since: see [`Goal::bring_into_force`].
    pub goal: Goal,
    /// The state after it.
    pub state: GoalState,
    /// The last event's place in its log; also the version that the next append must expect.
    pub last_seq: Seq,
    /// Who holds it, if anybody does. It may have run out by now: the store has no clock.
    pub lease: Option<Lease>,
    /// When it was last moved.
    pub updated_at: Timestamp,
}

impl GoalRecord {
    /// A goal to which nothing has happened but its first event.
    pub(crate) fn created((goal, state, created): &(Goal, GoalState, Envelope)) -> Self {
        let (goal, state) = (goal.clone(), state.clone());
        Self { goal, state, last_seq: Seq(1), lease: None, updated_at: created.at }
    }

    /// The goal with what came into force after its creation.
    pub(crate) fn with_all_in_force(mut self) -> Self {
        self.goal.bring_into_force(&self.state);
        self
    }
}

/// A worker's right to drive a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub goal: GoalId,
    pub worker: WorkerName,
    /// Grows with every new holder; never used twice for a goal.
    pub generation: Generation,
    /// Until when it holds unless renewed.
    pub until: Timestamp,
}

/// One transition: events, the state after them, and what is to be done, written together or not at all.
#[derive(Debug, Clone)]
pub struct Append {
    pub goal: GoalId,
    /// The lease under which it is written; refused when the goal was claimed again since. A lease that ran out or
    /// was given back is good enough until then.
    pub generation: Generation,
    /// The last event the writer knows of; refused when there are newer ones.
    pub expected: Seq,
    /// The events, in order; the store gives them their places.
    pub events: Vec<Envelope>,
    /// The state after them.
    pub state: GoalState,
    /// New entries of the outbox. A key is good for one entry in a goal's whole life: an effect whose key was
    /// written before, settled or not, is left out.
    pub effects: Vec<Effect>,
    /// Keys of entries of the outbox that are over; unknown ones are left out.
    pub settled: Vec<String>,
    /// Whether phases that are worth a notification are to be stored for [`Store::notices`].
    pub notifies: bool,
    /// When it was written.
    pub at: Timestamp,
}

/// What an append gave the events.
#[derive(Debug, Clone, PartialEq)]
pub struct Appended {
    /// The events as the log has them.
    pub events: Vec<Envelope>,
    /// The last one's place.
    pub last_seq: Seq,
}

/// An entry of the outbox that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingEffect {
    /// The effect's key.
    pub key: String,
    /// What is to be done.
    pub effect: Effect,
}

/// The result of checks on a base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBaseline {
    /// One result per check.
    pub checks: Vec<BaselineCheck>,
    /// When they ran.
    pub found_at: Timestamp,
}

/// How many baselines are stored; the oldest go first.
pub const MOST_BASELINES: usize = 512;

/// Why the store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No goal by this id.
    #[error("there is no goal {0}")]
    NotFound(GoalId),
    /// There is one already.
    #[error("goal {0} exists already")]
    Exists(GoalId),
    /// Somebody wrote in between.
    #[error("goal {goal} moved on: expected its log to end at {expected}, it ends at {found}")]
    Conflict {
        goal: GoalId,
        /// What the writer knew.
        expected: Seq,
        /// What is there.
        found: Seq,
    },
    /// The lease is somebody else's by now.
    #[error("goal {goal} is driven by another process now (lease {held}, ours was {ours})")]
    Fenced {
        goal: GoalId,
        /// The writer's generation.
        ours: Generation,
        /// The generation in force.
        held: Generation,
    },
    /// The lease is held and has not run out.
    #[error("goal {goal} is held by {} until {until}", worker.0)]
    Held { goal: GoalId, worker: WorkerName, until: Timestamp },
    /// Nothing more can be written: the disk is full.
    #[error("no space left for {path}; free some and try again: nothing that was stored is lost")]
    NoSpace { path: String },
    /// The database cannot be read or written for now: another process holds its lock, or the disk fails.
    #[error("{path}: {message}")]
    Unavailable { path: String, message: String },
    /// The database was written by a newer version.
    #[error("{path} was written by a newer version of Towline; use that version, or another TOWLINE_HOME")]
    TooNew { path: String },
    /// The database is to be upgraded while engines use it.
    #[error(
        "cannot upgrade {path}, which an earlier version of Towline wrote: {} of that version {} running (pid {})",
        if pids.len() == 1 { "an engine" } else { "engines" },
        if pids.len() == 1 { "is" } else { "are" },
        pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
    )]
    InUse {
        path: String,
        /// The engines' processes.
        pids: Vec<u32>,
    },
    /// What is stored of this goal cannot be read; other goals can.
    #[error("{why}; was it written by another version of Towline?")]
    Unreadable {
        goal: GoalId,
        /// What cannot be read, and why.
        why: String,
    },
    /// Any other error of the database.
    #[error("{path}: {message}")]
    Database { path: String, message: String },
}

impl StoreError {
    /// Whether the same call may succeed later, without anybody changing what is stored.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::NoSpace { .. } | Self::Unavailable { .. })
    }
}

/// Where goals are stored. Every method is one transaction, and what it returned is safe from a crash of the machine.
///
/// A call whose future is dropped may still take effect. Methods that name a goal fail with
/// [`StoreError::NotFound`] when there is none; only [`Store::release`] does not mind.
#[async_trait]
pub trait Store: Send + Sync {
    /// Records a new goal with its first event.
    async fn create(
        &self,
        goal: &Goal,
        state: &GoalState,
        created: Envelope,
    ) -> Result<GoalRecord, StoreError> {
        let created = self.create_all(&[(goal.clone(), state.clone(), created)]).await?;
        created.into_iter().next().ok_or(StoreError::NotFound(goal.id))
    }

    /// Records new goals, each with its first event: all of them or, when one is refused, none.
    async fn create_all(&self, goals: &[(Goal, GoalState, Envelope)]) -> Result<Vec<GoalRecord>, StoreError>;

    /// The goal by its id.
    async fn load(&self, goal: GoalId) -> Result<GoalRecord, StoreError>;

    /// Goals that a person may mean by `given` (see [`GoalId::matches`]), at most `limit`, in the order of their ids.
    async fn find(&self, given: &str, limit: usize) -> Result<Vec<Listed>, StoreError>;

    /// Goals in short, in the order of their creation, and by id among those of one moment.
    async fn list(&self, listing: &Listing) -> Result<Vec<Listed>, StoreError>;

    /// Records one transition, all of it or, when it is refused, nothing. A state in which two attempts run is
    /// refused.
    async fn append(&self, append: Append) -> Result<Appended, StoreError>;

    /// Events after `after`, at most `limit`, in order.
    async fn events(&self, goal: GoalId, after: Seq, limit: usize) -> Result<Vec<Envelope>, StoreError>;

    /// Events of all goals after this place, at most `limit`, in the order in which they were recorded. A place is never
    /// used twice, and one that is visible has all before it visible. An event that cannot be read is left out; [`Store::events`] reports it.
    async fn events_since(
        &self,
        after: PoolSeq,
        limit: usize,
    ) -> Result<Vec<(PoolSeq, Envelope)>, StoreError>;

    /// The place of the newest event of all goals.
    async fn last_place(&self) -> Result<PoolSeq, StoreError>;

    /// Accounts as attempts last saw them, by name. One that cannot be read is left out until an attempt reports it again.
    async fn accounts(&self) -> Result<Vec<Account>, StoreError>;

    /// Records the state of an account: the operator opened it, or its credentials were accepted.
    async fn set_account(&self, account: &Account) -> Result<(), StoreError>;

    /// What an attempt of each agent usually costs: the median of its last 20 that ended.
    async fn usual_costs(&self) -> Result<BTreeMap<AgentName, MicroUsd>, StoreError>;

    /// Goals that hold a slot, and of each lane the first `most` that wait for a slot and for no other goal, in the order of their
    /// ranks. Takes as long with many goals in the queue as with few, and may leave out lanes for that. A goal whose place in the
    /// queue cannot be read is left out.
    async fn pool(&self, most: usize) -> Result<PoolView, StoreError>;

    /// Goals that wait for a slot and for no other goal, in the order of their ranks and by id among equals, after this place, at most
    /// `limit`.
    async fn ready(&self, after: (Timestamp, GoalId), limit: usize) -> Result<Vec<PoolGoal>, StoreError>;

    /// Goals that wait for their start, in the order of their ranks and by id among equals, after this place, at most `limit`.
    async fn queue(
        &self,
        after: Option<(Timestamp, GoalId)>,
        limit: usize,
    ) -> Result<Vec<QueuedGoal>, StoreError>;

    /// The prerequisites of a goal that have not come to their end.
    async fn unmet(&self, goal: GoalId) -> Result<Vec<Unmet>, StoreError>;

    /// When the first goal that waits for a time is to be resumed. Whoever holds a goal wakes it, so goals with a lease do not count.
    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Waits until what another process is writing can be read, or was given up. A database reports a write before it can be read.
    async fn settled(&self) -> Result<(), StoreError>;

    /// Notifications that are due, the one that is due longest first. One that cannot be read is left out.
    async fn notices(&self, now: Timestamp, limit: usize) -> Result<Vec<PendingNotice>, StoreError>;

    /// Records what came of a try to notify.
    async fn settle_notice(&self, notice: NoticeId, outcome: NoticeOutcome) -> Result<(), StoreError>;

    /// Stores the reply to a request by its key, unless there is one that is not older than `since`, and gives that one back. Older ones
    /// are removed.
    async fn begin_reply(
        &self,
        key: &str,
        reply: &StoredReply,
        since: Timestamp,
    ) -> Result<Option<StoredReply>, StoreError>;

    /// Replaces the reply by this key, or removes it: the request may be sent again.
    async fn finish_reply(&self, key: &str, reply: Option<&StoredReply>) -> Result<(), StoreError>;

    /// What was used since this moment, in the order of the keys. Its quarter of an hour counts as a whole, and so do removed goals.
    async fn spending(&self, since: Timestamp, by: SpendBy) -> Result<Vec<Spending>, StoreError>;

    /// What was spent between two moments, or in all time. Quarters of an hour count by their beginning, and removed goals count.
    /// Costs the same however much the ledger holds.
    async fn spent(&self, during: Option<(Timestamp, Timestamp)>) -> Result<SpentByProject, StoreError>;

    /// Entries of the outbox that are not over, in the order they were written.
    async fn pending(&self, goal: GoalId) -> Result<Vec<PendingEffect>, StoreError>;

    /// Takes the goal's lease under a new generation: 1 at first, one more with every claim. Refused while another
    /// worker's holds (its end is after `now`), unless that worker is `proven_dead`. A worker that claims what it
    /// holds gets a new generation, too, which fences whoever else goes by its name.
    async fn claim(
        &self,
        goal: GoalId,
        worker: &WorkerName,
        now: Timestamp,
        until: Timestamp,
        proven_dead: Option<&WorkerName>,
    ) -> Result<Lease, StoreError>;

    /// Moves the end of a lease that is still ours, also when it has run out and nobody came.
    async fn renew(&self, lease: &Lease, until: Timestamp) -> Result<Lease, StoreError>;

    /// Removes a goal with everything that is stored about it but what it spent. Refused when the goal was claimed again since the lease.
    async fn remove(&self, lease: &Lease) -> Result<(), StoreError>;

    /// The result of checks on a base, by a hash of everything that decides it.
    async fn baseline(&self, key: &str) -> Result<Option<StoredBaseline>, StoreError>;

    /// Stores the result of checks on a base, replacing an earlier one. Of all keys the newest [`MOST_BASELINES`] stay.
    async fn store_baseline(&self, key: &str, baseline: &StoredBaseline) -> Result<(), StoreError>;

    /// Gives a lease back. Giving back one that is not ours any more changes nothing.
    async fn release(&self, lease: &Lease) -> Result<(), StoreError>;
}
