//! A state directory of an earlier version: whether it may be upgraded now, and how far the upgrade is.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use towline_engine::{Home, running_engines};
use towline_store::{StoreError, UpgradeGuard, UpgradeStep};

/// An upgrade that is over sooner is not shown.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// How often the line changes.
const REFRESH: Duration = Duration::from_millis(100);

/// Clears the line that the cursor is on.
const CLEAR: &str = "\r\u{1b}[K";

/// Permits an upgrade while no engine runs, and shows it on a terminal.
pub(crate) struct Upgrade {
    home: Home,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    begun: Option<Instant>,
    drawn: Option<Instant>,
}

impl Upgrade {
    pub(crate) fn of(home: &Home) -> Self {
        Self { home: home.clone(), progress: Mutex::default() }
    }
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
        let now = Instant::now();
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = *progress.begun.get_or_insert(now);
        let is_early = now < begun + SHOWN_AFTER || progress.drawn.is_some_and(|drawn| now < drawn + REFRESH);
        if is_early || !io::stderr().is_terminal() {
            return;
        }
        progress.drawn = Some(now);
        draw(&format!("{CLEAR}{}", line(step, now - begun)));
    }
}

impl Drop for Upgrade {
    fn drop(&mut self) {
        if self.progress.get_mut().unwrap_or_else(PoisonError::into_inner).drawn.is_some() {
            draw(CLEAR);
        }
    }
}

fn line(step: UpgradeStep, since: Duration) -> String {
    match step {
        UpgradeStep::Waiting => "Upgrading: waiting for another towline".to_owned(),
        UpgradeStep::Copying { done, total } => {
            format!("Upgrading: copying the database, {} %", done * 100 / total.max(1))
        }
        UpgradeStep::ChangingTables => format!("Upgrading: changing the tables, {} s", since.as_secs()),
    }
}

/// A terminal that went away is no reason to stop.
fn draw(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_one_short_line() {
        let shown = |step| line(step, Duration::from_millis(2_500));
        assert_eq!(shown(UpgradeStep::Waiting), "Upgrading: waiting for another towline");
        let copying = |done, total| shown(UpgradeStep::Copying { done, total });
        assert_eq!(copying(1, 3), "Upgrading: copying the database, 33 %");
        assert_eq!(copying(0, 0), "Upgrading: copying the database, 0 %");
        assert_eq!(shown(UpgradeStep::ChangingTables), "Upgrading: changing the tables, 2 s");
    }
}
