//! Linux: the whole tree, found through `/proc`, kept together by the child subreaper attribute, and signalled
//! through pidfds so that a reused process number is never hit.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::process::{
    PidfdFlags, Signal as Number, getpid, getppid, pidfd_open, pidfd_send_signal, set_child_subreaper,
    set_parent_process_death_signal,
};

use super::{Delivery, ProcessId, Signal, raw_pid};

/// Makes this process the parent of every descendant whose own parent dies.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// In a new child, before it executes the program: die when `parent` dies, even if it has died just now.
/// Only makes system calls, as code between fork and exec must.
pub(crate) fn die_with_parent(parent: rustix::process::Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Number::KILL))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
}

pub(crate) fn start_time(pid: u32) -> Option<u64> {
    Stat::read(pid, &mut Vec::new()).map(|stat| stat.start_time)
}

pub(crate) fn is_running(process: ProcessId) -> bool {
    Stat::read(process.pid, &mut Vec::new())
        .is_some_and(|stat| stat.start_time == process.start_time && stat.is_running())
}

pub(crate) fn descendants(root: u32) -> Vec<ProcessId> {
    let mut children: HashMap<u32, Vec<(ProcessId, bool)>> = HashMap::new();
    let mut scratch = Vec::new();
    for pid in all_pids() {
        if let Some(stat) = Stat::read(pid, &mut scratch) {
            let process = ProcessId { pid, start_time: stat.start_time };
            children.entry(stat.parent).or_default().push((process, stat.is_running()));
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for (process, running) in children.remove(&parent).unwrap_or_default() {
            parents.push(process.pid);
            if running {
                found.push(process);
            }
        }
    }
    found
}

/// Everything below this process. The program's own identity is not needed here: orphans come to us.
pub(crate) fn tree_of(_leader: ProcessId) -> Vec<ProcessId> {
    descendants(std::process::id())
}

/// Sends a signal to exactly this process. The pidfd holds on to whoever has the number now; if the start time
/// read *after* it was opened is the expected one, it is the expected process.
pub(crate) fn send(target: ProcessId, signal: Signal) -> io::Result<Delivery> {
    let Some(pid) = raw_pid(target.pid) else { return Ok(Delivery::Gone) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(Errno::SRCH) => return Ok(Delivery::Gone),
        Err(error) => return Err(error.into()),
    };
    if start_time(target.pid) != Some(target.start_time) {
        return Ok(Delivery::Gone);
    }
    match pidfd_send_signal(&handle, signal.number()) {
        Ok(()) => Ok(Delivery::Sent),
        Err(Errno::SRCH) => Ok(Delivery::Gone),
        Err(error) => Err(error.into()),
    }
}

/// Processes of ours that were started with this exact `NAME=value` in their environment.
pub(crate) fn environment_has(entry: &[u8]) -> Vec<ProcessId> {
    let mut scratch = Vec::new();
    all_pids()
        .filter_map(|pid| {
            let before = Stat::read(pid, &mut scratch).filter(Stat::is_running)?;
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let carries = environment.split(|byte| *byte == 0).any(|known| known == entry);
            carries.then_some(ProcessId { pid, start_time: before.start_time })
        })
        .collect()
}

/// Can be waited for until a file is written to.
pub(crate) struct GrowthWatch(OwnedFd);

impl GrowthWatch {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        inotify::add_watch(&watch, path, inotify::WatchFlags::MODIFY)?;
        Ok(Self(watch))
    }

    /// Forgets what was written up to now. To be called before the file is looked at, or a write in between is missed.
    pub(crate) fn clear(&self) {
        let mut events = [0; 512];
        while rustix::io::read(&self.0, &mut events).is_ok_and(|count| count > 0) {}
    }
}

impl AsFd for GrowthWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn all_pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The fields of `/proc/PID/stat` that matter here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: u8,
    parent: u32,
    threads: u32,
    start_time: u64,
}

impl Stat {
    fn read(pid: u32, scratch: &mut Vec<u8>) -> Option<Self> {
        scratch.clear();
        File::open(format!("/proc/{pid}/stat")).ok()?.read_to_end(scratch).ok()?;
        Self::parse(scratch)
    }

    /// The name in the second field may hold spaces and parentheses; after the last one the fields are plain.
    fn parse(text: &[u8]) -> Option<Self> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(text.get(name_end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let threads = fields.nth(15)?.parse().ok()?;
        let start_time = fields.nth(1)?.parse().ok()?;
        Some(Self { state, parent, threads, start_time })
    }

    /// A process whose first thread has exited shows as a zombie while its other threads go on.
    fn is_running(&self) -> bool {
        match self.state {
            b'Z' => self.threads > 1,
            b'X' | b'x' => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_parsed_past_a_name_that_looks_like_fields() {
        let text = b"4242 (a) Z 1 (b) S 17 4242 4242 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 987654 1000 10\n";
        assert_eq!(
            Stat::parse(text),
            Some(Stat { state: b'S', parent: 17, threads: 3, start_time: 987_654 })
        );
        assert_eq!(Stat::parse(b"4242 (cut) S 1"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn a_signal_never_reaches_a_later_process_with_the_same_number() {
        let me = ProcessId::current().unwrap();
        let earlier = ProcessId { start_time: me.start_time - 1, ..me };
        assert_eq!(send(earlier, Signal::Kill).unwrap(), Delivery::Gone);
        assert!(!earlier.is_running());
        assert!(me.is_running());
    }
}
