//! `towline diff`: what a goal changed.

use std::process::ExitCode;

use towline_core::Phase;
use towline_engine::workspace_of;
use towline_workspace::Stop;

use crate::args::Diff;
use crate::context::Context;
use crate::failure::Failure;
use crate::{find, output};

/// Prints the change: the proven candidate's when the goal is done, else what is in the workspace now.
pub(crate) async fn run(context: &Context, args: Diff) -> Result<ExitCode, Failure> {
    let found = find::goal(context, &args.id).await?;
    let (record, home) = (&found.record, &found.state.home);
    let Some(binding) = &record.state.workspace else {
        return Err(Failure::not_found(format!("goal {} has no workspace yet", record.goal.id.short())));
    };
    // What was proven can be seen without the workspace, which may have been cleared away.
    let proven = record.state.candidate.as_ref().filter(|_| record.state.phase == Phase::Done);
    let repository = find::repository(home, record)?;
    if args.stat {
        output::tell(match proven {
            Some(candidate) => repository.diff_stat(&binding.base, candidate)?,
            None => workspace_of(home, &record.goal, binding, &Stop::default())?.1.diff_stat()?,
        });
        return Ok(ExitCode::SUCCESS);
    }
    let diff = match proven {
        Some(candidate) => repository.diff(&binding.base, candidate)?,
        None => workspace_of(home, &record.goal, binding, &Stop::default())?.1.diff()?,
    };
    if args.raw {
        output::tell_bytes(diff.as_bytes());
        return Ok(ExitCode::SUCCESS);
    }
    if diff.is_empty() {
        output::say(format_args!("goal {} has changed nothing", record.goal.id.short()));
    }
    let shown = output::mask().text(&diff).into_owned();
    if shown != *diff {
        output::say(format_args!("note: secrets are hidden in this diff; --raw shows the bytes as they are"));
    }
    if output::is_terminal() {
        // Whatever the agent wrote into a file is there to be read, not obeyed.
        shown.lines().for_each(output::tell);
    } else {
        output::tell_bytes(shown.as_bytes());
    }
    Ok(ExitCode::SUCCESS)
}
