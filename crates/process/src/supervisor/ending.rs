//! The way to the end: interrupt, then SIGTERM, then SIGKILL, to the whole tree, until nothing is left.
//!
//! This decides what is sent and when; whether anything is left is the supervisor's knowledge, because it reaps.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::log;
use crate::launch::Launch;
use crate::platform::{self, Delivery, ProcessId};
use crate::record::StopCause;
use crate::sweep;

/// How soon a kill is repeated; doubled each time up to the longest, for what the kernel cannot end yet.
const FIRST_KILL_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_KILL_PAUSE: Duration = Duration::from_millis(500);
/// How long a process that has closed its pipes may take to be gone.
const EXIT_MOMENT: Duration = Duration::from_millis(100);
/// How soon a look at the tree is repeated that failed.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long the tree may be out of sight, or out of reach.
const HELPLESS_PATIENCE: Duration = Duration::from_secs(4);
/// How many ended processes are distinguished; a tree that forks without end must not fill the supervisor's memory.
const MOST_COUNTED: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The program runs. With its standard output closed it does so only for a time.
    Running { until: Option<Instant> },
    /// The program has exited by itself; what it left may still write.
    Draining { until: Instant },
    /// The program got SIGINT.
    Interrupted { until: Instant },
    /// Everything got SIGTERM.
    Terminating { until: Instant },
    /// Everything gets SIGKILL, again and again.
    Killing { again: Instant, pause: Duration },
}

pub(super) struct Ending {
    stage: Stage,
    leader: ProcessId,
    /// Whether the program is below a sandbox, which is the leader.
    sandbox_stays: bool,
    interrupt_grace: Duration,
    term_grace: Duration,
    drain: Duration,
    closed_output_grace: Option<Duration>,
    /// Why the program was stopped, if it did not exit by itself.
    pub(super) stopped: Option<StopCause>,
    ended: HashSet<ProcessId>,
    reported_failure: bool,
    /// Since when the tree cannot be looked at, or no process of it signalled.
    helpless_since: Option<Instant>,
}

impl Ending {
    pub(super) fn new(leader: ProcessId, launch: &Launch) -> Self {
        Self {
            stage: Stage::Running { until: None },
            leader,
            sandbox_stays: launch.sandbox_stays,
            interrupt_grace: launch.interrupt_grace,
            term_grace: launch.term_grace,
            drain: launch.drain,
            closed_output_grace: launch.closed_output_grace,
            stopped: None,
            ended: HashSet::new(),
            reported_failure: false,
            helpless_since: None,
        }
    }

    /// The processes of the tree; none if they cannot be looked at.
    pub(super) fn look(&mut self, now: Instant) -> Option<Vec<ProcessId>> {
        let looked = platform::tree_of(self.leader);
        looked.inspect_err(|error| self.cannot_look(error, now)).ok()
    }

    /// Whether the tree has been out of sight or out of reach for too long.
    pub(super) fn is_helpless(&self, now: Instant) -> bool {
        self.helpless_since.is_some_and(|since| now.saturating_duration_since(since) >= HELPLESS_PATIENCE)
    }

    fn cannot_look(&mut self, error: &io::Error, now: Instant) {
        self.helpless_since.get_or_insert(now);
        self.note_failure(&format!("the processes of the run cannot be looked at: {error}"));
    }

    fn note_failure(&mut self, what: &str) {
        if !std::mem::replace(&mut self.reported_failure, true) {
            log::note(what);
        }
    }

    /// How many processes besides the program had to be ended.
    pub(super) fn leftovers(&self) -> u32 {
        u32::try_from(self.ended.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.stage, Stage::Running { .. } | Stage::Draining { .. })
    }

    pub(super) fn next_step_at(&self) -> Option<Instant> {
        match self.stage {
            Stage::Running { until } => until,
            Stage::Draining { until } | Stage::Interrupted { until } | Stage::Terminating { until } => {
                Some(until)
            }
            Stage::Killing { again, .. } => Some(again),
        }
    }

    /// Begins to stop the run; does nothing when that has begun.
    pub(super) fn stop(&mut self, cause: StopCause, now: Instant) {
        match self.stage {
            Stage::Running { .. } => {
                self.stopped = Some(cause);
                let program = self.program();
                self.report([(program, platform::send(program, Signal::INT))], now);
                self.stage = Stage::Interrupted { until: now + self.interrupt_grace };
            }
            Stage::Draining { .. } => self.terminate(now),
            Stage::Interrupted { .. } | Stage::Terminating { .. } | Stage::Killing { .. } => {}
        }
    }

