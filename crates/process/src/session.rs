//! A session of an agent on a person's terminal. It has no supervisor: the process that starts it takes its place.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::signal::unix::{self, SignalKind};

use crate::ancestry::has_first_arguments;
use crate::platform::{self, Mark};

/// A session that runs on the terminal of this process.
pub struct Session {
    pid: Pid,
    /// How the terminal was before it.
    modes: Option<Termios>,
    /// Ctrl-C and Ctrl-\ belong to the session.
    interrupt: unix::Signal,
    quit: unix::Signal,
    /// What ends this process ends the session.
    terminate: unix::Signal,
    hangup: unix::Signal,
}

impl Session {
    /// Starts a session. Whatever it starts has the mark of a supervisor's program, so that it is found when the session is over.
    /// Until then this process counts as its supervisor, by its name, and adopts the orphans of the session. Must be called on the
    /// main thread, which has the name of the process.
    #[expect(unsafe_code, reason = "only a child that is about to run another program can mark itself")]
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let (interrupt, quit) = (unix::signal(SignalKind::interrupt())?, unix::signal(SignalKind::quit())?);
        let (terminate, hangup) =
            (unix::signal(SignalKind::terminate())?, unix::signal(SignalKind::hangup())?);
        let modes = tcgetattr(io::stdin()).ok();
        platform::adopt_orphans()?;
        platform::take_supervisors_name()?;
        let mark = Mark::of_program();
        // SAFETY: the closure runs in the child between fork and exec and only makes a system call.
        unsafe { command.pre_exec(move || mark.put()) };
        let pid = i32::try_from(command.spawn()?.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { pid, modes, interrupt, quit, terminate, hangup })
    }

    /// Waits until the session is over; what it left has no supervisor any more. Returns its exit code, none if a signal ended
    /// it. Must be polled on the main thread.
    pub async fn wait(mut self) -> io::Result<Option<i32>> {
        let pid = self.pid;
        let mut waiting = tokio::task::spawn_blocking(move || wait_for_end(pid));
        let ended = loop {
            let signal = tokio::select! {
                ended = &mut waiting => break ended,
                _ = self.interrupt.recv() => continue,
                _ = self.quit.recv() => continue,
                _ = self.terminate.recv() => Signal::TERM,
                _ = self.hangup.recv() => Signal::HUP,
            };
            // One that has just ended needs no signal.
            let _ = kill_process(pid, signal);
        };
        platform::give_up_supervisors_name()?;
        if let Some(modes) = self.modes {
            // A session that crashed leaves the terminal as it had it.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
        }
        ended.map_err(io::Error::other)?
    }
}

/// Waits for the session's end. While the person has suspended it, this process is suspended as well, so that the shell has
/// the terminal. After a hangup there is no shell that could continue them, so the session ends.
fn wait_for_end(session: Pid) -> io::Result<Option<i32>> {
    loop {
        // What the session has started and abandoned comes to this process, and is not to stay a zombie.
        match wait(WaitOptions::UNTRACED) {
            Ok(Some((ended, _))) if ended != session => {}
            Ok(Some((_, status))) if status.stopped() && tcgetattr(io::stdin()).is_ok() => {
                kill_process(getpid(), Signal::STOP)?;
            }
            Ok(Some((_, status))) if status.stopped() => {
                kill_process(session, Signal::HUP)?;
                kill_process(session, Signal::CONT)?;
            }
            Ok(Some((_, status))) => return Ok(status.exit_status()),
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether a process was started in a session, directly or not, by a program with these first arguments.
pub fn is_in_session(pid: u32, arguments: &[String]) -> io::Result<bool> {
    for above in platform::ancestors(pid)? {
        let line = platform::arguments(above)?.unwrap_or_default();
        if platform::has_supervisors_name(above)? && has_first_arguments(&line, arguments) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether our process group has this terminal now; a shell that puts us into the background takes it away. `None` for what
/// has no such groups.
pub fn is_in_foreground(terminal: impl AsFd) -> Option<bool> {
    let ours = platform::own_group()?;
    match tcgetpgrp(terminal) {
        Ok(group) => Some(u32::try_from(group.as_raw_nonzero().get()) == Ok(ours)),
        // Both groups are outside our process namespace.
        Err(Errno::OPNOTSUPP) if ours == 0 => Some(true),
        Err(_) => None,
    }
}
