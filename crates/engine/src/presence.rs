//! How an engine knows that another is alive: by the process in its name, and by a lock file that the system releases
//! when the process ends.
//!
//! Every process of the same user can hold a lock, so a lock counts only if its name belongs to an engine whose process
//! is alive.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use towline_process::ProcessId;
use towline_store::WorkerName;
use uuid::Uuid;

use crate::home::Home;

/// What the lock of an engine ends in after another one has taken its place.
pub(crate) const FENCED: &str = "fenced";

/// This engine's proof of life. Held as long as the engine is.
#[derive(Debug)]
pub(crate) struct Presence {
    worker: WorkerName,
    directory: PathBuf,
    /// Its lock is released when the process ends, however it ends.
    _lock: File,
}

impl Presence {
    /// Announces an engine by this name, and removes the files of dead ones.
    pub(crate) fn announce(directory: &Path, worker: WorkerName) -> io::Result<Self> {
        for path in stale_files(directory)? {
            // What cannot be removed now stays for the next engine.
            let _ = fs::remove_file(path);
        }
        // Locked before it has its name, so that no process ever sees it free.
        let unnamed = directory.join(format!("{}.new", worker.0));
        let lock = towline_files::create_new(&unnamed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(&unnamed, lock_path(directory, &worker))?;
        Ok(Self { worker, directory: directory.to_owned(), _lock: lock })
    }

    /// The engine's name.
    pub(crate) const fn worker(&self) -> &WorkerName {
        &self.worker
    }

    /// The file by which others see that it lives.
    pub(crate) fn lock_path(&self) -> PathBuf {
        lock_path(&self.directory, &self.worker)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Left-overs are cleared by the next engine, so a failure here is of no consequence.
        let _ = fs::remove_file(self.directory.join(socket_name(&self.worker)));
        let _ = fs::remove_file(lock_path(&self.directory, &self.worker));
        let _ = fs::remove_file(lock_path(&self.directory, &self.worker).with_extension(FENCED));
    }
}

/// A name for an engine in this process that no other has.
pub(crate) fn new_name() -> io::Result<WorkerName> {
    Ok(name_of_process(ProcessId::of(std::process::id()).ok_or(io::ErrorKind::NotFound)?))
}

/// A name for an engine in a process that no other has.
pub(crate) fn name_of_process(process: ProcessId) -> WorkerName {
    let unique = Uuid::new_v4().as_fields().0;
    let ProcessId { pid, start_time } = process;
    WorkerName(format!("{pid}-{start_time}-{}-{unique:08x}", process_namespace().unwrap_or(0)))
}

/// The process in an engine's name, and the namespace of its process number.
pub(crate) fn process_of(worker: &WorkerName) -> Option<(ProcessId, u64)> {
    let mut parts = worker.0.split('-');
    let process = ProcessId { pid: parts.next()?.parse().ok()?, start_time: parts.next()?.parse().ok()? };
    let namespace = parts.next()?.parse().ok()?;
    (parts.next()?.len() == 8 && parts.next().is_none()).then_some((process, namespace))
}

/// Where process numbers mean the same as for us: a container has its own.
fn process_namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").ok().map(|about| about.ino())
}

/// Whether the process numbers of this namespace can be looked up here.
pub(crate) fn is_own_namespace(namespace: u64) -> bool {
    process_namespace().unwrap_or(0) == namespace
}

/// Whether the engine by this name is certainly not running on this machine any more.
pub(crate) fn is_dead(directory: &Path, worker: &WorkerName) -> bool {
    let Some((process, namespace)) = process_of(worker) else { return true };
    if is_own_namespace(namespace) && !process.is_running() {
        return true;
    }
    is_unlocked(&lock_path(directory, worker))
}

fn is_unlocked(path: &Path) -> bool {
    match towline_files::open(path) {
        // Shared, so that two that look at the same time do not take each other for the engine.
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_ok(),
        // What is no regular file is no lock.
        Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::Other),
    }
}

/// Takes the place of an engine that is suspended: it counts as dead from now on, and learns of it when it continues. Its lock is
/// renamed, so both happen at once.
pub(crate) fn fence_off(directory: &Path, worker: &WorkerName) -> io::Result<()> {
    let lock = lock_path(directory, worker);
    fs::rename(&lock, lock.with_extension(FENCED))
}

/// The name of an engine's socket.
pub(crate) fn socket_name(worker: &WorkerName) -> String {
    format!("{}.sock", worker.0)
}

fn lock_path(directory: &Path, worker: &WorkerName) -> PathBuf {
    directory.join(format!("{}.lock", worker.0))
}

/// The ids of the processes whose engines run in this state directory.
pub fn running_engines(home: &Home) -> io::Result<Vec<u32>> {
    let mut pids: Vec<u32> =
        living_engines(&home.engines())?.iter().map(|(_, process)| process.pid).collect();
    pids.sort_unstable();
    Ok(pids)
}

/// The engines that live, each with its process.
pub(crate) fn living_engines(directory: &Path) -> io::Result<Vec<(WorkerName, ProcessId)>> {
    let mut engines = announced_engines(directory)?;
    engines.retain(|(worker, _)| !is_dead(directory, worker));
    Ok(engines)
}