    /// The program itself. One that is not to be seen is not running yet, or any more.
    fn program(&self) -> ProcessId {
        let confined = if self.sandbox_stays { platform::first_grandchild(self.leader) } else { Ok(None) };
        confined.ok().flatten().unwrap_or(self.leader)
    }

    /// Skips what is left of the graces.
    pub(super) fn insist(&mut self, now: Instant) {
        if matches!(self.stage, Stage::Killing { .. }) {
            return;
        }
        if matches!(self.stage, Stage::Running { .. }) {
            self.stopped = Some(StopCause::Requested);
        }
        self.kill(FIRST_KILL_PAUSE, now);
    }

    /// The program is gone; what it left behind is next.
    pub(super) fn leader_exited(&mut self, now: Instant) {
        match self.stage {
            Stage::Running { .. } => self.stage = Stage::Draining { until: now + self.drain },
            Stage::Interrupted { .. } => self.terminate(now),
            Stage::Draining { .. } | Stage::Terminating { .. } | Stage::Killing { .. } => {}
        }
    }

    /// Nobody can write to the standard output any more: a program that has nothing left to print is expected to end.
    pub(super) fn stdout_closed(&mut self, now: Instant) {
        if let Stage::Running { until } = &mut self.stage
            && let Some(grace) = self.closed_output_grace
        {
            until.get_or_insert(now + grace);
        }
    }

    /// Nobody writes any more, so there is nothing left to wait for in a drain. The last writer may just be
    /// exiting, which closes its pipes a moment before it is gone: it is not to be taken for a leftover.
    pub(super) fn outputs_closed(&mut self, now: Instant) {
        if let Stage::Draining { until } = &mut self.stage {
            *until = (*until).min(now + EXIT_MOMENT);
        }
    }

    /// Goes a step further when it is time.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.next_step_at().is_none_or(|at| now < at) {
            return;
        }
        match self.stage {
            Stage::Running { .. } => self.stop(StopCause::OutputClosed, now),
            Stage::Draining { .. } | Stage::Interrupted { .. } => self.terminate(now),
            Stage::Terminating { .. } => self.kill(FIRST_KILL_PAUSE, now),
            Stage::Killing { pause, .. } => self.kill((pause * 2).min(LONGEST_KILL_PAUSE), now),
        }
    }

    fn terminate(&mut self, now: Instant) {
        let Some(tree) = self.look(now) else {
            self.stage = Stage::Interrupted { until: now + LOOK_AGAIN };
            return;
        };
        let terminate = |process| {
            let sent = platform::send(process, Signal::TERM);
            if matches!(sent, Ok(Delivery::Sent)) {
                // One that was suspended could not act on the signal otherwise.
                let _ = platform::send(process, Signal::CONT);
            }
            (process, sent)
        };
        self.report(tree.into_iter().map(terminate), now);
        self.stage = Stage::Terminating { until: now + self.term_grace };
    }

    fn kill(&mut self, pause: Duration, now: Instant) {
        let leader = self.leader;
        let mut results = Vec::new();
        let find = || platform::tree_of(leader);
        match sweep::freeze_and_kill(find, |process, sent| results.push((process, sent))) {
            Ok(()) => self.report(results, now),
            Err(error) => self.cannot_look(&error, now),
        }
        self.stage = Stage::Killing { again: now + pause, pause };
    }

    /// Takes note of a whole tree that was signalled.
    fn report(
        &mut self,
        signalled: impl IntoIterator<Item = (ProcessId, io::Result<Delivery>)>,
        now: Instant,
    ) {
        let mut is_out_of_reach = false;
        for (process, sent) in signalled {
            match sent {
                Ok(Delivery::Sent) => {
                    if process != self.leader && self.ended.len() < MOST_COUNTED {
                        self.ended.insert(process);
                    }
                }
                Ok(Delivery::Gone) => {}
                Err(error) => {
                    // A process of another user is waited for: nobody else could end it, either.
                    is_out_of_reach |= error.kind() != io::ErrorKind::PermissionDenied;
                    self.note_failure(&format!("process {} cannot be signalled: {error}", process.pid));
                }
            }
        }
        self.helpless_since = is_out_of_reach.then(|| self.helpless_since.unwrap_or(now));
    }
}
