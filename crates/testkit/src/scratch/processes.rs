//! Which processes are left: found by a unique marker in their environment, command line, program or working directory,
//! whatever session, group or parent they have by now.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Looking through all processes is not free.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A process that holds the marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its process id.
    pub pid: u32,
    /// Its command line, with spaces between the words.
    pub command: String,
}

/// Waits until no process but this one holds `marker`, as [`processes_with`] looks for it.
pub fn wait_until_process_tree_gone(marker: &str, timeout: Duration) {
    let deadline = Instant::now() + timeout;
    let mut left = processes_with(marker);
    while !left.is_empty() {
        assert!(Instant::now() < deadline, "after {timeout:?} these are left of the process tree: {left:#?}");
        std::thread::sleep(LOOK_EVERY);
        left = processes_with(marker);
    }
}

/// Kills what holds `marker`: the clean-up after a test that failed.
pub fn kill_processes_with(marker: &str) {
    // A dying tree may still fork, so look until nothing new is found; bounded, since this runs in a drop.
    for _ in 0..100 {
        let left = processes_with(marker);
        if left.is_empty() {
            return;
        }
        for found in left {
            kill(&found, marker);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The processes, without this one, that have `marker` in their environment or command line, or in the path of their
/// program or working directory: a process can drop its environment, but not all of these. One that has ended and is not
/// reaped yet has none, and is not found.
pub fn processes_with(marker: &str) -> Vec<Found> {
    assert!(!marker.is_empty(), "an empty marker is in every process");
    let entries = fs::read_dir("/proc").unwrap_or_else(|error| panic!("cannot read /proc: {error}"));
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != std::process::id() && holds(*pid, marker))
        .map(|pid| Found { pid, command: command_line(pid) })
        .collect()
}

/// A process that is gone, or belongs to someone else, holds nothing.
fn holds(pid: u32, marker: &str) -> bool {
    let texts = ["environ", "cmdline"].map(|file| fs::read(proc_path(pid, file)).unwrap_or_default());
    let symlinks = ["exe", "cwd"].map(|file| {
        fs::read_link(proc_path(pid, file)).unwrap_or_default().into_os_string().into_encoded_bytes()
    });
    texts
        .iter()
        .chain(&symlinks)
        .any(|text| text.windows(marker.len()).any(|window| window == marker.as_bytes()))
}

/// Through a pidfd, and only if it holds the marker once that is open: the number alone may be another's by now.
fn kill(found: &Found, marker: &str) {
    let Some(pid) = i32::try_from(found.pid).ok().and_then(Pid::from_raw) else { return };
    if let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
        && holds(found.pid, marker)
    {
        // It may be gone already, which is what is wanted.
        let _ = pidfd_send_signal(&process, Signal::KILL);
    }
}

fn command_line(pid: u32) -> String {
    let words = fs::read(proc_path(pid, "cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ").trim_end().to_owned()
}

fn proc_path(pid: u32, file: &str) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join(file)
}
