//! Linux: the whole tree, found through `/proc`, held together by the child subreaper attribute, and signalled
//! through pidfds so that a reused process number is never hit.

mod mark;
mod proc;

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::net::UnixStream;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, PidfdFlags, Signal, WaitOptions, getpid, getppid, getuid, pidfd_open,
    pidfd_send_signal, set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal,
    test_kill_process, waitpid,
};

pub use self::mark::has_lost_supervisor;
pub(crate) use self::mark::{Mark, strays};
pub(crate) use self::proc::raise_descriptor_limit;
use self::proc::{Processes, Stat, file_of, with_room};
use super::{Delivery, ProcessId, raw_pid, with_steady_parents};

/// No tree is deeper.
const DEEPEST: usize = 100_000;

/// Makes this process the parent of every descendant whose own parent dies.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// In a new child, before it executes the program: die when `parent` dies, even if it has died just now.
/// Only makes system calls, as code between fork and exec must.
pub(crate) fn die_with_parent(parent: rustix::process::Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
}

/// The lowest priority there is, also for reading and writing: the kernel derives that one from it.
const LOWEST: i32 = 19;

/// In a new child and its new session, before it executes the program: gives way to every other process. Where that is not
/// possible it goes on. Only makes system calls.
pub(crate) fn yield_to_others() {
    let _ = rustix::process::setpriority_process(None, LOWEST);
    // Where the scheduler groups sessions, the priority above only counts inside of this one.
    let group = rustix::fs::open(c"/proc/self/autogroup", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
    if let Ok(group) = group {
        let _ = rustix::io::write(&group, b"19");
    }
}

/// What supervisors are called in lists of processes.
const SUPERVISOR: &std::ffi::CStr = c"towline-shim";

pub(crate) fn take_supervisors_name() -> io::Result<()> {
    Ok(rustix::thread::set_name(SUPERVISOR)?)
}

pub(crate) fn give_up_supervisors_name() -> io::Result<()> {
    Ok(rustix::thread::set_name(c"towline")?)
}

pub(crate) fn has_supervisors_name(pid: u32) -> io::Result<bool> {
    Ok(Stat::read(pid)?.is_some_and(|stat| stat.is_supervisor))
}

/// Keeps other processes of the same user from tracing this one, and from reading its memory, environment and descriptors.
pub(crate) fn refuse_tracers() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// None if there is no such process.
pub(crate) fn start_time(pid: u32) -> io::Result<Option<u64>> {
    Ok(Stat::read(pid)?.map(|stat| stat.start_time))
}

/// A process that cannot be looked at counts as running.
pub(crate) fn is_running(process: ProcessId) -> bool {
    let is_it = |stat: Stat| stat.start_time == process.start_time && stat.is_running();
    Stat::read(process.pid).map_or(true, |stat| stat.is_some_and(is_it))
}

/// The number of our process group, which is zero if its leader is outside our process namespace. The system call's wrapper
/// cannot return that.
pub(crate) fn own_group() -> Option<u32> {
    Stat::of_ourselves().ok().map(|stat| stat.group)
}

/// Whether it was suspended by a signal or by a tracer.
pub(crate) fn is_stopped(process: ProcessId) -> bool {
    let is_it = |stat: Stat| stat.start_time == process.start_time && matches!(stat.state, b'T' | b't');
    Stat::read(process.pid).ok().flatten().is_some_and(is_it)
}

/// Whether the process belongs to the user that we are. The owner of its directory in `/proc` does not show it: of a process that
/// refuses tracers it is root.
pub(crate) fn is_ours(pid: u32) -> io::Result<bool> {
    let status = file_of(pid, "status")?.unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let owner = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().next());
    Ok(owner.and_then(|owner| owner.parse().ok()) == Some(getuid().as_raw()))
}

/// The number by which this process is listed, where its parents can be followed. None if the list does not have it, as the
/// `/proc` of another process namespace. In a process namespace whose `/proc` is the one outside, this is not the number that
/// the process knows itself by.
pub fn own_number() -> Option<u32> {
    fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()
}

/// The parents of a process, nearest first, up to process 1 or to the end of our process namespace. A parent that cannot be seen is
/// an error, unless another user hides it: none of ours is above it. Empty where the system offers no way to look.
pub fn ancestors(pid: u32) -> io::Result<Vec<u32>> {
    with_steady_parents(pid, || walk_up(pid))
}

/// None if a parent ended on the way: its children have another one by now.
fn walk_up(pid: u32) -> io::Result<Option<Vec<u32>>> {
    let mut child = Stat::read(pid)?.ok_or(io::ErrorKind::NotFound)?;
    let mut above = Vec::new();
    while child.parent > 0 && above.len() < DEEPEST {
        above.push(child.parent);
        if child.parent == 1 {
            break;
        }
        match Stat::read(child.parent)? {
            Some(parent) if parent.start_time <= child.start_time => child = parent,
            // A later process with the number of the parent.
            Some(_) => return Ok(None),
            None if is_hidden(child.parent) => break,
            None => return Ok(None),
        }
    }
    Ok(Some(above))
}

/// Whether a process that cannot be seen is there and belongs to another user.
fn is_hidden(pid: u32) -> bool {
    raw_pid(pid).is_some_and(|pid| test_kill_process(pid) == Err(Errno::PERM))
}

/// The command line of a process, which everybody may read. None for one that has ended; empty for one that another user hides.
pub(crate) fn arguments(pid: u32) -> io::Result<Option<Vec<Vec<u8>>>> {
    let Some(line) = file_of(pid, "cmdline")? else { return Ok(is_hidden(pid).then(Vec::new)) };
    let line = line.strip_suffix(&[0]).unwrap_or(&line);
    Ok(Some(line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()))
}

