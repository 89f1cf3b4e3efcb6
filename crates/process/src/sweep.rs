//! Finding and ending processes, those below a supervisor and those that have lost it.
//!
//! When a supervisor is killed, the program dies with it. What the program had started comes to the process that started the
//! supervisor (`reaper`). If that is gone too, such processes are no longer found by descent. A value in their environment that is
//! unique to a run finds those that did not start with another one.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::platform::{self, Delivery, ProcessId, Signal};

/// Rounds of freezing before the kill; a tree that still grows after so many is met again in the next pass.
const FREEZE_ROUNDS: usize = 8;

/// Running processes that were started with `name=value` in their environment, and the supervisors above them with their whole
/// trees. Only processes of the same user can be seen. Empty where the system offers no way to look.
pub fn processes_with_env(name: &str, value: &str) -> Vec<ProcessId> {
    platform::environment_has(format!("{name}={value}").as_bytes())
}

/// Ends whatever `find` finds, until it finds nothing: SIGKILL, again and again, for at most `patience`.
/// Gives back what is still there. Blocks, so call it from a thread that may.
pub fn end_processes(mut find: impl FnMut() -> Vec<ProcessId>, patience: Duration) -> Vec<ProcessId> {
    let give_up = Instant::now() + patience;
    loop {
        let left = find();
        if left.is_empty() || Instant::now() >= give_up {
            return left;
        }
        freeze_and_kill(&mut find, |_, _| ());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends a supervisor and everything below it, from outside. Gives back what is still there after `patience`. Blocks.
pub fn end_supervisor(supervisor: ProcessId, patience: Duration) -> Vec<ProcessId> {
    let tree = || {
        if !supervisor.is_running() {
            return Vec::new();
        }
        // The supervisor comes first: it is stopped before its tree could be handed on.
        std::iter::once(supervisor).chain(platform::descendants(supervisor.pid)).collect()
    };
    end_processes(tree, patience)
}

/// One pass of ending: stops everything that `find` finds, until it finds nothing new, and only then kills.
/// A process that is stopped cannot fork, so nothing is born between the look and the kill. Tells `seen` of
/// every process it signalled and how that went.
pub(crate) fn freeze_and_kill(
    mut find: impl FnMut() -> Vec<ProcessId>,
    mut seen: impl FnMut(ProcessId, std::io::Result<Delivery>),
) {
    let mut frozen = HashSet::new();
    for _ in 0..FREEZE_ROUNDS {
        let fresh: Vec<_> = find().into_iter().filter(|process| frozen.insert(*process)).collect();
        if fresh.is_empty() {
            break;
        }
        for process in fresh {
            // A failure here shows again at the kill, which reports it.
            let _ = platform::send(process, Signal::Stop);
        }
    }
    for process in frozen {
        seen(process, platform::send(process, Signal::Kill));
    }
}
