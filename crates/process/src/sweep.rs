//! Finding and ending processes, those below a supervisor and those that have lost it.
//!
//! When a supervisor is killed, the program dies with it. What the program had started comes to the process that started the
//! supervisor (`reaper`). If that is gone too, such processes are no longer found by descent. A value in their environment that is
//! unique to a run finds those that did not start with another one, and a mark that they cannot remove finds the others.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::ancestry;
use crate::error::ProcessError;
use crate::platform::{self, Delivery, ProcessId, Strays};

/// Rounds of freezing before the kill; a tree that still grows after so many is met again in the next pass.
const FREEZE_ROUNDS: usize = 8;
/// How often in a row nothing must be found: a process may fork and end while it is looked for.
const EMPTY_LOOKS: u32 = 2;
/// What was killed takes a moment to be gone.
const LOOK_PAUSE: Duration = Duration::from_millis(5);
/// How many characters of a command line are shown.
const COMMAND_SHOWN: usize = 80;

/// Running processes that were started with `name=value` in their environment, and the supervisors above them with their whole
/// trees. Only processes of the same user can be seen. Empty where the system offers no way to look.
pub fn processes_with_env(name: &str, value: &str) -> io::Result<Vec<ProcessId>> {
    platform::environment_has(format!("{name}={value}").as_bytes())
}

/// Ends whatever `find` finds, until it finds nothing: SIGKILL, again and again, for at most `patience`. What is still there then
/// is an error, and so is a last look that failed. Blocks, so call it from a thread that may.
pub fn end_processes(
    mut find: impl FnMut() -> io::Result<Vec<ProcessId>>,
    patience: Duration,
) -> Result<(), ProcessError> {
    let give_up = Instant::now() + patience;
    let mut empty_looks = 0;
    loop {
        let found = find();
        empty_looks = if found.as_ref().is_ok_and(Vec::is_empty) { empty_looks + 1 } else { 0 };
        if empty_looks == EMPTY_LOOKS {
            return Ok(());
        }
        if Instant::now() >= give_up {
            let left = found.map_err(|source| ProcessError::CannotLook { source })?;
            return left.first().map_or(Ok(()), |left| Err(ProcessError::StillRunning { pid: left.pid }));
        }
        if empty_looks == 0 {
            // Whoever could not be found or signalled is looked for again.
            let _ = freeze_and_kill(&mut find, |_, _| ());
            std::thread::sleep(LOOK_PAUSE);
        }
    }
}

/// Ends what agents and checks left and has no living supervisor, and whatever was started with this variable in its environment,
/// but for ourselves and what belongs to others than the supervisors with these first arguments. A process that was started since a
/// time in milliseconds since the Unix epoch, that may be such a one and is not certain to be, is left and is an error. Blocks.
pub fn end_strays(
    (name, value): (&str, &str),
    arguments: &[String],
    since_unix_ms: u64,
    patience: Duration,
) -> Result<(), ProcessError> {
    let mut last = Strays::default();
    let find = || {
        last = platform::strays(since_unix_ms)?;
        let mut found = processes_with_env(name, value)?;
        found.retain(|process| process.pid != std::process::id());
        let others = ancestry::of_others(&found, arguments)?;
        found.retain(|process| !others.contains(process));
        found.extend(last.marked.iter().copied());
        Ok(found)
    };
    end_processes(find, patience)?;
    if last.is_own_limit_lowered {
        return Err(ProcessError::LimitLowered);
    }
    match last.hiding.first() {
        Some(hiding) => Err(ProcessError::Hiding { pid: hiding.pid, command: command_of(hiding.pid) }),
        None => Ok(()),
    }
}

/// The beginning of a command line, fit for people to read.
fn command_of(pid: u32) -> String {
    let words = platform::arguments(pid).ok().flatten().unwrap_or_default().join(&b' ');
    let text = String::from_utf8_lossy(&words).replace(char::is_control, "?");
    text.chars().take(COMMAND_SHOWN).collect()
}

/// Ends a supervisor and everything below it, from outside. What is still there after `patience` is an error. Blocks.
pub fn end_supervisor(supervisor: ProcessId, patience: Duration) -> Result<(), ProcessError> {
    let tree = || {
        if !supervisor.is_running() {
            return Ok(Vec::new());
        }
        // The supervisor comes first: it is stopped before its tree could be handed on.
        Ok(std::iter::once(supervisor).chain(platform::descendants(supervisor.pid)?).collect())
    };
    end_processes(tree, patience)
}

/// One pass of ending: stops everything that `find` finds, until it finds nothing new, and only then kills.
/// A process that is stopped cannot fork, so nothing is born between the look and the kill. Passes to `seen`
/// every process it signalled and how that went. A look that fails ends the search, and is the error after the kill.
pub(crate) fn freeze_and_kill(
    mut find: impl FnMut() -> io::Result<Vec<ProcessId>>,
    mut seen: impl FnMut(ProcessId, io::Result<Delivery>),
) -> io::Result<()> {
    let mut frozen = HashSet::new();
    let mut looked = Ok(());
    for _ in 0..FREEZE_ROUNDS {
        let found = find().unwrap_or_else(|error| {
            looked = Err(error);
            Vec::new()
        });
        let fresh: Vec<_> = found.into_iter().filter(|process| frozen.insert(*process)).collect();
        if fresh.is_empty() {
            break;
        }
        for process in fresh {
            // A failure here shows again at the kill, which reports it.
            let _ = platform::send(process, Signal::STOP);
        }
    }
    for process in frozen {
        seen(process, platform::send(process, Signal::KILL));
    }
    looked
}

/// Asks exactly this process to end. One that is gone is left alone.
pub fn terminate(process: ProcessId) -> io::Result<()> {
    platform::send(process, Signal::TERM).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_look_does_not_report_that_nobody_is_left() {
        let mut looks = 0;
        let blind = end_processes(
            || {
                looks += 1;
                Err(io::Error::other("too many open files"))
            },
            Duration::from_millis(50),
        );
        assert!(matches!(blind, Err(ProcessError::CannotLook { .. })), "{blind:?}");
        assert!(looks > 2, "{looks}");
    }

    #[test]
    fn one_look_that_finds_nobody_is_not_enough() {
        let gone = ProcessId { pid: u32::MAX, start_time: 1 };
        let mut looks = [vec![], vec![gone], vec![], vec![], vec![]].into_iter();
        let mut asked = 0;
        let find = || {
            asked += 1;
            looks.next().map(Ok).unwrap()
        };
        end_processes(find, Duration::from_secs(60)).unwrap();
        // Nobody, then somebody who is frozen and killed in one look more, then nobody twice.
        assert!(asked >= 4, "{asked}");
        let never_ends = end_processes(|| Ok(vec![gone]), Duration::ZERO);
        assert!(matches!(never_ends, Err(ProcessError::StillRunning { pid: u32::MAX })), "{never_ends:?}");
    }
}
