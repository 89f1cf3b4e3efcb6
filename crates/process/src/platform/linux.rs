//! Linux: the whole tree, found through `/proc`, kept together by the child subreaper attribute, and signalled
//! through pidfds so that a reused process number is never hit.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, PidfdFlags, Signal as Number, WaitOptions, getpid, getppid, getuid, pidfd_open,
    pidfd_send_signal, set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal, waitpid,
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

/// What supervisors are called in lists of processes.
const SUPERVISOR: &std::ffi::CStr = c"towline-shim";

pub(crate) fn take_supervisors_name() -> io::Result<()> {
    Ok(rustix::thread::set_name(SUPERVISOR)?)
}

/// Keeps other processes of the same user from tracing this one, and from reading its memory, environment and descriptors.
pub(crate) fn refuse_tracers() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

pub(crate) fn start_time(pid: u32) -> Option<u64> {
    Stat::read(pid, &mut Vec::new()).map(|stat| stat.start_time)
}

pub(crate) fn is_running(process: ProcessId) -> bool {
    Stat::read(process.pid, &mut Vec::new())
        .is_some_and(|stat| stat.start_time == process.start_time && stat.is_running())
}

/// The number of our process group, which is zero if its leader is outside our process namespace. The system call's wrapper
/// cannot return that.
pub(crate) fn own_group() -> Option<u32> {
    Stat::of_ourselves().map(|stat| stat.group)
}

/// Whether it was suspended by a signal or by a tracer.
pub(crate) fn is_stopped(process: ProcessId) -> bool {
    Stat::read(process.pid, &mut Vec::new())
        .is_some_and(|stat| stat.start_time == process.start_time && matches!(stat.state, b'T' | b't'))
}

/// Whether the process belongs to the user that we are. The owner of its directory in `/proc` does not tell: of a process that
/// refuses tracers it is root.
pub(crate) fn is_ours(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let owner = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().next());
    owner.and_then(|owner| owner.parse().ok()) == Some(getuid().as_raw())
}

/// In a process namespace whose `/proc` is the one outside, this is not the number that the process knows itself by.
pub(crate) fn own_number() -> Option<u32> {
    fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()
}

pub(crate) fn parent(pid: u32) -> Option<u32> {
    Stat::read(pid, &mut Vec::new()).map(|stat| stat.parent)
}

/// The command line of a process; empty for one that has ended. Everybody may read it.
pub(crate) fn arguments(pid: u32) -> Vec<Vec<u8>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = line.strip_suffix(&[0]).unwrap_or(&line);
    line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

pub(crate) fn descendants(root: u32) -> Vec<ProcessId> {
    let mut all = Processes::look();
    all.take_below(vec![root])
}

/// Children of ours that we did not start, and everything below them: they came to us when their own parent died. All that we
/// start ourselves, `known` supervisors aside, stays in our session, and nothing can enter a session that exists already. So
/// a child of another session that is not `known` has lost its supervisor.
pub(crate) fn orphans(known: &[ProcessId], started_since: u64) -> Vec<ProcessId> {
    let mut all = Processes::look();
    let orphans: Vec<ProcessId> = all.adopted(known, started_since).map(|(process, _)| process).collect();
    let mut found: Vec<ProcessId> = orphans.iter().copied().filter(|orphan| orphan.is_running()).collect();
    found.extend(all.take_below(orphans.into_iter().map(|orphan| orphan.pid).collect()));
    found
}

