//! `towline enter`: opens the agent's own session of a goal for a person.

use std::io::{self, IsTerminal};
use std::process::Command;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};
use towline_app::{Context, Error, SessionCommand, enter, session_command, typed, way_to_continue};

use crate::hints::command_line;
use crate::{find, output};

/// Take over the session of a goal's agent.
#[derive(Debug, clap::Args)]
pub(crate) struct Enter {
    /// The goal's id, a prefix of it, or `@`
    id: String,
}

/// Pauses the goal, opens the session, and lets the goal go when the person leaves.
pub(crate) async fn run(context: &Context, args: Enter) -> Result<(), Error> {
    let found = find::goal(context, &args.id).await?;
    let goal = found.record.goal.id;
    let id = goal.short();
    let planned = session_command(context, &found.record)?;
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Error::usage("`towline enter` needs a terminal").hint(format!(
            "pause the goal (towline pause {id}), then type in a terminal: {}",
            typed(&planned)
        )));
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
    // Ctrl-C and Ctrl-\ belong to the session; what ends this process ends the session.
    let [mut interrupt, mut quit, mut terminate, mut hangup] = [
        signal(SignalKind::interrupt()).map_err(failed)?,
        signal(SignalKind::quit()).map_err(failed)?,
        signal(SignalKind::terminate()).map_err(failed)?,
        signal(SignalKind::hangup()).map_err(failed)?,
    ];
    let (program, args) = command.argv.split_first().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    let modes = tcgetattr(io::stdin()).ok();
    let mut session = Command::new(program);
    session.args(args).env_clear().envs(&command.environment).current_dir(&command.directory);
    let child = towline_process::start_session(&mut session)
        .map_err(|error| Error::usage(format!("cannot start `{program}`: {error}")))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    let mut waiting = tokio::task::spawn_blocking(move || wait_for_end(pid));
    let ended = loop {
        let signal = tokio::select! {
            ended = &mut waiting => break ended,
            _ = interrupt.recv() => continue,
            _ = quit.recv() => continue,
            _ = terminate.recv() => Signal::TERM,
            _ = hangup.recv() => Signal::HUP,
        };
        // One that has just ended needs no signal.
        let _ = kill_process(pid, signal);
    };
    towline_process::end_session().map_err(failed)?;
    if let Some(modes) = modes {
        // A session that crashed leaves the terminal as it had it.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
    }
    ended.map_err(io::Error::other).and_then(|ended| ended).map_err(failed)
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
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
