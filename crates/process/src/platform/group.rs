//! Systems without subreapers and pidfds: the program's process group takes the place of its tree. What starts a session
//! or group of its own escapes; start times are not known, so a reused number is not noticed.

use std::io;

use rustix::io::Errno;
use rustix::process::{Signal, getpgrp, kill_process_group, test_kill_process, test_kill_process_group};

use super::{Delivery, ProcessId, Strays, raw_pid};

pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

pub(crate) fn die_with_parent(_parent: rustix::process::Pid) -> io::Result<()> {
    Ok(())
}

/// In a new child, before it executes the program: gives way to every other process. Where that is not possible it goes on.
pub(crate) fn yield_to_others() {
    let _ = rustix::process::setpriority_process(None, 19);
}

pub(crate) fn take_supervisors_name() -> io::Result<()> {
    Ok(())
}

pub(crate) fn refuse_tracers() -> io::Result<()> {
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "there are no process namespaces here")]
pub(crate) fn own_group() -> Option<u32> {
    u32::try_from(getpgrp().as_raw_nonzero().get()).ok()
}

/// Not known here.
pub(crate) fn is_stopped(_process: ProcessId) -> bool {
    false
}

/// Whoever may be signalled is taken for one of ours.
pub(crate) fn is_ours(pid: u32) -> io::Result<bool> {
    Ok(start_time(pid)?.is_some())
}

pub(crate) fn orphans(_known: &[ProcessId], _started_since: u64) -> io::Result<Vec<ProcessId>> {
    Ok(Vec::new())
}

pub(crate) fn reap_orphans(_known: &[ProcessId]) -> io::Result<()> {
    Ok(())
}

pub(crate) fn start_time(pid: u32) -> io::Result<Option<u64>> {
    Ok(raw_pid(pid).and_then(|pid| test_kill_process(pid).ok()).map(|()| 0))
}

pub(crate) fn is_running(process: ProcessId) -> bool {
    start_time(process.pid).is_ok_and(|started| started.is_some())
}

/// The number of this process.
#[expect(clippy::unnecessary_wraps, reason = "not every system knows")]
pub fn own_number() -> Option<u32> {
    Some(std::process::id())
}

/// Nobody here lowers it for another process.
pub(crate) fn raise_descriptor_limit() -> io::Result<()> {
    Ok(())
}

/// Not known here.
pub fn ancestors(_pid: u32) -> io::Result<Vec<u32>> {
    Ok(Vec::new())
}

pub(crate) fn arguments(_pid: u32) -> io::Result<Option<Vec<Vec<u8>>>> {
    Ok(Some(Vec::new()))
}

/// Not known here.
pub fn descendants(_root: u32) -> io::Result<Vec<ProcessId>> {
    Ok(Vec::new())
}

/// Not known here.
pub(crate) fn first_grandchild(_of: ProcessId) -> io::Result<Option<ProcessId>> {
    Ok(None)
}

/// The group as one entry, named after its leader, as long as anything is in it.
#[expect(clippy::unnecessary_wraps, reason = "other systems may fail")]
pub(crate) fn tree_of(leader: ProcessId) -> io::Result<Vec<ProcessId>> {
    let alive = raw_pid(leader.pid).is_some_and(|pid| test_kill_process_group(pid).is_ok());
    Ok(if alive { vec![leader] } else { Vec::new() })
}

pub(crate) fn send(target: ProcessId, signal: Signal) -> io::Result<Delivery> {
    let Some(pid) = raw_pid(target.pid) else { return Ok(Delivery::Gone) };
    match kill_process_group(pid, signal) {
        Ok(()) => Ok(Delivery::Sent),
        Err(Errno::SRCH) => Ok(Delivery::Gone),
        Err(error) => Err(error.into()),
    }
}

/// There is no such thing here.
#[derive(Clone, Copy)]
pub(crate) struct Mark;

impl Mark {
    pub(crate) fn of_program() -> Self {
        Self
    }

    pub(crate) fn put(self) -> io::Result<()> {
        Ok(())
    }
}

/// Not known here.
pub fn has_lost_supervisor(_pid: u32) -> io::Result<bool> {
    Ok(false)
}

pub(crate) fn give_up_supervisors_name() -> io::Result<()> {
    Ok(())
}

/// Not known here.
pub(crate) fn has_supervisors_name(_pid: u32) -> io::Result<bool> {
    Ok(false)
}

/// There is no way to look.
pub(crate) fn own_processes() -> io::Result<Vec<ProcessId>> {
    Ok(Vec::new())
}

/// There is no way to look.
pub(crate) fn strays(_since_unix_ms: u64) -> io::Result<Strays> {
    Ok(Strays::default())
}

/// Not known here.
pub(crate) fn peer_of(_socket: &std::os::unix::net::UnixStream) -> Option<u32> {
    None
}

pub(crate) fn environment_has(_entry: &[u8]) -> io::Result<Vec<ProcessId>> {
    Ok(Vec::new())
}
