//! The shim itself: what runs in the supervisor process. One thread, one poll loop, fixed buffers.
//!
//! [`main`] prepares the process and hands over to the supervisor's loop, which owns our ends of the program's
//! streams (`wiring`, `output`, `stdin`, `terminal`), the clients (`peer`), and the way to the end (`ending`). The shim never interprets what
//! the program says and never trusts a client to be there.

mod ending;
mod finishing;
mod leader;
mod log;
mod output;
mod peer;
mod place;
mod requests;
mod signals;
mod startup;
mod stdin;
mod supervisor;
mod terminal;
mod wiring;

use std::path::Path;
use std::process::ExitCode;

/// Runs the program described in `dir` to its end. This is the whole of the shim's process: it must be called
/// first thing in `main`, with no other thread running, because it closes every descriptor but the standard
/// three and makes the process a supervisor.
pub fn main(dir: &Path) -> ExitCode {
    let outcome = startup::prepare(dir).and_then(supervisor::Supervisor::run);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::note(&format!("giving up: {error}"));
            ExitCode::FAILURE
        }
    }
}
