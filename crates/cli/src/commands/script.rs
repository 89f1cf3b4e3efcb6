//! `towline script`: the scripted agent, as a process of its own under the supervision of any agent.

use std::process::ExitCode;

use towline_app::Error;
use towline_builtin::script::{ScriptArgs, main};
use towline_core::{SessionId, SessionPlan};

use crate::args::Script;
use crate::output;

/// Plays the next turn of a script.
pub(crate) fn run(args: Script) -> Result<ExitCode, Error> {
    let session = match (args.session, args.resume) {
        (_, Some(id)) => SessionPlan::Resume(SessionId::new(id)),
        (Some(id), None) => SessionPlan::Fresh(SessionId::new(id)),
        (None, None) => {
            return Err(Error::usage("a session is needed").hint("--session ID, or --resume ID"));
        }
    };
    let directory = std::env::current_dir().map_err(|error| Error::usage(error.to_string()))?;
    let args = ScriptArgs { script: args.script, session, state: None };
    match main(&args, std::io::stdin().lock(), std::io::stdout().lock(), &directory) {
        Ok(played) => Ok(ExitCode::from(played.exit_code())),
        Err(error) => {
            output::eprint(format_args!("{error}"));
            Ok(ExitCode::FAILURE)
        }
    }
}
