//! `towline init`: writes a `towline.toml` that fits the project.

use towline_api::MissingPart;
use towline_app::init::{Proposal, Protection, Writing, init};
use towline_app::{Context, Error};
use towline_terminal::Paint;
use towline_view::hints::words;

use crate::inspect::{Mark, Row, rows_lines};
use crate::output::{self, Layout};

#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Show what would be written, and write nothing
    #[arg(long, alias = "stdout", conflicts_with = "force")]
    print: bool,
    /// Print what was found and written as JSON
    #[arg(long)]
    json: bool,
}

/// Writes the file, or shows it, and prints what comes next.
pub(crate) fn run(context: &Context, args: &Init) -> Result<(), Error> {
    let writing = match (args.print, args.force) {
        (true, _) => Writing::No,
        (false, false) => Writing::New,
        (false, true) => Writing::Replace,
    };
    let mut proposal = init(context, writing)?;
    proposal.report.next = next(&proposal);
    proposal.report.missing = proposal.missing.iter().map(missing_part).collect();
    match (args.json, args.print) {
        (true, _) => output::print_json_or_exit(Layout::Pretty, &proposal.report),
        (false, true) => output::print_or_exit(proposal.report.text.trim_end()),
        (false, false) => print_proposal(output::paint(context), &proposal),
    }
    Ok(())
}

/// What to type next.
fn next(proposal: &Proposal) -> Vec<String> {
    let commit = match (&proposal.report.repository, proposal.has_commits) {
        (None, _) => "git init && git add -A && git commit -m \"Start\"",
        (Some(_), false) => "git add -A && git commit -m \"Start\"",
        (Some(_), true) => "git add towline.toml && git commit -m \"Add towline.toml\"",
    };
    let check = if proposal.report.checks.is_empty() { " --check \"./test.sh\"" } else { "" };
    vec![commit.to_owned(), format!("towline run \"fix the failing test\"{check}")]
}

fn missing_part(row: &Row) -> MissingPart {
    let fix = row.fix.as_ref().map(words).unwrap_or_default();
    MissingPart { about: row.label.clone(), what: row.text.clone(), fix }
}

fn print_proposal(paint: Paint, proposal: &Proposal) {
    let report = &proposal.report;
    output::print_or_exit(format_args!("{} {}", paint.good("wrote"), output::printable(&report.path)));
    output::print_or_exit("");
    rows_lines(paint, &rows(proposal)).iter().for_each(output::print_or_exit);
    output::print_or_exit("");
    output::print_or_exit(paint.bold("next"));
    report.next.iter().for_each(|command| output::print_or_exit(format_args!("  {command}")));
}

/// The first of what is protected for one reason, and how many there are.
fn protected(part: &Protection) -> String {
    const SHOWN: usize = 3;
    let first = part.paths.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match part.paths.len().saturating_sub(SHOWN) {
        0 => format!("{}: {first}", part.what),
        more => format!("{}: {first} and {more} more in the file", part.what),
    }
}

fn rows(proposal: &Proposal) -> Vec<Row> {
    let report = &proposal.report;
    let good = |label: &str, text: String| Row::new(Mark::Good, label, text);
    let mut rows = Vec::new();
    rows.extend(report.agents.iter().map(|agent| good("agent", format!("{} ({})", agent.name, agent.path))));
    rows.extend(report.checks.iter().map(|check| good("check", check.run.clone())));
    if !report.suggestions.is_empty() {
        let names: Vec<&str> = report.suggestions.iter().map(|check| check.name.as_str()).collect();
        let text = format!("{} (commented out in the file)", names.join(", "));
        rows.push(Row::new(Mark::Plain, "could be", text));
    }
    rows.extend(report.setup.iter().map(|command| good("setup", command.clone())));
    rows.extend(report.copy.iter().map(|file| good("copy", file.clone())));
    rows.extend(proposal.protected.iter().map(|part| good("protected", protected(part))));
    rows.extend(proposal.missing.iter().cloned());
    rows
}
