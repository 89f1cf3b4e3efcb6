//! Locks that outlive a panic elsewhere.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock, also after whoever held it has panicked: nothing is left half done under the locks of this crate.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
