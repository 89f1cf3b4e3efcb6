//! `towline demo`: a failing sample project is fixed by the scripted agent, with nothing but this program and git.

use std::process::ExitCode;

use towline_app::{Context, Error, accept, widening_file};
use towline_builtin::demo;
use towline_core::Phase;
use towline_engine::{Clock, SystemClock};
use towline_workspace::Repository;
use uuid::Uuid;

use crate::args::{Run, RunFormat};
use crate::commands::run::start;
use crate::{find, output};

/// Makes the sample project below the state directory and runs a goal on it like on any other.
pub(crate) async fn run(context: &Context, format: RunFormat) -> Result<ExitCode, Error> {
    let home = context.home()?;
    let folder = home.samples().join(&Uuid::now_v7().simple().to_string()[24..]);
    let project = demo::make(&folder, &context.program).map_err(|error| {
        Error::internal(format!("cannot make the sample project in {}: {error}", folder.display()))
    })?;
    if let Err(error) = Repository::init(&project, "a greeter that does not do what it promises") {
        // Without git there is no demo, and nothing is to be left of it.
        let _ = home.remove(&folder);
        return Err(error.into());
    }
    let quiet = format.json || format.events;
    if !quiet {
        let made = format!("A sample project with failing tests was made in {}", project.display());
        output::fitted(&made).iter().for_each(output::print);
        output::print("");
    }
    let context = Context { directory: project.clone(), ..context.clone() };
    // Its file is Towline's own, written a moment ago.
    if let Some(file) = widening_file(&context, &project)? {
        accept(&context, &file, SystemClock.now())?;
    }
    let run = Run { prompt: vec![demo::PROMPT.to_owned()], red_first: true, format, ..Run::default() };
    let (record, code) = start(&context, &run).await?;
    if !quiet && record.state.phase == Phase::Done {
        proof(&context, &record);
    }
    Ok(code)
}

/// Whether a person can call this program by its name.
fn is_on_path(context: &Context) -> bool {
    find::program("towline", &context.directory, context.variable("PATH")).is_some()
}

/// What was proven, and how anyone can see it for themselves.
fn proof(context: &Context, record: &towline_store::GoalRecord) {
    let paint = output::paint(context);
    let Some(candidate) = &record.state.candidate else { return };
    output::print(format_args!("\n{}", paint.bold("The proof")));
    let proven = format!(
        "  Towline ran `{}` itself on a clean checkout of {}: red after attempt 1, green after attempt 2.",
        demo::CHECK,
        candidate.short()
    );
    output::fitted(&proven).iter().for_each(output::print);
    output::print(format_args!("  See it yourself:"));
    output::print(format_args!("    cd {}", context.directory.display()));
    let program = if is_on_path(context) { "towline".into() } else { context.program.display().to_string() };
    output::print(format_args!("    {program} merge {}", record.goal.id.short()));
    output::print(format_args!("    {}", demo::CHECK));
    output::print(format_args!("  Show it to others, signed:"));
    output::print(format_args!("    {program} proof {}", record.goal.id.short()));
    output::print(format_args!("  Remove the goal and the sample project:"));
    output::print(format_args!("    {program} rm {}", record.goal.id.short()));
    if !is_on_path(context) {
        output::print(format_args!("\n{}", paint.bold("Next, where you have built this")));
        output::print("  cargo install --path crates/cli      # puts `towline` on your PATH");
    }
    output::print(format_args!("\n{}", paint.bold("Next, in a project of yours")));
    output::print("  towline agents                       # which agents you have");
    output::print("  towline init                         # writes a towline.toml that fits it");
    output::print("  towline run \"fix the failing test\"");
}
