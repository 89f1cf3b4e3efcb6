//! `towline restore`: the files of an in-place goal as they were before it.

use std::process::ExitCode;

use towline_app::Restored;

use crate::context::Context;
use crate::failure::Failure;
use crate::output;

/// Put files back.
#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    /// The goal's id, a prefix of it, or `@`
    pub(crate) id: String,
    /// Restore only these files or directories, by their path from the root of the goal's directory
    pub(crate) paths: Vec<String>,
}

/// Restores the files, unless the goal is at work on them.
pub(crate) async fn run(context: &Context, args: Restore) -> Result<ExitCode, Failure> {
    let named = args.paths.join(", ");
    let restored = towline_app::restore(context, &args.id, args.paths).await?;
    let Restored { goal, replaced, folder, history } = restored;
    let (id, folder) = (goal.short(), folder.display());
    let what = if named.is_empty() { folder.to_string() } else { format!("{named} in {folder}") };
    output::print(format_args!("restored {what} to the state before goal {id}"));
    output::print(format_args!(
        "  the replaced files are in commit {} of {}",
        replaced.short(),
        history.display()
    ));
    Ok(ExitCode::SUCCESS)
}
