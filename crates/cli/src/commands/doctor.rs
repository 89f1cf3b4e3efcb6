//! `towline doctor`: whether Towline can work here, each problem with its fix.

use std::process::ExitCode;

use towline_api::{DoctorReport, Finding, Level};
use towline_app::inspect::{Diagnosis, diagnose};
use towline_app::{Context, Error};

use crate::args::OutputFormat;
use crate::inspect::{NEEDS_A_PERSON, count, findings, rows_lines, summary};
use crate::output::{self, Layout};
use crate::view::Paint;

/// Looks at everything and prints what it saw.
pub(crate) async fn run(context: &Context, args: OutputFormat) -> Result<ExitCode, Error> {
    let diagnosis = diagnose(context).await;
    let found: Vec<Finding> =
        diagnosis.sections.iter().flat_map(|(section, rows)| findings(section, rows)).collect();
    let problems = count(&found, Level::Problem);
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &report(diagnosis, found));
    } else {
        let paint = Paint::for_stdout(context);
        for (section, rows) in &diagnosis.sections {
            output::print_or_exit(paint.bold(section));
            rows_lines(paint, rows).iter().for_each(output::print_or_exit);
            output::print_or_exit("");
        }
        output::print_or_exit(summary(paint, problems, count(&found, Level::Note)));
    }
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::from(NEEDS_A_PERSON) })
}

fn report(diagnosis: Diagnosis, findings: Vec<Finding>) -> DoctorReport {
    let Diagnosis { agents, frames_not_understood, git, store, configuration, processes, .. } = diagnosis;
    DoctorReport {
        ok: count(&findings, Level::Problem) == 0,
        towline: env!("CARGO_PKG_VERSION").to_owned(),
        findings,
        agents,
        frames_not_understood,
        git,
        store,
        configuration,
        processes,
    }
}
