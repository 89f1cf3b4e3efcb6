//! Who the supervisor of a run is: `shim.pid`, with a lock on it that its supervisor holds for as long as it lives.
//!
//! Anyone who runs as the same user can write that file. So its content counts only if the system reports that the process it names
//! holds the lock: nobody can lock a file for another process.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Flock, FlockType, fcntl_getlk};

use crate::files;
use crate::platform::{self, ProcessId};

/// What is known of a run's supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// It never got as far as to write its file.
    Unknown,
    /// It has ended, or the file names a process that is no supervisor of this run.
    Gone,
    Running(ProcessId),
}

/// The living supervisor of a run, if there is one. One that has written the record of a run's end is none any more.
pub fn supervisor_process(dir: &Path) -> io::Result<Option<ProcessId>> {
    Ok(match look_up(dir)? {
        Identity::Running(process) => Some(process),
        Identity::Gone | Identity::Unknown => None,
    })
}

/// Removes the socket of a supervisor that is gone. One that was killed leaves it behind.
pub fn remove_dead_socket(dir: &Path) {
    if supervisor_process(dir).is_ok_and(|living| living.is_none()) {
        // What cannot be removed is in nobody's way.
        let _ = std::fs::remove_file(dir.join(files::SOCKET));
    }
}

pub(crate) fn look_up(dir: &Path) -> io::Result<Identity> {
    let Some(file) = files::open_if_present(&dir.join(files::SUPERVISOR_PID))? else {
        return Ok(Identity::Unknown);
    };
    let Some(holder) = holder_of(&file)? else { return Ok(Identity::Gone) };
    let mut text = Vec::new();
    file.take(files::SMALL_BYTES).read_to_end(&mut text)?;
    let Ok(recorded) = serde_json::from_slice::<ProcessId>(&text) else { return Ok(Identity::Gone) };
    let is_it = recorded.pid == holder && platform::is_ours(holder)? && recorded.is_running();
    Ok(if is_it { Identity::Running(recorded) } else { Identity::Gone })
}

/// The process that holds the lock on a file.
fn holder_of(file: &File) -> io::Result<Option<u32>> {
    let lock = fcntl_getlk(file, &Flock::from(FlockType::WriteLock))?;
    Ok(lock.and_then(|lock| lock.pid).and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok()))
}

/// Records that this process is the supervisor. It is for as long as the file that is given back stays open, and no other
/// handle of the same file may be closed meanwhile: that would release the lock.
pub(crate) fn claim(dir: &Path, me: ProcessId) -> io::Result<File> {
    let draft = dir.join(format!("{}.{}.tmp", files::SUPERVISOR_PID, me.pid));
    let mut file = towline_files::create_new(&draft)?;
    file.write_all(&serde_json::to_vec(&me)?)?;
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive)?;
    std::fs::rename(draft, dir.join(files::SUPERVISOR_PID))?;
    Ok(file)
}
