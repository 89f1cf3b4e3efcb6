//! Only the operator changes something. A `towline` that an agent, a check or a setup command started may read.

use towline_engine::is_supervised;
use towline_process::own_number;

use crate::args::Command;
use crate::context::Context;
use crate::failure::Failure;

/// Refuses a command that changes something, when an agent, a check or a setup command of the same state directory started
/// this process.
pub(crate) fn require(context: &Context, command: &Command) -> Result<(), Failure> {
    let Some(name) = changing(command) else { return Ok(()) };
    let state_directory = context.home_path()?;
    let Some(pid) = own_number() else {
        let what = format!("cannot find out who started `towline {name}`: /proc does not list this process");
        return Err(Failure::usage(what).hint("mount the /proc of this process namespace"));
    };
    let is_supervised = is_supervised(&state_directory, pid).map_err(|error| {
        Failure::internal(format!("cannot find out who started `towline {name}`: {error}"))
    })?;
    if !is_supervised {
        return Ok(());
    }
    let what = format!("`towline {name}` was started by an agent, check or setup command of Towline");
    Err(Failure::usage(format!("{what}, and only the operator may change goals")).hint(
        "run it in a terminal of your own; to test Towline itself, set TOWLINE_HOME to another directory",
    ))
}

/// The name of a command that changes goals or what belongs to them.
fn changing(command: &Command) -> Option<&'static str> {
    match command {
        Command::Run(_) => Some("run"),
        Command::Demo(_) => Some("demo"),
        Command::Attach(_) => Some("attach"),
        Command::Answer(_) => Some("answer"),
        Command::Tell(_) => Some("tell"),
        Command::Cancel(_) => Some("cancel"),
        Command::Pause(_) => Some("pause"),
        Command::Resume(_) => Some("resume"),
        Command::Retry(_) => Some("retry"),
        Command::Restore(_) => Some("restore"),
        Command::Merge(_) => Some("merge"),
        Command::Push(_) => Some("push"),
        Command::Verify(_) => Some("verify"),
        Command::Rm(_) => Some("rm"),
        Command::Gc(gc) => (!gc.dry_run).then_some("gc"),
        // These read, write files that are no state, or are an agent's own.
        Command::Init(_)
        | Command::Show(_)
        | Command::Ls(_)
        | Command::Doctor(_)
        | Command::Agents(_)
        | Command::Logs(_)
        | Command::Replay(_)
        | Command::Diff(_)
        | Command::Questions(_)
        | Command::Completions(_)
        | Command::Complete(_)
        | Command::Man(_)
        | Command::Mcp
        | Command::Acp(_)
        | Command::Script(_) => None,
    }
}
