//! Waits of tests for files and processes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use tokio::time::{Instant, sleep};

/// Waits until a file contains this.
pub(crate) async fn contained(file: &Path, part: &str) {
    let what = format!("{} does not contain {part:?}", file.display());
    until(&what, || fs::read_to_string(file).is_ok_and(|text| text.contains(part))).await;
}

/// Waits until the process whose number is in `file` is gone and reaped.
pub(crate) async fn reaped(file: &Path) {
    let number = number_in(file);
    let pid = Pid::from_raw(number).unwrap();
    until(&format!("{number} is still there"), || test_kill_process(pid).is_err()).await;
}

/// Waits until the process whose number is in `file` is gone, or dead but not yet reaped by its new parent.
pub(crate) async fn ended(file: &Path) {
    let number = number_in(file);
    let stat = || fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    until(&format!("{number} still runs"), || stat().is_empty() || stat().contains(") Z ")).await;
}

fn number_in(file: &Path) -> i32 {
    fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

async fn until(otherwise: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{otherwise}");
        sleep(Duration::from_millis(10)).await;
    }
}
