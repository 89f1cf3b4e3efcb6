//! `towline enter`: opens the agent's own session of a goal for a person.

use std::io::{self, IsTerminal};
use std::process::Command;

use towline_app::{Context, Error, SessionCommand, enter, session_command, typed, way_to_continue};
use towline_process::Session;
use towline_view::hints::command_line;

use crate::args::OneGoal;
use crate::{find, output};

/// Pauses the goal, opens the session, and lets the goal go when the person leaves.
pub(crate) async fn run(context: &Context, args: OneGoal) -> Result<(), Error> {
    let found = find::goal(context, &args.id).await?;
    let goal = found.record.goal.id;
    let id = goal.short();
    let planned = session_command(context, &found.record)?;
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let hint = if planned.is_confined {
            format!("run `towline enter {id}` in a terminal: the session is in a sandbox")
        } else {
            let typed = typed(&planned);
            format!("pause the goal (towline pause {id}), then type in a terminal: {typed}")
        };
        return Err(Error::usage("`towline enter` needs a terminal").hint(hint));
    }
    let visit = enter(context, found).await?;
    let SessionCommand { agent, directory, without_mcp, .. } = &visit.command;
    output::print(format_args!("goal {id} is yours: the session of {agent} in {}", directory.display()));
    output::print(format_args!("Towline does not count what you spend in it; leave it to continue the goal"));
    if !without_mcp.is_empty() {
        output::print(format_args!("this session does not have its MCP servers: {}", without_mcp.join(", ")));
    }
    let ended = hold_session(&visit.command).await;
    let phase = visit.end(ended.as_ref().ok().copied().flatten()).await?;
    ended?;
    let next = command_line(&way_to_continue(goal, &phase));
    output::print(format_args!("goal {id} is {}; continue it with: {next}", phase.name()));
    Ok(())
}

/// Runs the session on the person's terminal. Returns its exit code, none if a signal ended it.
#[expect(clippy::disallowed_methods, reason = "the owner of the person's session")]
async fn hold_session(command: &SessionCommand) -> Result<Option<i32>, Error> {
    let failed = |error: io::Error| Error::internal(format!("cannot run the session: {error}"));
    let (program, args) = command.argv.split_first().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    let mut session = Command::new(program);
    session.args(args).env_clear().envs(&command.environment).current_dir(&command.directory);
    let session = Session::start(&mut session)
        .map_err(|error| Error::usage(format!("cannot start `{program}`: {error}")))?;
    session.wait().await.map_err(failed)
}