/// The engines that have a lock, dead or alive, each with its process.
pub(crate) fn announced_engines(directory: &Path) -> io::Result<Vec<(WorkerName, ProcessId)>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut engines = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".lock")) else { continue };
        let worker = WorkerName(name.to_owned());
        if let Some((process, _)) = process_of(&worker) {
            engines.push((worker, process));
        }
    }
    Ok(engines)
}

/// Locks and sockets of engines that are dead. A socket is never there before its lock. An engine that was fenced off needs its
/// lock as long as its process lives.
pub(crate) fn stale_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut stale = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let worker = name.strip_suffix(".lock").or_else(|| name.strip_suffix(".sock"));
        let is_stale = match worker {
            Some(worker) => is_dead(directory, &WorkerName(worker.to_owned())),
            None => {
                Path::new(name).extension().is_some_and(|end| end == FENCED)
                    && is_unlocked(&directory.join(name))
            }
        };
        if is_stale {
            stale.push(directory.join(name));
        }
    }
    Ok(stale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(directory: &Path) -> Presence {
        Presence::announce(directory, new_name().expect("a name")).expect("announced")
    }

    /// A file whose lock is held.
    fn held(directory: &Path, worker: &WorkerName) -> File {
        let file = File::create(lock_path(directory, worker)).expect("a file");
        file.lock().expect("locked");
        file
    }

    #[test]
    fn an_engine_is_alive_and_its_process_known_while_its_presence_is_held_and_dead_after() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let home = Home::create(dir.path().join("state")).expect("a state directory");
        assert_eq!(running_engines(&home).expect("none"), Vec::<u32>::new());
        home.make(&home.engines()).expect("made");
        fs::write(home.engines().join("gone.lock"), "").expect("written");
        let presence = announced(&home.engines());
        let worker = presence.worker().clone();
        assert!(!is_dead(&home.engines(), &worker));
        assert_eq!(running_engines(&home).expect("one"), [std::process::id()]);
        drop(presence);
        assert!(is_dead(&home.engines(), &worker));
        assert_eq!(running_engines(&home).expect("none"), Vec::<u32>::new());
    }

    #[test]
    fn the_lock_of_a_made_up_or_dead_engine_counts_for_nothing_whoever_holds_it() {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let ours = new_name().expect("a name");
        let (process, namespace) = process_of(&ours).expect("a process");
        let ProcessId { pid, start_time } = process;
        for planted in [
            "made-up".to_owned(),
            Uuid::now_v7().simple().to_string(),
            format!("{pid}-{}-{namespace}-00000000", start_time + 1),
            format!("{pid}-{start_time}-{namespace}-0"),
            format!("4194304-{start_time}-{namespace}-00000000"),
        ] {
            let worker = WorkerName(planted);
            let _lock = held(directory.path(), &worker);
            assert!(is_dead(directory.path(), &worker), "{worker:?}");
        }
        let elsewhere = WorkerName(format!("4194304-{start_time}-{}-00000000", namespace + 1));
        let lock = held(directory.path(), &elsewhere);
        assert!(!is_dead(directory.path(), &elsewhere), "its process cannot be seen from here");
        drop(lock);
        assert!(is_dead(directory.path(), &elsewhere));
    }

    #[test]
    fn what_is_in_the_place_of_a_lock_makes_nobody_wait() {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let worker = new_name().expect("a name");
        let path = lock_path(directory.path(), &worker);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a FIFO");
        assert!(is_dead(directory.path(), &worker));
        announced(directory.path());
        assert!(!path.exists(), "it is cleared");
        fs::create_dir(&path).expect("a directory");
        assert!(is_dead(directory.path(), &worker));
        announced(directory.path());
    }

    #[test]
    fn an_engine_that_is_fenced_off_counts_as_dead_and_its_lock_stays_for_it() {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let first = announced(directory.path());
        let fenced = first.lock_path().with_extension(FENCED);
        fence_off(directory.path(), first.worker()).expect("fenced off");
        assert!(is_dead(directory.path(), first.worker()));
        let _second = announced(directory.path());
        assert!(fenced.exists(), "it is what shows the first one that it was fenced off");
        drop(first);
        assert!(!fenced.exists());
        // A process that is killed removes nothing.
        fs::write(&fenced, "").expect("written");
        let _third = announced(directory.path());
        assert!(!fenced.exists());
    }

    #[test]
    fn what_a_dead_engine_left_is_cleared_and_a_living_one_is_not() {
        let directory = tempfile::tempdir().expect("a scratch directory");
        fs::write(directory.path().join("gone.lock"), "").expect("written");
        fs::write(directory.path().join("gone.sock"), "").expect("written");
        let first = announced(directory.path());
        let _second = announced(directory.path());
        assert!(!directory.path().join("gone.lock").exists());
        assert!(!directory.path().join("gone.sock").exists());
        assert!(!is_dead(directory.path(), first.worker()));
    }
}
