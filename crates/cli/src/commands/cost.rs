//! `towline cost`: what was spent.

use std::path::Path;

use clap::builder::PossibleValuesParser;
use jiff::tz::TimeZone;
use towline_api::{CostReport, UsageReport};
use towline_app::{Context, CostBy, Error, cost, since};
use towline_core::{MicroUsd, Spent};
use towline_engine::{Clock, SystemClock};

use crate::output::{self, Layout};

/// Instead of an amount that is not known.
const UNKNOWN: &str = "unknown";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline cost                             by day, of the last 30 days
  towline cost --by goal --since today
  towline cost --by project --since 2026-11-01")]
pub(crate) struct Cost {
    /// What each line is about: day, project, account, agent, model or goal
    #[arg(long, value_name = "BY", default_value = "day", value_parser = PossibleValuesParser::new(CostBy::NAMES.map(|(name, _)| name)), hide_possible_values = true)]
    by: String,
    /// Count from this day on: a number of days, such as `7d`, a date, or `today`
    #[arg(long, value_name = "DAY", default_value = "30d")]
    since: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Prints what was spent.
pub(crate) async fn run(context: &Context, args: &Cost) -> Result<(), Error> {
    let time_zone = TimeZone::system();
    let by = CostBy::NAMES
        .into_iter()
        .find(|(name, _)| *name == args.by)
        .map_or_else(CostBy::default, |(_, by)| by);
    let from = since(&args.since, SystemClock.now(), &time_zone)?;
    let report = cost(context, by, from, &time_zone).await?;
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &report);
        return Ok(());
    }
    lines(&report, by, &time_zone).iter().for_each(output::print_or_exit);
    Ok(())
}

fn lines(report: &CostReport, by: CostBy, time_zone: &TimeZone) -> Vec<String> {
    let since = report.since.to_zoned(time_zone.clone()).date();
    let days = format!("since {since}; days are those of {}", report.time_zone);
    if report.lines.is_empty() {
        return vec![format!("nothing was spent {days}")];
    }
    let head = report.by.to_uppercase();
    let heads = [head.as_str(), "COST", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(report.lines.iter().map(|line| {
        let key = match by {
            CostBy::Goal => output::short_id(&line.key),
            CostBy::Project => {
                Path::new(&line.key).file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            _ if line.key.is_empty() => UNKNOWN.to_owned(),
            _ => line.key.clone(),
        };
        cells(output::brief(&key), &line.usage)
    }));
    rows.push(cells("total".to_owned(), &report.total));
    if by == CostBy::Goal {
        let titles =
            report.lines.iter().map(|line| output::brief(line.title.as_deref().unwrap_or("(removed)")));
        let last = ["TITLE".to_owned()].into_iter().chain(titles).chain([String::new()]);
        rows.iter_mut().zip(last).for_each(|(row, title)| row.push(title));
    }
    let mut lines = output::table(&rows, &["CACHE WRITE", "CACHE READ", "OUTPUT", "INPUT"]);
    let partial = report.total.partial || report.lines.iter().any(|line| line.usage.partial);
    lines.extend(partial.then(|| "+: more was used, which the agent did not report".to_owned()));
    lines.push(days);
    lines
}

fn cells(key: String, usage: &UsageReport) -> Vec<String> {
    let cost = usage
        .cost_usd
        .and_then(MicroUsd::from_dollars)
        .map(|amount| Spent { amount, estimated: usage.estimated, partial: usage.partial }.to_string());
    // As in the cost, a plus means that it is at least so much.
    let more = if usage.partial { "+" } else { "" };
    let count =
        |count: Option<u64>| count.map_or_else(|| UNKNOWN.to_owned(), |count| format!("{count}{more}"));
    vec![
        key,
        cost.unwrap_or_else(|| UNKNOWN.to_owned()),
        count(usage.input),
        count(usage.output),
        count(usage.cache_read),
        count(usage.cache_write),
    ]
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use towline_api::CostLine;

    use super::*;

    #[test]
    fn amounts_that_no_agent_reported_are_unknown_and_sums_with_them_are_at_least_so_much() {
        let usage = |known: Option<u64>, partial| UsageReport {
            input: known,
            output: known,
            cache_read: None,
            cache_write: known,
            cost_usd: known.map(|_| 1.5),
            estimated: false,
            partial,
        };
        let line = |key: &str, usage| CostLine { key: key.to_owned(), title: None, usage };
        for (name, by) in CostBy::NAMES {
            let report = CostReport {
                by: name.to_owned(),
                time_zone: "UTC".to_owned(),
                since: Timestamp::UNIX_EPOCH,
                lines: vec![line("silent", usage(None, false)), line("known", usage(Some(7), false))],
                total: usage(Some(7), true),
            };
            let shown = lines(&report, by, &TimeZone::UTC);
            let words = |line: &String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let amounts = |line: usize| words(&shown[line])[1..6].to_vec();
            assert_eq!(amounts(1), ["unknown"; 5], "{shown:?}");
            assert_eq!(amounts(2), ["$1.50", "7", "7", "unknown", "7"], "{shown:?}");
            assert_eq!(amounts(3), ["$1.50+", "7+", "7+", "unknown", "7+"], "{shown:?}");
            assert_eq!(shown[4], "+: more was used, which the agent did not report");
        }
    }
}
