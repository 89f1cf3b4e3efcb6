//! Work side by side, because each part waits for git.

use std::thread::ScopedJoinHandle;

/// The result of a thread. Its panic is ours.
pub(crate) fn finish<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
