//! A session of an agent on a person's terminal. It has no supervisor: the process that starts it takes its place.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use crate::ancestry::has_first_arguments;
use crate::platform::{self, Mark};

/// Starts a session. Whatever it starts has the mark of a supervisor's program, so that it is found when the session is over. Until
/// then this process counts as its supervisor, by its name, and adopts the orphans of the session. Must be called on the main thread, which
/// has the name of the process.
#[expect(unsafe_code, reason = "only a child that is about to run another program can mark itself")]
pub fn start_session(command: &mut Command) -> io::Result<Child> {
    platform::adopt_orphans()?;
    platform::take_supervisors_name()?;
    let mark = Mark::of_program();
    // SAFETY: the closure runs in the child between fork and exec and only makes a system call.
    unsafe { command.pre_exec(move || mark.put()) };
    command.spawn()
}

/// The session is over: what it left has no supervisor any more. Must be called on the main thread.
pub fn end_session() -> io::Result<()> {
    platform::give_up_supervisors_name()
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
