//! How one engine knows that another is alive: a lock file that the system releases with the process.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use towline_store::WorkerName;

use crate::home::make_private;

/// This engine's proof of life. Held as long as the engine is.
#[derive(Debug)]
pub(crate) struct Presence {
    worker: WorkerName,
    directory: PathBuf,
    /// Its lock is released when the process ends, however it ends.
    _lock: File,
}

impl Presence {
    /// Announces an engine by this name, and clears away what dead ones left.
    pub(crate) fn announce(directory: &Path, worker: WorkerName) -> io::Result<Self> {
        make_private(directory)?;
        clear_dead(directory)?;
        // Locked before it has its name, so that nobody ever sees it free.
        let unnamed = directory.join(format!("{}.new", worker.0));
        let lock = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&unnamed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(&unnamed, lock_path(directory, &worker))?;
        Ok(Self { worker, directory: directory.to_owned(), _lock: lock })
    }

    /// The engine's name.
    pub(crate) const fn worker(&self) -> &WorkerName {
        &self.worker
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Left-overs are cleared by the next engine, so a failure here is of no consequence.
        let _ = fs::remove_file(socket_path(&self.directory, &self.worker));
        let _ = fs::remove_file(lock_path(&self.directory, &self.worker));
    }
}

/// Whether the engine by this name is certainly not running on this machine any more.
pub(crate) fn is_dead(directory: &Path, worker: &WorkerName) -> bool {
    match File::open(lock_path(directory, worker)) {
        // Shared, so that two that look at the same time do not take each other for the engine.
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// The name of an engine's socket.
pub(crate) fn socket_name(worker: &WorkerName) -> String {
    format!("{}.sock", worker.0)
}

fn socket_path(directory: &Path, worker: &WorkerName) -> PathBuf {
    directory.join(socket_name(worker))
}

fn lock_path(directory: &Path, worker: &WorkerName) -> PathBuf {
    directory.join(format!("{}.lock", worker.0))
}

/// Locks and sockets of engines that are dead. A socket is never there before its lock.
pub(crate) fn stale_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut stale = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let worker = name.strip_suffix(".lock").or_else(|| name.strip_suffix(".sock"));
        if worker.is_some_and(|worker| is_dead(directory, &WorkerName(worker.to_owned()))) {
            stale.push(directory.join(name));
        }
    }
    Ok(stale)
}

fn clear_dead(directory: &Path) -> io::Result<()> {
    for path in stale_files(directory)? {
        // What cannot be removed now stays for the next engine.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_alive_while_its_presence_is_held_and_dead_after() {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let worker = WorkerName("one".into());
        assert!(is_dead(directory.path(), &worker));
        let presence = Presence::announce(directory.path(), worker.clone()).expect("announced");
        assert!(!is_dead(directory.path(), &worker));
        drop(presence);
        assert!(is_dead(directory.path(), &worker));
    }

    #[test]
    fn what_a_dead_engine_left_is_cleared_and_a_living_one_is_not() {
        let directory = tempfile::tempdir().expect("a scratch directory");
        fs::write(directory.path().join("gone.lock"), "").expect("written");
        fs::write(directory.path().join("gone.sock"), "").expect("written");
        let first = Presence::announce(directory.path(), WorkerName("first".into())).expect("announced");
        let _second = Presence::announce(directory.path(), WorkerName("second".into())).expect("announced");
        assert!(!directory.path().join("gone.lock").exists());
        assert!(!directory.path().join("gone.sock").exists());
        assert!(!is_dead(directory.path(), first.worker()));
    }
}
