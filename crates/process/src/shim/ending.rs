//! The way to the end: interrupt, then SIGTERM, then SIGKILL, to the whole tree, until nothing is left.
//!
//! This decides what is sent and when; whether anything is left is the supervisor's knowledge, because it reaps.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use super::log;
use crate::launch::Launch;
use crate::platform::{self, Delivery, ProcessId, Signal};
use crate::record::StopCause;
use crate::sweep;

/// How soon a kill is repeated; doubled each time up to the longest, for what the kernel cannot end yet.
const FIRST_KILL_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_KILL_PAUSE: Duration = Duration::from_millis(500);
/// How long a process that has closed its pipes may take to be gone.
const EXIT_MOMENT: Duration = Duration::from_millis(100);
/// How many ended processes are told apart; a tree that forks without end must not fill the shim's memory.
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
    interrupt_grace: Duration,
    term_grace: Duration,
    drain: Duration,
    closed_output_grace: Option<Duration>,
    stopped: Option<StopCause>,
    ended: HashSet<ProcessId>,
    reported_failure: bool,
}

impl Ending {
    pub(super) fn new(leader: ProcessId, launch: &Launch) -> Self {
        Self {
            stage: Stage::Running { until: None },
            leader,
            interrupt_grace: launch.interrupt_grace,
            term_grace: launch.term_grace,
            drain: launch.drain,
            closed_output_grace: launch.closed_output_grace,
            stopped: None,
            ended: HashSet::new(),
            reported_failure: false,
        }
    }

    /// Why the program was stopped, if it did not exit by itself.
    pub(super) fn stopped(&self) -> Option<StopCause> {
        self.stopped
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
                let sent = platform::send(self.leader, Signal::Interrupt);
                self.report(self.leader, sent);
                self.stage = Stage::Interrupted { until: now + self.interrupt_grace };
            }
            Stage::Draining { .. } => self.terminate(now),
            Stage::Interrupted { .. } | Stage::Terminating { .. } | Stage::Killing { .. } => {}
        }
    }

    /// Skips what is left of the graces.
    pub(super) fn insist(&mut self, now: Instant) {
        match self.stage {
            Stage::Running { .. } => {
                self.stopped = Some(StopCause::Requested);
                self.kill(FIRST_KILL_PAUSE, now);
            }
            Stage::Draining { .. } | Stage::Interrupted { .. } | Stage::Terminating { .. } => {
                self.kill(FIRST_KILL_PAUSE, now);
            }
            Stage::Killing { .. } => {}
        }
    }

    /// The program is gone; what it left behind is next.
    pub(super) fn leader_exited(&mut self, now: Instant) {
        match self.stage {
            Stage::Running { .. } => self.stage = Stage::Draining { until: now + self.drain },
            Stage::Interrupted { .. } => self.terminate(now),
            Stage::Draining { .. } | Stage::Terminating { .. } | Stage::Killing { .. } => {}
        }
    }

    /// Nobody can write to the standard output any more: a program that has nothing left to say is expected to end.
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
        for process in platform::tree_of(self.leader) {
            let sent = platform::send(process, Signal::Terminate);
            if matches!(sent, Ok(Delivery::Sent)) {
                // One that was suspended could not act on the signal otherwise.
                let _ = platform::send(process, Signal::Continue);
            }
            self.report(process, sent);
        }
        self.stage = Stage::Terminating { until: now + self.term_grace };
    }

    fn kill(&mut self, pause: Duration, now: Instant) {
        let leader = self.leader;
        let mut results = Vec::new();
        sweep::freeze_and_kill(|| platform::tree_of(leader), |process, sent| results.push((process, sent)));
        for (process, sent) in results {
            self.report(process, sent);
        }
        self.stage = Stage::Killing { again: now + pause, pause };
    }

    fn report(&mut self, process: ProcessId, sent: io::Result<Delivery>) {
        match sent {
            Ok(Delivery::Sent) => {
                if process != self.leader && self.ended.len() < MOST_COUNTED {
                    self.ended.insert(process);
                }
            }
            Ok(Delivery::Gone) => {}
            Err(error) => {
                if !std::mem::replace(&mut self.reported_failure, true) {
                    log::note(&format!("process {} cannot be signalled: {error}", process.pid));
                }
            }
        }
    }
}
