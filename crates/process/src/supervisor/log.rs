//! The supervisor's own words. They go to standard error, which is `shim.log` in the run's directory.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::clock;

/// More than this is repetition, which must not fill the disk.
const MOST_LINES: u32 = 1000;

static LINES: AtomicU32 = AtomicU32::new(0);

/// Writes one line. A failure is ignored, because there is nobody to report it to.
pub(super) fn note(message: &str) {
    if LINES.fetch_add(1, Ordering::Relaxed) < MOST_LINES {
        let _ = writeln!(std::io::stderr(), "{} {message}", clock::unix_ms());
    }
}