/// Everything that runs as our user.
pub(crate) fn own_processes() -> io::Result<Vec<ProcessId>> {
    let mut found = Vec::new();
    for (process, stat) in Processes::look()?.all() {
        if stat.is_running() && is_ours(process.pid)? {
            found.push(*process);
        }
    }
    Ok(found)
}

/// Every running process below `root`, children before their own children. Those that end while this looks may or may not be
/// among them.
pub fn descendants(root: u32) -> io::Result<Vec<ProcessId>> {
    Ok(Processes::look()?.take_below(vec![root]))
}

/// What the first child of a process started first.
pub(crate) fn first_grandchild(of: ProcessId) -> io::Result<Option<ProcessId>> {
    let all = Processes::look()?;
    let first_child = |of: ProcessId| {
        let children = all.0.get(&of.pid).into_iter().flatten();
        children.map(|(child, _)| *child).min_by_key(|child| child.start_time)
    };
    Ok(first_child(of).and_then(first_child))
}

/// Children of ours that we did not start, and everything below them: they came to us when their own parent died. All that we
/// start ourselves, `known` supervisors aside, stays in our session, and nothing can enter a session that exists already. So
/// a child of another session that is not `known` has lost its supervisor.
pub(crate) fn orphans(known: &[ProcessId], started_since: u64) -> io::Result<Vec<ProcessId>> {
    let mut all = Processes::look()?;
    let orphans = adopted(&all, known, started_since)?;
    let mut found: Vec<ProcessId> =
        orphans.iter().filter(|(_, is_running)| *is_running).map(|(orphan, _)| *orphan).collect();
    found.extend(all.take_below(orphans.into_iter().map(|(orphan, _)| orphan.pid).collect()));
    Ok(found)
}

/// Reaps those of them that have ended.
pub(crate) fn reap_orphans(known: &[ProcessId]) -> io::Result<()> {
    for (orphan, is_running) in adopted(&Processes::look()?, known, 0)? {
        if let Some(pid) = raw_pid(orphan.pid)
            && !is_running
        {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
    Ok(())
}

/// Orphans that came to us, and whether they still run.
fn adopted(all: &Processes, known: &[ProcessId], since: u64) -> io::Result<Vec<(ProcessId, bool)>> {
    let session = Stat::of_ourselves()?.session;
    let children = all.0.get(&std::process::id()).into_iter().flatten();
    let is_adopted = |(process, stat): &&(ProcessId, Stat)| {
        stat.session != session && process.start_time >= since && !known.contains(process)
    };
    Ok(children.filter(is_adopted).map(|(process, stat)| (*process, stat.is_running())).collect())
}

/// Everything below this process. The program's own identity is not needed here: orphans come to us.
pub(crate) fn tree_of(_leader: ProcessId) -> io::Result<Vec<ProcessId>> {
    descendants(std::process::id())
}

/// Sends a signal to exactly this process. The pidfd holds on to whoever has the number now; if the start time
/// read *after* it was opened is the expected one, it is the expected process.
pub(crate) fn send(target: ProcessId, signal: Signal) -> io::Result<Delivery> {
    let Some(pid) = raw_pid(target.pid) else { return Ok(Delivery::Gone) };
    let opened = with_room(|| match pidfd_open(pid, PidfdFlags::empty()) {
        Err(Errno::SRCH) => Ok(None),
        opened => Ok(Some(opened?)),
    });
    let Some(handle) = opened? else { return Ok(Delivery::Gone) };
    if start_time(target.pid)? != Some(target.start_time) {
        return Ok(Delivery::Gone);
    }
    match pidfd_send_signal(&handle, signal) {
        Ok(()) => Ok(Delivery::Sent),
        Err(Errno::SRCH) => Ok(Delivery::Gone),
        Err(error) => Err(error.into()),
    }
}

/// The process at the other end of a socket.
pub(crate) fn peer_of(socket: &UnixStream) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(socket).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

/// Processes of ours that were started with this exact `NAME=value` in their environment, and the supervisors right above them
/// with everything below those. A supervisor's own environment cannot be read. A process of another kind that takes a
/// supervisor's name is one of the tree as well: nothing else has such children.
pub(crate) fn environment_has(entry: &[u8]) -> io::Result<Vec<ProcessId>> {
    let mut all = Processes::look()?;
    let mut found = HashSet::new();
    let mut parents = HashSet::new();
    for (process, stat) in all.all().filter(|(_, stat)| stat.is_running()) {
        let environment = file_of(process.pid, "environ")?.unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|known| known == entry) {
            found.insert(*process);
            parents.insert(stat.parent);
        }
    }
    let mut supervisors = Vec::new();
    for (process, stat) in all.all() {
        if parents.contains(&process.pid) && stat.is_supervisor && is_ours(process.pid)? {
            found.insert(*process);
            supervisors.push(process.pid);
        }
    }
    found.extend(all.take_below(supervisors));
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_refuses_tracers_cannot_be_dumped() {
        refuse_tracers().unwrap();
        assert_eq!(rustix::process::dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }

    #[test]
    fn a_signal_never_reaches_a_later_process_with_the_same_number() {
        let me = ProcessId::current().unwrap();
        let earlier = ProcessId { start_time: me.start_time - 1, ..me };
        assert_eq!(send(earlier, Signal::KILL).unwrap(), Delivery::Gone);
        assert!(!earlier.is_running());
        assert!(me.is_running());
    }
}
