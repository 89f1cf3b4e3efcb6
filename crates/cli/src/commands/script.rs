//! `towline script`: the scripted agent, as a process of its own under the supervision of any agent.

use std::process::ExitCode;

use towline_app::{Context, Error};
use towline_builtin::script::{ScriptArgs, main};
use towline_core::{SessionId, SessionPlan};

use crate::args::Script;
use crate::output;

/// Plays the next turn of a script.
pub(crate) fn run(context: &Context, args: Script) -> Result<ExitCode, Error> {
    let session = match (args.session, args.resume) {
        (_, Some(id)) => SessionPlan::Resume(SessionId::new(id)),
        (Some(id), None) => SessionPlan::Fresh(SessionId::new(id)),
        (None, None) => {
            return Err(Error::usage("a session is needed").hint("--session ID, or --resume ID"));
        }
    };
    // Below the sessions, which a sandbox leaves to the agent.
    let state = context.home_path()?.join("sessions").join("scripts");
    let args = ScriptArgs { script: args.script, session, state };
    match main(&args, std::io::stdin().lock(), std::io::stdout().lock(), &context.directory) {
        Ok(played) => Ok(ExitCode::from(played.exit_code())),
        Err(error) => {
            output::eprint(format_args!("{error}"));
            Ok(ExitCode::FAILURE)
        }
    }
}