/// Reaps those of them that have ended.
pub(crate) fn reap_orphans(known: &[ProcessId]) {
    for (orphan, stat) in Processes::look().adopted(known, 0).filter(|(_, stat)| !stat.is_running()) {
        if let Some(pid) = raw_pid(orphan.pid)
            && stat.state == b'Z'
        {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// All processes at one moment, by their parents.
struct Processes(HashMap<u32, Vec<(ProcessId, Stat)>>);

impl Processes {
    fn look() -> Self {
        let mut children: HashMap<u32, Vec<(ProcessId, Stat)>> = HashMap::new();
        let mut scratch = Vec::new();
        for pid in all_pids() {
            if let Some(stat) = Stat::read(pid, &mut scratch) {
                let process = ProcessId { pid, start_time: stat.start_time };
                children.entry(stat.parent).or_default().push((process, stat));
            }
        }
        Self(children)
    }

    /// Everything that runs below these, children before their own children.
    fn take_below(&mut self, mut parents: Vec<u32>) -> Vec<ProcessId> {
        let mut found = Vec::new();
        while let Some(parent) = parents.pop() {
            for (process, stat) in self.0.remove(&parent).unwrap_or_default() {
                parents.push(process.pid);
                if stat.is_running() {
                    found.push(process);
                }
            }
        }
        found
    }

    fn adopted(&self, known: &[ProcessId], since: u64) -> impl Iterator<Item = (ProcessId, &Stat)> {
        let session = Stat::of_ourselves().map(|stat| stat.session);
        let children = self.0.get(&std::process::id()).into_iter().flatten();
        children.map(|(process, stat)| (*process, stat)).filter(move |(process, stat)| {
            Some(stat.session) != session && process.start_time >= since && !known.contains(process)
        })
    }
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

pub(crate) fn peer(socket: &UnixStream) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(socket).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

/// Processes of ours that were started with this exact `NAME=value` in their environment, and the supervisors right above them
/// with everything below those. A supervisor's own environment cannot be read. A process of another kind that takes a
/// supervisor's name is one of the tree as well: nothing else has such children.
pub(crate) fn environment_has(entry: &[u8]) -> Vec<ProcessId> {
    let mut all = Processes::look();
    let everyone =
        || all.0.iter().flat_map(|(parent, children)| children.iter().map(move |child| (*parent, child)));
    let carries = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|known| known == entry)
    };
    let carriers: Vec<(u32, ProcessId)> = everyone()
        .filter(|(_, (process, stat))| stat.is_running() && carries(process.pid))
        .map(|(parent, (process, _))| (parent, *process))
        .collect();
    let parents: HashSet<u32> = carriers.iter().map(|(parent, _)| *parent).collect();
    let supervisors: Vec<ProcessId> = everyone()
        .filter(|(_, (process, stat))| {
            parents.contains(&process.pid) && stat.is_supervisor && is_ours(process.pid)
        })
        .map(|(_, (process, _))| *process)
        .collect();
    let mut found: HashSet<ProcessId> = carriers.into_iter().map(|(_, process)| process).collect();
    found.extend(&supervisors);
    found.extend(all.take_below(supervisors.into_iter().map(|supervisor| supervisor.pid).collect()));
    found.into_iter().collect()
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
    /// By its name.
    is_supervisor: bool,
    state: u8,
    parent: u32,
    /// This and the session are zero for a process whose leader is outside our process namespace.
    group: u32,
    session: u32,
    threads: u32,
    start_time: u64,
}

impl Stat {
    fn of_ourselves() -> Option<Self> {
        Self::read(std::process::id(), &mut Vec::new())
    }

    fn read(pid: u32, scratch: &mut Vec<u8>) -> Option<Self> {
        scratch.clear();
        File::open(format!("/proc/{pid}/stat")).ok()?.read_to_end(scratch).ok()?;
        Self::parse(scratch)
    }

    /// The name in the second field may hold spaces and parentheses; after the last one the fields are plain.
    fn parse(text: &[u8]) -> Option<Self> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let name = text.get(text.iter().position(|byte| *byte == b'(')? + 1..name_end)?;
        let rest = std::str::from_utf8(text.get(name_end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let threads = fields.nth(13)?.parse().ok()?;
        let start_time = fields.nth(1)?.parse().ok()?;
        let is_supervisor = name == SUPERVISOR.to_bytes();
        Some(Self { is_supervisor, state, parent, group, session, threads, start_time })
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
        let text = b"4242 (a) Z 1 (b) S 17 4242 4241 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 987654 1000 10\n";
        assert_eq!(
            Stat::parse(text),
            Some(Stat {
                is_supervisor: false,
                state: b'S',
                parent: 17,
                group: 4242,
                session: 4241,
                threads: 3,
                start_time: 987_654
            })
        );
        assert_eq!(Stat::parse(b"4242 (cut) S 1"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn a_process_that_refuses_tracers_cannot_be_dumped() {
        refuse_tracers().unwrap();
        assert_eq!(rustix::process::dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
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
