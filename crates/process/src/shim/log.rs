//! The shim's own words. They go to standard error, which is `shim.log` in the run's directory.

use std::io::Write;

use crate::clock;

/// Writes one line. Nobody can be told when that fails, so it may.
pub(super) fn note(message: &str) {
    let _ = writeln!(std::io::stderr(), "{} {message}", clock::unix_ms());
}
