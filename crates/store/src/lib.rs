//! Where goals are stored.
//!
//! [`Store`] speaks in domain words; [`SqliteStore`] is the implementation inside the binary, and `MemoryStore` (feature
//! `memory`) the one for tests. One conformance suite (feature `conformance`) holds for every implementation. Business
//! rules are not here: what a state means is the core's, and when to write is the engine's.

mod ledger;
#[cfg(any(test, feature = "memory"))]
mod memory;
mod pool;
mod sqlite;
mod store;
mod summary;
mod upgrade;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub use ledger::{Amounts, SpendBy, Spending, SpentByProject};
#[cfg(any(test, feature = "memory"))]
pub use memory::MemoryStore;
pub use pool::{NoticeId, NoticeOutcome, PendingNotice, PoolView, QueuedGoal, StoredReply, Unmet};
pub use sqlite::SqliteStore;
pub use store::{
    Append, Appended, GoalRecord, Lease, MOST_BASELINES, PendingEffect, Store, StoreError, StoredBaseline,
    WorkerName,
};
pub use summary::{Cursor, GoalSummary, Listed, Listing, Loaded, Order, UnreadableGoal, list_all, load_all};
pub use upgrade::{UpgradeGuard, UpgradeStep};
