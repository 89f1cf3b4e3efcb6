//! The supervisor process. One thread, one poll loop, fixed buffers.
//!
//! [`main`] prepares the process and hands over to the supervisor's loop, which owns our ends of the program's
//! streams (`wiring`, `output`, `stdin`, `terminal`), the clients (`peer`), and the way to the end (`ending`). The supervisor never interprets what
//! the program prints and never trusts a client to be there.

mod ending;
mod finishing;
mod leader;
mod log;
mod output;
mod peer;
mod requests;
mod signals;
mod startup;
mod state;
mod stdin;
mod terminal;
mod wiring;

use std::path::Path;
use std::process::ExitCode;

/// Runs the program described in `dir` to its end. This is the whole of the supervisor's process: it must be called
/// first thing in `main`, with no other thread running, because it closes every descriptor but the standard
/// three and makes the process a supervisor.
pub fn main(dir: &Path) -> ExitCode {
    let outcome = startup::prepare(dir).and_then(state::Supervisor::run);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::note(&format!("giving up: {error}"));
            ExitCode::FAILURE
        }
    }
}
