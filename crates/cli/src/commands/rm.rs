//! `towline rm`: removes goals with everything that belongs to them, and never their work.

use std::process::ExitCode;

use towline_app::{Context, Error, Removal};
use towline_core::GoalId;
use towline_engine::Removed;
use towline_store::GoalRecord;

use crate::failure::error_text;
use crate::output::{self, Layout};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A goal that has not ended is removed after a question on the terminal, or with --force. \
A goal whose work is in none of your branches, remote branches or tags is not removed. With --force it is removed, and its \
work stays under refs/towline/removed/ in the repository: `git branch NAME COMMIT` with the printed commit restores it. \
Work that git cannot hold, for example below a path that is too long, is left where it is; delete it by hand.")]
pub(crate) struct Rm {
    /// The goals' ids, prefixes of them, or `@`
    #[arg(required = true)]
    ids: Vec<String>,
    /// Also remove goals that have not ended, goals with unmerged work, and goals that cannot be read
    #[arg(short, long)]
    force: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Removes the goals one by one; those that cannot be removed do not keep the others.
pub(crate) async fn run(context: &Context, args: Rm) -> Result<ExitCode, Error> {
    let show = |removal: &Removal| match (&removal.record, &removal.removed) {
        _ if args.json => {}
        (Some(record), Ok(removed)) => print_removed(record, removed),
        (None, Ok(_)) => print_discarded(removal.goal),
        (_, Err(_)) => {}
    };
    let agrees = |record: &GoalRecord| {
        let (id, phase) = (record.goal.id.short(), record.state.phase.name());
        !args.json && output::agrees(format_args!("goal {id} is {phase} and has not ended; remove it?"))
    };
    let removals = towline_app::remove(context, &args.ids, args.force, agrees, show).await?;
    let several = removals.len() > 1 || args.json;
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &removals.iter().map(Removal::report).collect::<Vec<_>>());
    }
    let mut failures = Vec::new();
    for Removal { goal, removed, record, .. } in removals {
        let phase = record.as_ref().map(|record| &record.state.phase);
        failures.extend(removed.err().map(|source| Error::not_removed(goal, phase, source)));
    }
    if several {
        failures.iter().for_each(|failure| output::eprint(format_args!("{}", error_text(failure))));
    }
    match failures.pop() {
        None => Ok(ExitCode::SUCCESS),
        Some(failure) if several => Ok(ExitCode::from(failure.kind().exit_code())),
        Some(failure) => Err(failure),
    }
}

fn print_discarded(goal: GoalId) {
    let id = goal.short();
    output::print_or_exit(format_args!(
        "removed goal {id}, which could not be read; its files stay: towline gc lists them"
    ));
}

fn print_removed(record: &GoalRecord, removed: &Removed) {
    let id = record.goal.id.short();
    output::print_or_exit(format_args!(
        "removed goal {id} ({} freed)",
        towline_terminal::bytes(removed.bytes)
    ));
    for work in &removed.preserved {
        output::print_or_exit(format_args!(
            "  its unmerged work is still at {}: git -C {} branch NAME {}",
            work.reference,
            record.goal.workspace.repository,
            work.commit.short()
        ));
    }
    if let Some(why) = &removed.not_preserved {
        output::print_or_exit(format_args!("  its work is under no ref: {why}"));
    }
    if let Some(files) = &removed.left.files {
        if !removed.left.submodules.is_empty() {
            let submodules = removed.left.submodules.join(", ");
            output::print_or_exit(format_args!("  work in its submodules is nowhere else: {submodules}"));
        }
        output::print_or_exit(format_args!(
            "  left in place, because it may have unmerged work: {}",
            files.display()
        ));
    }
    if let Some(checkout) = &removed.left.branch_in {
        output::print_or_exit(format_args!(
            "  its branch stays, because it is checked out in {}",
            checkout.display()
        ));
    }
}
