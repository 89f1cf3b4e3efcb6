//! The supervisors that this process started: each is waited for, and what a killed one leaves is ended.
//!
//! This process adopts the orphans of its supervisors. A tree whose supervisor was killed comes to it, whatever its members did to
//! their environment or their sessions. Should this process be killed as well, the environment is what finds them
//! ([`crate::processes_with_env`]).

use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::limits;
use crate::platform::{self, ProcessId};
use crate::sweep::end_processes;

/// How long a tree that lost its supervisor may take to be gone.
const SWEEP_PATIENCE: Duration = Duration::from_secs(10);

/// Held while one is started, so that nobody takes a new supervisor for an orphan.
static SUPERVISORS: Mutex<Vec<ProcessId>> = Mutex::new(Vec::new());

/// A supervisor of this process.
#[derive(Debug)]
pub(crate) struct Supervised {
    pub(crate) process: ProcessId,
    /// Closed once it has ended and its tree was looked after. By then it has the reason if something of that may be left.
    pub(crate) gone: watch::Receiver<Option<String>>,
}

/// Starts a supervisor and looks after it to its end.
pub(crate) fn start(command: &mut Command) -> io::Result<Supervised> {
    platform::adopt_orphans()?;
    let mut known = supervisors();
    let mut child = command.spawn()?;
    let Some(process) = ProcessId::of(child.id()) else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(io::Error::other("it started and is not to be seen among the processes"));
    };
    known.push(process);
    limits::give_back_open_files(process.pid);
    drop(known);
    let (alive, gone) = watch::channel(None);
    // A task would not do: the supervisor may outlive the runtime, which waits for its blocking tasks before it shuts down.
    let _ = std::thread::Builder::new()
        .name("supervisor-reaper".to_owned())
        .stack_size(128 * 1024)
        .spawn(move || look_after(child, process, alive));
    Ok(Supervised { process, gone })
}

fn look_after(mut child: Child, process: ProcessId, alive: watch::Sender<Option<String>>) {
    let ended_well = child.wait().is_ok_and(|status| status.success());
    supervisors().retain(|known| *known != process);
    if !ended_well {
        let orphans = || platform::orphans(&supervisors(), process.start_time);
        if let Err(error) = end_processes(orphans, SWEEP_PATIENCE) {
            alive.send_replace(Some(error.to_string()));
        }
    }
    drop(alive);
    // Those that cannot be seen now are reaped with the next supervisor's.
    let _ = platform::reap_orphans(&supervisors());
}

fn supervisors() -> MutexGuard<'static, Vec<ProcessId>> {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner)
}
