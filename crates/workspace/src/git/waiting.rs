//! Waiting for a git command: to its end, to its time limit, or until its goal is to stop.

use std::io::{self, Read};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// How often a command whose output goes on is asked whether it is over, and how long its output may go on then: a hook
/// can leave something running that has it still open.
const END_PAUSE: Duration = Duration::from_millis(100);
const OUTPUT_GRACE: Duration = Duration::from_secs(1);

/// A request to stop that reaches git wherever it is: commands that run are ended, and no other is started.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks running and later commands to stop.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How the wait for a command ended.
pub(super) enum Waited {
    Ended,
    TooLong,
    Stopped,
}

/// A pipe that is read on a thread of its own, so that the caller can stop waiting.
pub(super) struct Gathering {
    /// What was read so far; nothing once the caller has it, and what comes later is thrown away.
    bytes: Arc<Mutex<Option<Vec<u8>>>>,
    /// Receives a value at the end of the pipe.
    at_end: Receiver<()>,
}

impl Gathering {
    pub(super) fn of(mut pipe: Option<impl Read + Send + 'static>) -> io::Result<Self> {
        let bytes = Arc::new(Mutex::new(Some(Vec::new())));
        let (ended, at_end) = mpsc::channel();
        let gathered = Arc::clone(&bytes);
        Builder::new().spawn(move || {
            let mut chunk = vec![0; 64 * 1024];
            // Of a pipe that breaks, earlier output counts; git's exit code shows the failure.
            while let Some(pipe) = pipe.as_mut()
                && let Ok(count @ 1..) = pipe.read(&mut chunk)
            {
                if let Some(bytes) = gathered.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                    bytes.extend_from_slice(&chunk[..count]);
                }
            }
            // Nobody listens any more after the time limit.
            let _ = ended.send(());
        })?;
        Ok(Self { bytes, at_end })
    }

    /// Waits for the end of the pipe, or for that of the command and a moment, until the deadline or a request to stop.
    pub(super) fn wait(&self, child: &mut Child, deadline: &mut Instant, stop: Option<&Stop>) -> Waited {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.at_end.recv_timeout(left.min(END_PAUSE)) {
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return Waited::Ended,
                Err(RecvTimeoutError::Timeout) => {}
            }
            match child.try_wait() {
                Ok(Some(_)) if left.is_zero() => return Waited::Ended,
                Ok(Some(_)) => *deadline = (*deadline).min(Instant::now() + OUTPUT_GRACE),
                _ if stop.is_some_and(Stop::is_wanted) => return Waited::Stopped,
                _ if left.is_zero() => return Waited::TooLong,
                _ => {}
            }
        }
    }

    /// What was read.
    pub(super) fn take(&self) -> Vec<u8> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}

/// Ends a command and what it has started. It may have ended by itself just now.
pub(super) fn end_group(child: &Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}
