//! Everything that differs between operating systems, behind one set of functions.
//!
//! Linux has child subreapers, parent death signals, pidfds and `/proc`, so a whole tree can be found and ended
//! whatever its members do. Elsewhere only the program's process group is known: what leaves the group escapes.

use std::io;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;

#[cfg(not(target_os = "linux"))]
mod group;
#[cfg(not(target_os = "linux"))]
use group as system;

pub(crate) use system::{
    Mark, adopt_orphans, arguments, die_with_parent, environment_has, first_grandchild,
    give_up_supervisors_name, has_supervisors_name, is_ours, orphans, own_group, own_processes, peer_of,
    raise_descriptor_limit, reap_orphans, refuse_tracers, send, strays, take_supervisors_name, tree_of,
    yield_to_others,
};
pub use system::{ancestors, descendants, has_lost_supervisor, own_number};

/// How often the parents of a process are looked at anew because one of them ended meanwhile.
const MOST_LOOKS: usize = 50;

/// Looks at the parents of a process again and again until none of them has ended during the look. `look` returns nothing if one has.
pub(crate) fn with_steady_parents<T>(
    pid: u32,
    mut look: impl FnMut() -> io::Result<Option<T>>,
) -> io::Result<T> {
    for _ in 0..MOST_LOOKS {
        if let Some(found) = look()? {
            return Ok(found);
        }
    }
    Err(io::Error::other(format!("the parents of process {pid} cannot be followed")))
}

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The process number.
    pub pid: u32,
    /// When it started, in the system's own ticks; compared, never interpreted.
    pub start_time: u64,
}

impl ProcessId {
    /// The process that has this number now. None as well if it cannot be looked at.
    pub fn of(pid: u32) -> Option<Self> {
        let start_time = system::start_time(pid).ok().flatten()?;
        Some(Self { pid, start_time })
    }

    /// This very process.
    pub(crate) fn current() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// Whether it still runs; a process that has ended and waits to be reaped does not. One that cannot be looked at does.
    pub fn is_running(self) -> bool {
        system::is_running(self)
    }

    /// Whether it was suspended by a signal or by a tracer, and so cannot do anything.
    pub fn is_stopped(self) -> bool {
        system::is_stopped(self)
    }
}

/// Processes that agents and checks left and that have no living supervisor.
#[derive(Debug, Default)]
pub(crate) struct Strays {
    /// They are certainly of that kind.
    pub(crate) marked: Vec<ProcessId>,
    /// They have a limit that is lower than the mark, and may be of that kind.
    pub(crate) hiding: Vec<ProcessId>,
    /// Somebody lowered our own limit, so nothing is known.
    pub(crate) is_own_limit_lowered: bool,
}

/// Whether a signal found its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Delivery {
    Sent,
    /// The process had already ended.
    Gone,
}

/// A process number as the system calls want it; zero and what does not fit have no such form.
pub(crate) fn raw_pid(pid: u32) -> Option<rustix::process::Pid> {
    i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw)
}
