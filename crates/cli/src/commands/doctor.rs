//! `towline doctor`: whether Towline can work here, each problem with its fix.

use std::process::ExitCode;

use towline_api::Level;
use towline_app::inspect::{Diagnosis, diagnose};
use towline_app::{Context, Error};

use crate::args::OutputFormat;
use crate::inspect::{NEEDS_A_PERSON, count, findings, rows_lines, summary};
use crate::output::{self, Layout};

/// Looks at everything and prints what it saw.
pub(crate) async fn run(context: &Context, args: OutputFormat) -> Result<ExitCode, Error> {
    let Diagnosis { mut report, sections } = diagnose(context).await;
    report.findings = sections.iter().flat_map(|(section, rows)| findings(section, rows)).collect();
    let problems = count(&report.findings, Level::Problem);
    report.ok = problems == 0;
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &report);
    } else {
        let paint = output::paint(context);
        for (section, rows) in &sections {
            output::print_or_exit(paint.bold(section));
            rows_lines(paint, rows).iter().for_each(output::print_or_exit);
            output::print_or_exit("");
        }
        output::print_or_exit(summary(paint, problems, count(&report.findings, Level::Note)));
    }
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::from(NEEDS_A_PERSON) })
}
