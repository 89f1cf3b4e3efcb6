//! A mark that every program of a supervisor has and passes on, and that an ordinary process cannot remove: its hard limit for
//! message queues (`RLIMIT_MSGQUEUE`) is one below that of its supervisor. Only root can raise a hard limit, and everybody can
//! read it.
//!
//! A process with the mark and no living supervisor above it is what an agent or a check left when its supervisor and its engine were
//! killed, however old it is. One whose limit is lower than the mark lowered it itself, perhaps to hide.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit, test_kill_process};
use rustix::time::{ClockId, clock_gettime};

use super::proc::{Processes, Stat, file_of};
use super::{ancestors, is_hidden, is_ours, own_number};
use crate::clock;
use crate::platform::{ProcessId, Strays, raw_pid, with_steady_parents};

/// The limit that processes have by default. A higher one counts as this, so that the mark is the same for all sessions.
const DEFAULT: u64 = 819_200;
/// Start times are given in hundredths of a second.
const TICK_MS: u64 = 10;
/// How much earlier than it was recorded something may have started.
const CLOCK_SLACK_MS: u64 = 2_000;

/// The mark of a program that is about to be started.
#[derive(Clone, Copy)]
pub(crate) struct Mark(Rlimit);

impl Mark {
    pub(crate) fn of_program() -> Self {
        let own = getrlimit(Resource::Msgqueue);
        let hard = own.maximum.unwrap_or(DEFAULT).min(DEFAULT).saturating_sub(1);
        Self(Rlimit { current: Some(own.current.unwrap_or(hard).min(hard)), maximum: Some(hard) })
    }

    /// Marks this process. Only makes a system call.
    pub(crate) fn put(self) -> io::Result<()> {
        Ok(setrlimit(Resource::Msgqueue, self.0)?)
    }
}

/// What agents and checks left, and what may hide since this time. Nothing where `/proc` does not show limits.
pub(crate) fn strays(since_unix_ms: u64) -> io::Result<Strays> {
    let mut strays = Strays::default();
    let ourselves = own_number().ok_or(io::ErrorKind::NotFound)?;
    let Some(own) = limit_of(ourselves)? else { return Ok(strays) };
    let above = ancestors(ourselves)?;
    if !is_natural(own, &above)? {
        strays.is_own_limit_lowered = true;
        return Ok(strays);
    }
    let search = Search { unmarked: own.min(DEFAULT), since: start_time_of(since_unix_ms)?, above };
    for (process, stat) in Processes::look()?.all() {
        if stat.is_running() {
            search.judge(*process, stat.start_time, &mut strays)?;
        }
    }
    Ok(strays)
}

/// Whether a supervisor's program started a process, directly or not, and that supervisor is gone or hidden: it has the mark, and no
/// living supervisor above it. What this process asks about itself does not depend on `/proc` alone, which a process namespace replaces.
pub fn has_lost_supervisor(pid: u32) -> io::Result<bool> {
    let is_ourselves = own_number() == Some(pid);
    let limit = if is_ourselves { Some(own_limit()) } else { limit_of(pid)? };
    match limit {
        Some(limit) => Ok(!is_natural(limit, &ancestors(pid)?)?),
        None => Ok(false),
    }
}

struct Search {
    /// Whoever has less is marked.
    unmarked: u64,
    /// In the system's own ticks.
    since: u64,
    /// The processes above us.
    above: Vec<u32>,
}

impl Search {
    fn judge(&self, process: ProcessId, start_time: u64, strays: &mut Strays) -> io::Result<()> {
        let Some(limit) = limit_of(process.pid)?.filter(|limit| *limit < self.unmarked) else {
            return Ok(());
        };
        let is_marked = limit + 1 == self.unmarked;
        // Whoever lowered an older one's limit further is not of this goal.
        if !is_marked && start_time < self.since || !is_ours_to_end(process.pid)? {
            return Ok(());
        }
        if with_steady_parents(process.pid, || self.is_lost(process.pid))? {
            let lost = if is_marked { &mut strays.marked } else { &mut strays.hiding };
            lost.push(process);
        }
        Ok(())
    }

