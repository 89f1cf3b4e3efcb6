//! Tests in which permissions count, on machines where tests run as the superuser.

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

/// Anybody but the superuser.
const ORDINARY: u32 = 65534;

/// From now on this thread, and what it starts, is not the superuser. Comes first in a test: files of the superuser from
/// before are out of reach.
pub fn become_ordinary_user() {
    if geteuid().is_root() {
        let changed = set_thread_groups(&[])
            .and_then(|()| set_thread_gid(Gid::from_raw(ORDINARY)))
            .and_then(|()| set_thread_uid(Uid::from_raw(ORDINARY)));
        changed.unwrap_or_else(|error| panic!("cannot become an ordinary user: {error}"));
    }
}
