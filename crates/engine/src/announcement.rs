//! How a server makes itself known: a file in the state directory, which counts as long as the engine that it names lives.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use towline_store::{Listed, Listing, Store, StoreError, WorkerName, list_all};

use crate::engine::{Engine, LEASE};
use crate::error::EngineError;
use crate::home::Home;
use crate::neighbours::Neighbours;
use crate::place::lock_for_a_moment;
use crate::presence::{fence_off, is_dead, is_own_namespace, process_of};
use crate::watch::StateWatch;

/// The longest file.
const LONGEST: u64 = 16 * 1024;
/// How long another server may take to start.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// A server that is running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInfo {
    pub pid: u32,
    /// The engine in it.
    pub worker: WorkerName,
    /// Where it serves HTTP.
    pub address: String,
    /// The version of the program.
    pub version: String,
    pub started_at: Timestamp,
    /// How many goals run at once, where that was given at the start instead of in the configuration.
    #[serde(default)]
    pub slots: Option<usize>,
    /// How long running turns may take to finish when it is stopped.
    #[serde(default)]
    pub wait: Duration,
}

impl ServerInfo {
    /// Asks the server to end, as `SIGTERM` does.
    pub fn ask_to_end(&self) -> io::Result<()> {
        let (process, namespace) = process_of(&self.worker).ok_or(io::ErrorKind::NotFound)?;
        if !is_own_namespace(namespace) {
            return Err(io::Error::other("it runs in another process namespace; stop it from there"));
        }
        towline_process::terminate(process)
    }

    /// Whether its process is suspended and does nothing: by Ctrl-Z or SIGSTOP, not with the machine.
    pub fn is_suspended(&self) -> bool {
        process_of(&self.worker).is_some_and(|(process, _)| process.is_stopped())
    }
}

/// The server that runs on this state directory.
pub fn running_server(home: &Home) -> Option<ServerInfo> {
    last_server(home).filter(|server| !is_dead(&home.engines(), &server.worker))
}

/// The server that runs on this state directory, or that was killed there.
pub fn last_server(home: &Home) -> Option<ServerInfo> {
    let bytes = towline_files::read(&home.server(), LONGEST).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The right to look whether a server runs and to become the server. One process has it at a time, so that two that start at once do not
/// both find the place free. The system gives it back when its holder dies.
#[derive(Debug)]
pub struct ServerStart {
    _lock: File,
}

impl ServerStart {
    /// Waits for it, for a bounded time.
    pub async fn take(home: &Home) -> Result<Self, EngineError> {
        Ok(Self { _lock: lock_for_a_moment(home.server_lock(), START_PATIENCE).await? })
    }
}

/// Takes the place of a server whose process is suspended. Every process takes it for dead from now on. When it continues, whatever it
/// writes about a goal that was taken over is refused, and it ends.
pub fn take_place_of(home: &Home, server: &ServerInfo) -> io::Result<()> {
    fence_off(&home.engines(), &server.worker)
}

/// When the last lease of a server ends that does not renew them.
pub async fn leases_end(
    store: &dyn Store,
    server: &ServerInfo,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let held = list_all(store, Listing { held: true, ..Listing::all() }).await?;
    let leases = held.into_iter().filter_map(Listed::readable).filter_map(|goal| goal.lease);
    let end = leases.filter(|lease| lease.worker == server.worker).map(|lease| lease.until).max();
    // None lasts longer, whatever the clock was set to when it was written.
    let latest = now.checked_add(LEASE).unwrap_or(now);
    Ok(end.map(|end| end.min(latest)))
}

/// Waits until the engine of this name has ended.
pub async fn engine_ended(home: &Home, worker: &WorkerName) {
    let directory = home.engines();
    let watch = StateWatch::new(home, directory.clone());
    let mut neighbours = Neighbours::new(directory.clone(), WorkerName(String::new()), watch.removals());
    while !is_dead(&directory, worker) {
        neighbours.one_ended().await;
    }
}

/// A server is known as long as this lives.
#[derive(Debug)]
pub struct Announcement {
    path: PathBuf,
    server: ServerInfo,
}

impl Engine {
    /// Makes a server with this engine known.
    pub fn announce(
        &self,
        address: String,
        version: String,
        slots: Option<usize>,
        wait: Duration,
    ) -> io::Result<Announcement> {
        let shared = self.shared();
        let (pid, worker) = (std::process::id(), self.worker().clone());
        let started_at = shared.clock.now();
        let server = ServerInfo { pid, worker, address, version, started_at, slots, wait };
        let path = shared.home.server();
        towline_files::replace(&path, &serde_json::to_vec(&server)?)?;
        Ok(Announcement { path, server })
    }
}

impl Announcement {
    /// What others read.
    pub const fn server(&self) -> &ServerInfo {
        &self.server
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        let known = towline_files::read(&self.path, LONGEST).ok();
        let known = known.and_then(|bytes| serde_json::from_slice::<ServerInfo>(&bytes).ok());
        // Another server may have come meanwhile. One that is gone counts for nothing, so a file that stays does no harm.
        if known.is_some_and(|known| known.worker == self.server.worker) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presence::name_of_process;

    #[test]
    fn a_server_in_another_process_namespace_is_not_asked_to_end_by_a_number_that_means_nothing_here() {
        let ourselves = towline_process::ProcessId::of(std::process::id()).expect("this process");
        let WorkerName(name) = name_of_process(ourselves);
        let parts: Vec<&str> = name.split('-').collect();
        let elsewhere = WorkerName(format!("{}-{}-1-{}", parts[0], parts[1], parts[3]));
        let server = ServerInfo {
            pid: ourselves.pid,
            worker: elsewhere,
            address: String::new(),
            version: String::new(),
            started_at: Timestamp::UNIX_EPOCH,
            slots: None,
            wait: Duration::ZERO,
        };
        let refused = server.ask_to_end().expect_err("no signal is sent");
        assert!(refused.to_string().contains("another process namespace"), "{refused}");
    }
}
