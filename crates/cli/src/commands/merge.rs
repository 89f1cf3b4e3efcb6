//! `towline merge`: takes a goal's proven work into a branch of the user's.

use std::process::ExitCode;

use towline_app::{Context, Error, Merged};
use towline_core::Commit;
use towline_terminal::Paint;
use towline_workspace::{MergeStyle, MergeWay};

use crate::commands::STOPPED;
use crate::commands::verify::{show_checks, stopped};
use crate::notices;
use crate::output::{self, Layout};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline merge 1a2b3c4d --dry-run         print what would happen
  towline merge 1a2b3c4d                   into the branch that is checked out
  towline merge 1a2b3c4d --into release    into another branch
  towline merge 1a2b3c4d --squash --edit   as one commit, with your own message

Exit codes: 0 merged, or merged before · 2 there is nothing to merge · 3 the checks fail on the merge · 4 uncommitted \
changes or a conflict prevent it · 130 stopped")]
pub(crate) struct Merge {
    /// The goal's id, a prefix of it, or `@`
    id: String,
    /// The branch that gets the work [default: the one that is checked out]
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// The message of the commit; its files are the verified ones
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// Edit the message of the commit
    #[arg(long, conflicts_with = "dry_run")]
    edit: bool,
    /// Squash all of the work into one commit
    #[arg(long, conflicts_with = "no_ff")]
    squash: bool,
    /// Make a merge commit even if a fast-forward is possible
    #[arg(long)]
    no_ff: bool,
    /// Merge the unproven work of a goal without checks
    #[arg(long)]
    unproven: bool,
    /// Do not run the checks on the merge with new commits of the branch
    #[arg(long)]
    no_verify: bool,
    /// Print what would happen, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Merge {
    const fn style(&self) -> MergeStyle {
        match (self.squash, self.no_ff) {
            (true, _) => MergeStyle::Squash,
            (false, true) => MergeStyle::MergeCommit,
            (false, false) if self.message.is_some() || self.edit => MergeStyle::Reword,
            (false, false) => MergeStyle::FastForward,
        }
    }
}

/// Merges the goal's work, or reports why not.
pub(crate) async fn run(context: &Context, args: Merge) -> Result<ExitCode, Error> {
    let request = towline_app::Merge {
        style: args.style(),
        into: args.into,
        candidate: None,
        message: args.message,
        edit: args.edit,
        unproven: args.unproven,
        verify: !args.no_verify,
        dry_run: args.dry_run,
    };
    let show = show_checks(context, args.json);
    let merged = towline_app::merge(context, &args.id, &request, stopped(), show).await?;
    let Some(merged) = merged else { return Ok(ExitCode::from(STOPPED)) };
    notices::print(&merged.notices);
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &merged.report);
    } else {
        print_merge(output::paint(context), &merged);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what happened, or would.
fn print_merge(paint: Paint, merged: &Merged) {
    let (into, candidate) = (&merged.report.into, merged.candidate.short());
    let root = output::homely(&merged.root.display().to_string());
    let dry_run = merged.report.dry_run;
    let files = towline_terminal::counted(merged.report.files, "file");
    let how = match merged.way {
        MergeWay::AlreadyThere => {
            return output::print_or_exit(format_args!(
                "`{into}` of {root} has the work already (candidate {candidate})"
            ));
        }
        MergeWay::FastForward => format!("{candidate} into `{into}` of {root} (fast-forward, {files})"),
        MergeWay::MergeCommit if dry_run => {
            format!("{candidate} into `{into}` of {root} by a merge commit without conflicts ({files})")
        }
        MergeWay::Squash | MergeWay::Reworded if dry_run => {
            format!("{candidate} into `{into}` of {root} as one new commit ({files})")
        }
        made => {
            let commit = merged.commit.as_ref().map(Commit::short).unwrap_or_default();
            let kind = if made == MergeWay::MergeCommit { "by the merge commit" } else { "as the commit" };
            format!("{candidate} into `{into}` of {root} {kind} {commit} ({files})")
        }
    };
    if !dry_run {
        output::print_or_exit(paint.good(&format!("✓ merged {how}")));
        return output::print_or_exit(format_args!("  remove the goal: towline rm {}", merged.goal.short()));
    }
    output::print_or_exit(format_args!("would merge {how}; nothing was changed"));
    if merged.needs_checks {
        output::print_or_exit(format_args!(
            "  `{into}` has moved on since the goal began, so the checks would run on the merge first"
        ));
    }
}
