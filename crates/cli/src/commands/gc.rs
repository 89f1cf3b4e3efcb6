//! `towline gc`: removes files that are no longer needed, and never work.

use std::collections::BTreeMap;

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
    let left = left(&found.findings.spared);
    left.iter().flat_map(|line| output::fitted(line)).for_each(output::print_or_exit);
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

/// What stays, and why: one line for each reason.
fn left(spared: &[Spared]) -> Vec<String> {
    let mut by_reason: BTreeMap<&str, Vec<&Spared>> = BTreeMap::new();
    for spared in spared {
        // What to do about it is about this goal alone.
        let reason = spared.why.split([';', '(']).next().unwrap_or_default();
        by_reason.entry(reason.trim_end()).or_default().push(spared);
    }
    let line = |(reason, spared): (&str, Vec<&Spared>)| match spared[..] {
        [Spared { goal, path, why }] => {
            let what = goal.map_or_else(|| path.display().to_string(), |goal| goal.short());
            format!("left {what}: {}", output::brief(why))
        }
        _ => {
            let (count, reason) = (spared.len(), output::brief(reason));
            format!("left {count} goals, each because {reason} (`towline gc --json` lists them)")
        }
    };
    by_reason.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use towline_core::GoalId;

    use super::*;

    #[test]
    fn what_stays_takes_one_line_for_each_reason() {
        let spared = |number, why: &str| {
            let goal = GoalId::from_uuid(uuid::Uuid::from_u128(number));
            Spared { path: "/w".into(), goal: Some(goal), why: why.to_owned() }
        };
        let unmerged = |number| spared(number, &format!("it has work (towline merge {number})"));
        let mut all: Vec<Spared> = (1..=40).map(unmerged).collect();
        all.push(spared(
            41,
            "it is failed and may go on there (towline retry 41; or give it up: towline rm 41)",
        ));
        let wanted = [
            "left 40 goals, each because it has work (`towline gc --json` lists them)",
            "left 00000029: it is failed and may go on there (towline retry 41; or give it up: towline rm 41)",
        ];
        assert_eq!(left(&all), wanted);
    }
}
