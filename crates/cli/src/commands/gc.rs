//! `towline gc`: removes files that are no longer needed, and never work.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use towline_app::{Context, Error, Leftovers, remove_leftovers, why_spared};
use towline_core::{parse_duration, show_duration};
use towline_engine::{Clock, Spared, SystemClock, Waste};

use crate::notices;
use crate::output::{self, Layout};

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
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    older_than: Option<Duration>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Removes leftovers, or lists them.
pub(crate) async fn run(context: &Context, args: Gc) -> Result<(), Error> {
    let progress = output::progress("goals");
    let found = remove_leftovers(context, args.older_than, args.dry_run, SystemClock.now(), progress).await?;
    notices::print(&found.notices);
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
        let size = towline_terminal::bytes(*bytes);
        output::print_fitted(&[format!("{verb} {:<9} {}{branch} ({size})", kind.name(), path.display())]);
    }
    output::print_fitted(&left(&found.findings.spared));
    let freed = towline_terminal::bytes(found.bytes());
    output::print_or_exit(match (found.findings.waste.len(), found.dry_run) {
        (0, _) => {
            let age = show_duration(found.retention);
            format!("nothing to remove (logs and conversations stay for {age})")
        }
        (_, true) => format!("{freed} would be freed; nothing was changed"),
        (_, false) => format!("{freed} freed"),
    });
}

/// What stays, and why: one line for each reason, or for each thing that stays of a single goal.
fn left(spared: &[Spared]) -> Vec<String> {
    let mut by_reason: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for spared in spared {
        let what = spared.goal.map_or_else(|| spared.path.display().to_string(), |goal| goal.short());
        let [reason, advice] = why_spared(spared);
        let line = format!("left {what}: {}", output::brief(&format!("{reason}{advice}")));
        by_reason.entry(reason).or_default().entry(what).or_default().insert(line);
    }
    let lines = |(reason, goals): (String, BTreeMap<_, BTreeSet<_>>)| match goals.len() {
        1 => goals.into_values().flatten().collect(),
        count => {
            let reason = output::brief(&reason);
            vec![format!("left {count} goals, each because {reason} (`towline gc --json` lists them)")]
        }
    };
    by_reason.into_iter().flat_map(lines).collect()
}

#[cfg(test)]
mod tests {
    use towline_core::GoalId;
    use towline_engine::SpareReason;

    use super::*;

    #[test]
    fn what_stays_takes_one_line_for_each_reason_and_goals_are_counted() {
        let spared = |number, why| {
            let goal = GoalId::from_uuid(uuid::Uuid::from_u128(number));
            Spared { path: "/w".into(), goal: Some(goal), why }
        };
        let mut all: Vec<Spared> = (1..=40).map(|number| spared(number, SpareReason::Unmerged)).collect();
        all.push(spared(41, SpareReason::MayContinue { phase: "failed" }));
        // Two checkouts of one goal, and one of another.
        for (number, phase, bytes) in [(42, "paused", 7), (42, "paused", 8), (43, "blocked", 9)] {
            all.push(spared(number, SpareReason::NextVerdict { phase, bytes }));
        }
        all.extend([44, 44, 45].map(|number| spared(number, SpareReason::Busy)));
        let checkout = "and its next verdict reuses or replaces this checkout";
        let wanted = [
            format!("left 0000002b: it is blocked, {checkout} (9 bytes); to remove it: towline cancel 0000002b"),
            "left 00000029: it is failed and can be continued there (towline retry 00000029; or give it up: towline rm --force 00000029)".into(),
            format!("left 0000002a: it is paused, {checkout} (7 bytes); to remove it: towline cancel 0000002a"),
            format!("left 0000002a: it is paused, {checkout} (8 bytes); to remove it: towline cancel 0000002a"),
            "left 40 goals, each because its work is in none of your branches (`towline gc --json` lists them)".into(),
            "left 2 goals, each because somebody works on the goal (`towline gc --json` lists them)".into(),
        ];
        assert_eq!(left(&all), wanted);
    }
}
