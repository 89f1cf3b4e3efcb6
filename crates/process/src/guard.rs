//! What a client can do about a supervisor from outside: find out whether it lives, wake one that was suspended, and end one that
//! does not answer, together with its tree.

use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::platform::{self, ProcessId};
use crate::reaper::Supervised;
use crate::sweep::end_supervisor;

/// How often a supervisor that has nothing to report is looked at.
const LOOK_PAUSE: Duration = Duration::from_secs(2);
/// How often in a row it may be found suspended.
const MOST_SUSPENSIONS: u32 = 3;
/// How long a supervisor that hung up may take to be gone.
const EXIT_MOMENT: Duration = Duration::from_secs(2);
/// How long the end of a tree may take.
const END_PATIENCE: Duration = Duration::from_secs(10);
/// The same with the time that the reaper of supervisors takes.
const GONE_PATIENCE: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) process: Option<ProcessId>,
    /// Closed once it is gone and its tree was looked after; only for one that this process started.
    gone: Option<watch::Receiver<Option<String>>>,
    last_look: Instant,
    suspensions: u32,
    /// What is on disk counts once it is gone.
    pub(crate) believes_disk: bool,
}

impl Guard {
    /// Of a supervisor that this process started.
    pub(crate) fn started(supervised: Supervised) -> Self {
        Self { gone: Some(supervised.gone), believes_disk: false, ..Self::found(supervised.process) }
    }

    /// Of one that somebody else started.
    pub(crate) fn found(process: ProcessId) -> Self {
        Self { process: Some(process), ..Self::none() }
    }

    /// Of one that somebody else started, and of whose run only its own report counts.
    pub(crate) fn adopted(process: ProcessId) -> Self {
        Self { believes_disk: false, ..Self::found(process) }
    }

    /// Of one that is gone.
    pub(crate) fn none() -> Self {
        Self { process: None, gone: None, last_look: Instant::now(), suspensions: 0, believes_disk: true }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some_and(ProcessId::is_running)
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.process.is_some_and(ProcessId::is_stopped)
    }

    pub(crate) fn next_look(&self) -> Instant {
        self.last_look + LOOK_PAUSE
    }

    /// Looks whether it is suspended. It is woken, and ended if that happens again and again.
    pub(crate) async fn look(&mut self) {
        self.last_look = Instant::now();
        self.suspensions = if self.is_suspended() { self.suspensions + 1 } else { 0 };
        match self.suspensions {
            0 => {}
            1..MOST_SUSPENSIONS => self.wake(),
            // Whether that worked is found out when the connection is closed.
            _ => drop(self.end().await),
        }
    }

    /// Lets a suspended supervisor go on.
    pub(crate) fn wake(&self) {
        if let Some(process) = self.process {
            // One that is gone needs no waking.
            let _ = platform::send(process, Signal::CONT);
        }
    }

    /// Waits until it is gone with its tree, and sees to it when that takes longer than a moment. The error explains why something of
    /// it may be left.
    pub(crate) async fn end(&self) -> Result<(), String> {
        let Some(process) = self.process else { return Ok(()) };
        if let Some(gone) = &self.gone
            && let Ok(swept) = timeout(EXIT_MOMENT, closed(gone.clone())).await
        {
            return swept;
        }
        let ended = tokio::task::spawn_blocking(move || end_supervisor(process, END_PATIENCE)).await;
        let Some(gone) = &self.gone else {
            return ended.map_err(|panic| panic.to_string())?.map_err(|error| error.to_string());
        };
        // Whatever of its tree came to us meanwhile counts as well.
        match timeout(GONE_PATIENCE, closed(gone.clone())).await {
            Ok(swept) => swept,
            Err(_) => Err(format!("supervisor {} cannot be ended", process.pid)),
        }
    }
}

async fn closed(mut gone: watch::Receiver<Option<String>>) -> Result<(), String> {
    while gone.changed().await.is_ok() {}
    gone.borrow().clone().map_or(Ok(()), Err)
}
