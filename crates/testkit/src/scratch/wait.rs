//! Waiting for a thing, never for a time.

use std::time::{Duration, Instant};

/// The pauses between looks grow to this.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Waits until `holds` is true.
pub fn wait_for(timeout: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    wait_for_some(timeout, what, || holds().then_some(()));
}

/// Waits until `look` finds something, and returns it.
pub fn wait_for_some<T>(timeout: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + timeout;
    let mut pause = Duration::from_millis(1);
    loop {
        // Read before looking, so that the last look comes after the deadline, however long looks take.
        let late = Instant::now() >= deadline;
        if let Some(found) = look() {
            return found;
        }
        assert!(!late, "waited {timeout:?} for {what}, in vain");
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
