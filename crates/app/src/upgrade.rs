//! A state directory of an earlier version: it is upgraded only while no engine runs.

use towline_engine::{Home, running_engines};
use towline_store::{StoreError, UpgradeGuard, UpgradeStep};

/// Shows how far an upgrade is; none when it is over.
pub type ShowUpgrade = fn(Option<UpgradeStep>);

/// Permits an upgrade while no engine runs.
pub(crate) struct Upgrade {
    pub(crate) home: Home,
    pub(crate) show: ShowUpgrade,
}

impl UpgradeGuard for Upgrade {
    fn permit(&self) -> Result<(), StoreError> {
        let path = self.home.database().display().to_string();
        match running_engines(&self.home) {
            Ok(pids) if pids.is_empty() => Ok(()),
            Ok(pids) => Err(StoreError::InUse { path, pids }),
            Err(error) => {
                let message = format!("cannot see whether an engine is running: {error}");
                Err(StoreError::Database { path, message })
            }
        }
    }

    fn progress(&self, step: UpgradeStep) {
        (self.show)(Some(step));
    }
}

impl Drop for Upgrade {
    fn drop(&mut self) {
        (self.show)(None);
    }
}