    /// Whether a process runs and no living supervisor looks after it: the first one above that is not marked is none. None if
    /// a parent ended on the way.
    fn is_lost(&self, pid: u32) -> io::Result<Option<bool>> {
        let Some(mut child) = Stat::read(pid)? else { return Ok(Some(false)) };
        while child.parent > 0 {
            let pid = child.parent;
            let (parent, limit) = match (Stat::read(pid)?, limit_of(pid)?) {
                (Some(parent), Some(limit)) if parent.start_time <= child.start_time => (parent, limit),
                _ if is_hidden(pid) => break,
                _ => return Ok(None),
            };
            if limit >= self.unmarked {
                // One above ourselves looks after us, not after what our own supervisors left.
                return Ok(Some(!parent.is_supervisor || self.above.contains(&pid)));
            }
            child = parent;
        }
        Ok(Some(true))
    }
}

/// Whether the limit of a process is the system's, or that of a program of a supervisor. Otherwise somebody lowered it, and what is
/// marked cannot be distinguished from what is not.
fn is_natural(own: u64, above: &[u32]) -> io::Result<bool> {
    // Each supervisor explains one mark, the nearest first. One that has a mark itself needs another above it, or it is an impostor.
    let mut limit = own;
    let mut above = above.iter();
    loop {
        if limit >= DEFAULT || is_systems(limit)? {
            return Ok(true);
        }
        let mut explained = None;
        for pid in above.by_ref() {
            let is_supervisor = Stat::read(*pid)?.is_some_and(|stat| stat.is_supervisor);
            explained = limit_of(*pid)?.filter(|above| is_supervisor && *above > limit);
            if explained.is_some() {
                break;
            }
        }
        let Some(above) = explained else { return Ok(false) };
        limit = above;
    }
}

/// Whether the first process has no higher limit. Whoever lowers our limits could lower those of a first process of ours as well, and
/// everybody can be root and have a first process in a namespace of their own.
fn is_systems(limit: u64) -> io::Result<bool> {
    let counts = is_in_first_user_namespace() && (getuid().is_root() || !is_ours(1)?);
    Ok(counts && limit_of(1)?.is_some_and(|systems| limit >= systems))
}

/// Whether this process is in the system's own user namespace, the only one in which all users are themselves.
fn is_in_first_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

/// Whether it belongs to our user, or to a user namespace of ours, in which processes may have other users.
fn is_ours_to_end(pid: u32) -> io::Result<bool> {
    let may_signal = || raw_pid(pid).is_some_and(|pid| test_kill_process(pid) != Err(Errno::PERM));
    Ok(is_ours(pid)? || (!getuid().is_root() && may_signal()))
}

/// The hard limit of this process for message queues, from the system itself.
fn own_limit() -> u64 {
    getrlimit(Resource::Msgqueue).maximum.unwrap_or(u64::MAX)
}

/// The hard limit of a process for message queues.
fn limit_of(pid: u32) -> io::Result<Option<u64>> {
    let limits = file_of(pid, "limits")?.unwrap_or_default();
    Ok(parse(&String::from_utf8_lossy(&limits)))
}

fn parse(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max msgqueue size"))?;
    match line.split_ascii_whitespace().nth(1)? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// The start time of a process that starts at this moment. A moment that is still to come means that the clock was set back: then
/// every process may be later.
fn start_time_of(unix_ms: u64) -> io::Result<u64> {
    let Some(age) = clock::unix_ms().checked_sub(unix_ms) else { return Ok(0) };
    let uptime = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(uptime.tv_sec).map_err(io::Error::other)?;
    let uptime = seconds * 1000 + u64::try_from(uptime.tv_nsec).map_err(io::Error::other)? / 1_000_000;
    Ok(uptime.saturating_sub(age + CLOCK_SLACK_MS) / TICK_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_limit_is_read() {
        let limits = |hard: &str| {
            format!(
                "Limit   Soft Limit  Hard Limit  Units\nMax msgqueue size   819200   {hard}   bytes\nMax nice priority   0   0\n"
            )
        };
        assert_eq!(parse(&limits("819199")), Some(819_199));
        assert_eq!(parse(&limits("unlimited")), Some(u64::MAX));
        assert_eq!(parse("Max nice priority   0   0\n"), None);
        assert_eq!(limit_of(std::process::id()).unwrap(), Some(own_limit()));
    }

    #[test]
    fn start_times_are_those_of_the_list_of_processes() {
        let now = start_time_of(clock::unix_ms()).unwrap();
        let own = Stat::of_ourselves().unwrap().start_time;
        let later = own + CLOCK_SLACK_MS / TICK_MS;
        assert!(now <= later + 60_000 && now + CLOCK_SLACK_MS / TICK_MS >= own, "{now} {own}");
        assert_eq!(start_time_of(u64::MAX).unwrap(), 0);
    }
}
