//! The `towline` program.

mod args;
mod commands;
mod context;
mod draft;
mod engine_log;
mod failure;
mod hints;
mod inspect;
mod notices;
mod output;
mod prompt;
mod upgrade;
mod view;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use towline_app::find;
use towline_engine::SUPERVISOR;

use crate::args::{Args, Command};
use crate::failure::Failure;
use crate::output::Layout;

fn main() -> ExitCode {
    // The supervisor of an attempt is this same program. It must stay small, so it goes by the arguments and the
    // runtime.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == SUPERVISOR) {
        // The arguments before the directory identify the supervisor for others.
        return match words.last() {
            Some(directory) => towline_process::supervisor::main(Path::new(&directory)),
            None => ExitCode::from(2),
        };
    }
    towline_workspace::find_git();
    // Before anything is printed.
    context::know_own_secrets();
    std::panic::set_hook(Box::new(output::report_panic));
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return refuse(&args::with_suggestions(error)),
    };
    match run(args) {
        Ok(code) => code,
        Err(failure) => {
            report(&failure);
            failure.exit_code()
        }
    }
}

/// Prints what is wrong with the arguments, or the help or version that was asked for.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    let words = error.render().to_string();
    let words = words.trim_end();
    output::eprint(format_args!("{words}"));
    if wants_json() {
        let message = words.strip_prefix("error: ").unwrap_or(words);
        output::print_json(Layout::Line, &Failure::usage(message).report());
    }
    ExitCode::from(2)
}

/// Prints why the program ends: to a person on standard error, and to a program on standard output.
fn report(failure: &Failure) {
    output::eprint(format_args!("{failure}"));
    if wants_json() {
        output::print_json(Layout::Line, &failure.report());
    }
}

/// Whether the output is for programs. Arguments that are wrong cannot be asked.
fn wants_json() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json" || word == "--events")
}

fn run(args: Args) -> Result<ExitCode, Failure> {
    if !args.command.is_agents() {
        // The environment holds the user's secrets, and agents run as the same user. Where the system cannot keep them out, an
        // agent can find them in the user's shell as well.
        let _ = towline_process::refuse_inspection();
    }
    // Every write reports an error by itself; where the signal cannot be caught, the system ends the program with a message.
    let _ = towline_process::survive_file_size_limit();
    if !args.command.is_agents() {
        towline_process::prepare_limits()
            .map_err(|limit| Failure::internal(limit.to_string()).hint(limit.fix()))?;
    }
    // The built-in agent has a runtime of its own.
    if let Command::Acp(acp) = args.command {
        return commands::acp::run(&context::of_this_process()?, acp);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal(format!("cannot start the runtime: {error}")))?;
    let context = context::of_this_process()?;
    if args.command.changes_goals() {
        towline_app::require_operator(&context)?;
    }
    if let Some(file) = args.log.or_else(|| context.variable("TOWLINE_LOG").map(Into::into)) {
        engine_log::write_to(&context.directory.join(file))?;
    }
    runtime.block_on(async {
        match args.command {
            Command::Run(run) => commands::run::run(&context, run).await,
            Command::Demo(demo) => commands::demo::run(&context, demo).await,
            Command::Init(init) => commands::init::run(&context, &init),
            Command::Show(show) => commands::show::run(&context, show).await,
            Command::Ls(ls) => commands::ls::run(&context, ls).await,
            Command::Doctor(doctor) => commands::doctor::run(&context, doctor).await,
            Command::Agents(agents) => commands::agents::run(&context, agents).await,
            Command::Attach(attach) => commands::attach::run(&context, attach).await,
            Command::Logs(logs) => commands::logs::run(&context, logs).await,
            Command::Replay(replay) => commands::replay::run(&context, replay).await,
            Command::Diff(diff) => commands::diff::run(&context, diff).await,
            Command::Questions(questions) => commands::questions::run(&context, questions).await,
            Command::Answer(answer) => commands::answer::run(&context, answer).await,
            Command::Tell(tell) => commands::tell::run(&context, tell).await,
            Command::Enter(enter) => commands::enter::run(&context, enter).await,
            Command::Compact(compact) => commands::compact::run(&context, compact).await,
            Command::Cancel(cancel) => commands::halt::cancel(&context, cancel).await,
            Command::Pause(pause) => commands::halt::pause(&context, pause).await,
            Command::Resume(resume) => commands::resume::run(&context, resume).await,
            Command::Retry(retry) => commands::retry::run(&context, retry).await,
            Command::Restore(restore) => commands::restore::run(&context, restore).await,
            Command::Push(push) => commands::push::run(&context, push).await,
            Command::Merge(merge) => commands::merge::run(&context, merge).await,
            Command::Verify(verify) => commands::verify::run(&context, verify).await,
            Command::Rm(rm) => commands::rm::run(&context, rm).await,
            Command::Gc(gc) => commands::gc::run(&context, gc).await,
            Command::Completions(completions) => Ok(commands::completions::run(&completions)),
            Command::Complete(complete) => commands::completions::complete(&context, complete).await,
            Command::Man(man) => commands::man::run(&man),
            Command::Mcp => commands::mcp::run(&context).await,
            Command::Script(script) => commands::script::run(script),
            Command::Acp(acp) => commands::acp::run(&context, acp),
        }
    })
}
