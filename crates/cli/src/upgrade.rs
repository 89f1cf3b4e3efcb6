//! How far the upgrade of a state directory of an earlier version is.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use towline_store::UpgradeStep;

/// An upgrade that is over sooner is not shown.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// How often the line changes.
const REFRESH: Duration = Duration::from_millis(100);

/// Clears the line that the cursor is on.
const CLEAR: &str = "\r\u{1b}[K";

/// When the upgrade began, and when its line was drawn last.
static PROGRESS: Mutex<(Option<Instant>, Option<Instant>)> = Mutex::new((None, None));

/// Shows an upgrade on a terminal; clears the line when it is over.
pub(crate) fn show_upgrade(step: Option<UpgradeStep>) {
    let now = Instant::now();
    let mut progress = PROGRESS.lock().unwrap_or_else(PoisonError::into_inner);
    let (begun, drawn) = &mut *progress;
    let Some(step) = step else {
        if drawn.take().is_some() {
            draw(CLEAR);
        }
        return;
    };
    let begun = *begun.get_or_insert(now);
    let is_early = now < begun + SHOWN_AFTER || drawn.is_some_and(|drawn| now < drawn + REFRESH);
    if !is_early && io::stderr().is_terminal() {
        *drawn = Some(now);
        draw(&format!("{CLEAR}{}", line(step, now - begun)));
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
