//! `towline gc`: removes files that are no longer needed, and never work.

use std::time::Duration;

use towline_app::{Context, Error, Leftovers, remove_leftovers};
use towline_core::{BadDuration, parse_duration, show_duration};
use towline_engine::{Clock, Spared, SystemClock, Waste};

use crate::notices;
use crate::output::{self, Layout};

/// Remove files that are no longer needed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Removes workspaces and branches of goals that are done and merged, leftover checkouts, files of goals that do not exist \
any more, locks and sockets of dead processes, and old raw logs of ended goals and old conversations of the built-in \
agent. Goals stay listed: remove those with `towline rm`.")]
pub(crate) struct Gc {
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove logs and conversations of this age [default: `retention.logs` of the configuration, 30d]
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn age(text: &str) -> Result<Duration, BadDuration> {
    parse_duration(text)
}

/// Removes leftovers, or lists them.
pub(crate) async fn run(context: &Context, args: Gc) -> Result<(), Error> {
    let progress = output::progress("goals");
    let found = remove_leftovers(context, args.older_than, args.dry_run, SystemClock.now(), progress).await?;
    notices::settings(&found.warnings);
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &found.report());
    } else {
        print_leftovers(&found);
    }
    Ok(())
}

fn print_leftovers(found: &Leftovers) {
    let verb = if found.dry_run { "would remove" } else { "removed" };
    for Waste { kind, path, branch, bytes, .. } in &found.findings.waste {
        let branch = branch.as_ref().map(|branch| format!(" and branch {branch}")).unwrap_or_default();
        let size = output::bytes(*bytes);
        let line = format!("{verb} {:<9} {}{branch} ({size})", kind.name(), path.display());
        output::fitted(&line).iter().for_each(output::print_or_exit);
    }
    for Spared { goal, path, why } in &found.findings.spared {
        let what = goal.map_or_else(|| path.display().to_string(), |goal| goal.short());
        output::fitted(&format!("left {what}: {}", output::brief(why)))
            .iter()
            .for_each(output::print_or_exit);
    }
    let freed = output::bytes(found.bytes());
    output::print_or_exit(match (found.findings.waste.len(), found.dry_run) {
        (0, _) => {
            let age = show_duration(found.retention);
            format!("nothing to remove (logs and conversations stay for {age})")
        }
        (_, true) => format!("{freed} would be freed; nothing was changed"),
        (_, false) => format!("{freed} freed"),
    });
}
