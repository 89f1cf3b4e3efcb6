//! Notices when another engine of the same state directory ends, however it ends.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tokio::sync::watch;
use tokio::task::JoinSet;
use towline_process::ProcessId;
use towline_store::WorkerName;

use crate::presence::{announced_engines, is_dead};

/// The other engines.
pub(crate) struct Neighbours {
    directory: PathBuf,
    own: WorkerName,
    /// Changes when an engine has come or gone by itself.
    changes: watch::Receiver<()>,
    /// Those whose lock is there, and whether they live as far as is known.
    known: BTreeMap<String, bool>,
    /// One task for each process that an engine is in.
    ends: JoinSet<()>,
}

impl Neighbours {
    /// The engines that live now, and those that come.
    pub(crate) fn new(directory: PathBuf, own: WorkerName, changes: watch::Receiver<()>) -> Self {
        let mut neighbours = Self { directory, own, changes, known: BTreeMap::new(), ends: JoinSet::new() };
        neighbours.look();
        neighbours
    }

    /// Waits until one of them has ended. Safe to drop while waiting.
    pub(crate) async fn one_ended(&mut self) {
        while !self.look() {
            tokio::select! {
                Some(_) = self.ends.join_next(), if !self.ends.is_empty() => {}
                Ok(()) = self.changes.changed() => {}
            }
        }
    }

    /// Whether one has ended since the last look, also one that came after it.
    fn look(&mut self) -> bool {
        // A directory that cannot be read has no engine that could be waited for.
        let announced = announced_engines(&self.directory).unwrap_or_default();
        let announced = announced.into_iter().filter(|(worker, _)| *worker != self.own);
        let before = std::mem::take(&mut self.known);
        for (worker, process) in announced {
            let lives = !is_dead(&self.directory, &worker);
            if lives && !before.contains_key(&worker.0) {
                self.ends.spawn(ended(process));
            }
            self.known.insert(worker.0, lives);
        }
        let lives_now = |name: &String| self.known.get(name) == Some(&true);
        let has_died = before.iter().any(|(name, lived)| *lived && !lives_now(name));
        has_died || self.known.iter().any(|(name, lives)| !lives && !before.contains_key(name))
    }
}

/// Waits for the end of a process.
#[cfg(target_os = "linux")]
async fn ended(process: ProcessId) {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use tokio::net::unix::pipe::Receiver;

    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    let handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
    // A process that is gone has no handle, or that of another process.
    let Some(handle) = handle.filter(|_| process.is_running()) else { return };
    // Whatever can be waited for is as good as a pipe.
    match Receiver::from_owned_fd_unchecked(handle) {
        Ok(handle) => drop(handle.readable().await),
        // It is noticed at the next change in the directory of engines.
        Err(_) => std::future::pending().await,
    }
}

/// There is no such thing here: the next change in the directory of engines is waited for.
#[cfg(not(target_os = "linux"))]
async fn ended(_process: ProcessId) {
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::presence::{Presence, name_of_process, new_name};

    const PATIENCE: Duration = Duration::from_secs(20);

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the test owns the process, and waits for its end")]
    async fn an_engine_whose_process_is_killed_has_ended() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let process = ProcessId::of(child.id()).expect("a process");
        // Its lock is held, as if the kernel had not released it yet: its process decides.
        let lock = std::fs::File::create(dir.path().join(format!("{}.lock", name_of_process(process).0)));
        let lock = lock.expect("a file");
        lock.lock().expect("locked");
        let (_changed, changes) = watch::channel(());
        let mut neighbours = Neighbours::new(dir.path().to_owned(), new_name().expect("a name"), changes);
        assert!(timeout(Duration::from_millis(50), neighbours.one_ended()).await.is_err(), "it lives");
        child.kill().expect("killed");
        child.wait().expect("it has ended");
        timeout(PATIENCE, neighbours.one_ended()).await.expect("it is noticed");
        assert!(timeout(Duration::from_millis(50), neighbours.one_ended()).await.is_err(), "once");
    }

    #[tokio::test]
    async fn an_engine_that_came_and_went_unseen_has_ended_and_one_that_was_dead_before_has_not() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        std::fs::write(dir.path().join("1-1-1-00000000.lock"), "").expect("written");
        let (changed, changes) = watch::channel(());
        let own = Presence::announce(dir.path(), new_name().expect("a name")).expect("announced");
        std::fs::write(dir.path().join("1-1-1-00000001.lock"), "").expect("written");
        let mut neighbours = Neighbours::new(dir.path().to_owned(), own.worker().clone(), changes);
        assert!(timeout(Duration::from_millis(20), neighbours.one_ended()).await.is_err(), "nothing new");
        std::fs::write(dir.path().join("1-1-1-00000002.lock"), "").expect("written");
        changed.send_replace(());
        timeout(PATIENCE, neighbours.one_ended()).await.expect("it is noticed");
        let other = Presence::announce(dir.path(), new_name().expect("a name")).expect("announced");
        changed.send_replace(());
        assert!(timeout(Duration::from_millis(20), neighbours.one_ended()).await.is_err(), "it lives");
        drop(other);
        changed.send_replace(());
        timeout(PATIENCE, neighbours.one_ended()).await.expect("it is noticed");
    }
}
