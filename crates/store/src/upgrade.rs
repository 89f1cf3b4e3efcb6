//! The upgrade of a database of an earlier version, as seen by the program that opens it.

use crate::StoreError;

/// Permits an upgrade of the database, and shows its progress.
pub trait UpgradeGuard: Send + Sync {
    /// Whether the database may be changed now. Asked before anything is changed, and again after the copy, which can
    /// take long.
    fn permit(&self) -> Result<(), StoreError>;

    /// Called often while the upgrade lasts.
    fn progress(&self, step: UpgradeStep);
}

/// What an upgrade is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeStep {
    /// Another process is upgrading the database.
    Waiting,
    /// The database is being copied.
    Copying {
        /// Pages that are copied.
        done: u64,
        total: u64,
    },
    /// The copy is whole, and the tables are being changed.
    ChangingTables,
}

/// Permits every upgrade and shows nothing.
pub(crate) struct Unguarded;

impl UpgradeGuard for Unguarded {
    fn permit(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn progress(&self, _step: UpgradeStep) {}
}
