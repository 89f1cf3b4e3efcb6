//! The wall clock, read in one place. Durations inside the shim use `Instant`; only what people or other
//! processes compare (deadlines, records, the index) is wall time.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch; zero on a machine whose clock stands before it.
#[expect(clippy::disallowed_methods, reason = "the shim is a process of its own and has no other clock")]
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}
