//! A mark that every program of a supervisor has and passes on, and that an ordinary process cannot remove: its hard limit for
//! message queues (`RLIMIT_MSGQUEUE`) is one below that of its supervisor. Only root can raise a hard limit, and everybody can
//! read it.
//!
//! A process with the mark and no living supervisor above it is what an agent or a check left when its supervisor and its engine were
//! killed, however old it is. One whose limit is lower than the mark lowered it itself, perhaps to hide.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit, test_kill_process};
use rustix::time::{ClockId, clock_gettime};

use super::proc::{Processes, Stat, file_of};
use super::{MOST_WALKS, ancestors, is_hidden, is_ours, own_number};
use crate::clock;
use crate::platform::{ProcessId, Strays, raw_pid};

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

/// Whether a process has the mark, and no living supervisor above it.
pub(crate) fn has_lost_supervisor(pid: u32) -> io::Result<bool> {
    match limit_of(pid)? {
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

enum Climbed {
    /// A living supervisor looks after it, or it has ended.
    InOrder,
    Lost,
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
        match self.climb(process.pid)? {
            Climbed::InOrder => {}
            Climbed::Lost if is_marked => strays.marked.push(process),
            Climbed::Lost => strays.hiding.push(process),
        }
        Ok(())
    }

    /// Finds the first process above that is not marked. A supervisor is not.
    fn climb(&self, pid: u32) -> io::Result<Climbed> {
        for _ in 0..MOST_WALKS {
            if let Some(climbed) = self.try_to_climb(pid)? {
                return Ok(climbed);
            }
        }
        Err(io::Error::other(format!("the parents of process {pid} cannot be followed")))
    }

    /// None if a parent ended on the way.
    fn try_to_climb(&self, pid: u32) -> io::Result<Option<Climbed>> {
        let Some(mut child) = Stat::read(pid)? else { return Ok(Some(Climbed::InOrder)) };
        while child.parent > 0 {
            let pid = child.parent;
            let (parent, limit) = match (Stat::read(pid)?, limit_of(pid)?) {
                (Some(parent), Some(limit)) if parent.start_time <= child.start_time => (parent, limit),
                _ if is_hidden(pid) => break,
                _ => return Ok(None),
            };
            if limit >= self.unmarked {
                // One above ourselves looks after us, not after what our own supervisors left.
                let is_in_order = parent.is_supervisor && !self.above.contains(&pid);
                return Ok(Some(if is_in_order { Climbed::InOrder } else { Climbed::Lost }));
            }
            child = parent;
        }
        Ok(Some(Climbed::Lost))
    }
}

/// Whether the limit of a process is the system's, or that of a program of a supervisor. Otherwise somebody lowered it, and what is
/// marked cannot be distinguished from what is not.
fn is_natural(own: u64, above: &[u32]) -> io::Result<bool> {
    if own >= DEFAULT {
        return Ok(true);
    }
    // Whoever lowers our limits could lower those of a first process of ours as well.
    let is_root = getuid().is_root();
    if (is_root || !is_ours(1)?) && limit_of(1)?.is_some_and(|systems| own >= systems) {
        return Ok(true);
    }
    for pid in above {
        let is_supervisor = Stat::read(*pid)?.is_some_and(|stat| stat.is_supervisor);
        if is_supervisor && limit_of(*pid)?.is_some_and(|limit| limit > own) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether it belongs to our user, or to a user namespace of ours, in which processes may have other users.
fn is_ours_to_end(pid: u32) -> io::Result<bool> {
    let may_signal = || raw_pid(pid).is_some_and(|pid| test_kill_process(pid) != Err(Errno::PERM));
    Ok(is_ours(pid)? || (!getuid().is_root() && may_signal()))
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
        let own = getrlimit(Resource::Msgqueue).maximum.unwrap_or(u64::MAX);
        assert_eq!(limit_of(std::process::id()).unwrap(), Some(own));
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
