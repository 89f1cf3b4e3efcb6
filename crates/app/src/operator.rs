//! Only the operator changes something. What an agent, a check or a setup command started may read.

use towline_engine::is_supervised;
use towline_process::own_number;

use crate::context::Context;
use crate::error::Error;

/// Refuses to change anything, when an agent, a check or a setup command of the same state directory started this process.
pub fn require_operator(context: &Context) -> Result<(), Error> {
    let state_directory = context.home_path()?;
    let Some(pid) = own_number() else {
        return Err(Error::usage(
            "cannot find out who started this command: /proc does not list this process",
        )
        .hint("mount the /proc of this process namespace"));
    };
    let is_supervised = is_supervised(&state_directory, pid)
        .map_err(|error| Error::internal(format!("cannot find out who started this command: {error}")))?;
    if !is_supervised {
        return Ok(());
    }
    let what = "this command was started by an agent, check or setup command of Towline, and only the operator may change goals";
    Err(Error::usage(what).hint(
        "run it in a terminal of your own; to test Towline itself, set TOWLINE_HOME to another directory",
    ))
}
