//! `towline doctor`: whether Towline can work here, each problem with its fix.
//!
//! One module per section; each gives its facts, for programs, and its rows, for people. Nothing here creates, changes
//! or asks anything over the network, and whatever is wrong with one section does not hide the others.

mod configuration;
mod git;
mod processes;
mod report;
mod store;
mod text;

use std::process::ExitCode;

use crate::args::Doctor;
use crate::context::Context;
use crate::failure::Failure;
use crate::inspect::{agents, frames, rows};
use crate::output::{self, Layout};
use crate::view::Paint;
use report::Report;

/// Looks at everything and tells what it saw.
pub(crate) async fn run(context: &Context, args: Doctor) -> Result<ExitCode, Failure> {
    let (configuration, inspection) = configuration::look(context);
    let (store, records) = store::look(context).await;
    let report = Report::new(
        agents::look(context, &inspection, frames::count(&records).await),
        git::look(context),
        store,
        configuration,
        processes::look(),
    );
    if args.json {
        output::tell_json(Layout::Pretty, &report);
    } else {
        text::lines(Paint::for_stdout(context), &report).iter().for_each(output::tell);
    }
    Ok(if report.is_fine() { ExitCode::SUCCESS } else { ExitCode::from(rows::NEEDS_A_PERSON) })
}
