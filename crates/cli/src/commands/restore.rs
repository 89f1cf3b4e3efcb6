//! `towline restore`: the files of an in-place goal as they were before it.

use std::path::Path;
use std::process::ExitCode;

use towline_engine::{is_at_work, must_be_alone, workspace_of};

use crate::context::Context;
use crate::failure::Failure;
use crate::{find, output};

/// Put files back.
#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    /// The goal's id, or a prefix of it
    pub(crate) id: String,
    /// Only these files or directories, by their path from the top of the goal's directory
    pub(crate) paths: Vec<String>,
}

/// Puts the files back, unless somebody is at work on them.
pub(crate) async fn run(context: &Context, args: Restore) -> Result<ExitCode, Failure> {
    let found = find::goal(context, &args.id).await?;
    let (record, home) = (&found.record, &found.state.home);
    let id = record.goal.id.short();
    if !record.goal.workspace.mode.is_in_place() {
        return Err(Failure::usage(format!(
            "goal {id} has a worktree of its own: your files are as you left them"
        ))
        .hint(format!("see what it changed: towline diff {id}")));
    }
    let Some(binding) = &record.state.workspace else {
        return Err(Failure::usage(format!("goal {id} has not begun: nothing is changed")));
    };
    if is_at_work(home, record) {
        return Err(Failure::usage(format!("goal {id} is at work on these files"))
            .hint(format!("end it first: towline cancel {id}")));
    }
    let folder = Path::new(&record.goal.workspace.repository);
    must_be_alone(home, found.state.store.as_ref(), record.goal.id, folder).await?;
    let (_, workspace) = workspace_of(home, &record.goal, binding)?;
    let replaced = workspace.restore(&args.paths)?;
    output::print(format_args!("{} is as it was before goal {id}", workspace.path().display()));
    output::print(format_args!(
        "  what was there is kept as commit {} in {}",
        replaced.short(),
        workspace.history().display()
    ));
    Ok(ExitCode::SUCCESS)
}
