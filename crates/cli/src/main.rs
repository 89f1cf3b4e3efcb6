//! The `towline` program.

mod args;
mod commands;
mod context;
mod engine_log;
mod failure;
mod inspect;
mod live;
mod notices;
mod output;
mod prompt;
mod suggestions;
mod upgrade;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use towline_app::{Context, Error, find};
use towline_engine::SUPERVISOR;

use crate::args::{Args, Command};
use crate::failure::{error_report, error_text};
use crate::output::Layout;

/// How long threads that still work may take when the command has ended.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    // The supervisor of an attempt is this same program. It must stay small, so it goes by the arguments and the
    // runtime.
    let mut words = std::env::args_os().skip(1);
    let first = words.next();
    if first.as_ref().is_some_and(|word| word == towline_sandbox::SUBCOMMAND) {
        let error = towline_sandbox::enter(words);
        output::eprint(format_args!("towline: cannot start the program in its sandbox: {error}"));
        return ExitCode::from(126);
    }
    if first.is_some_and(|word| word == SUPERVISOR) {
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
        Err(error) => return refuse(&suggestions::with_suggestions(error)),
    };
    match run(args) {
        Ok(code) => output::exit_code(code),
        Err(error) => {
            report(&error);
            ExitCode::from(error.kind().exit_code())
        }
    }
}

/// Prints what is wrong with the arguments, or the help or version that was asked for.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        if output::is_terminal() {
            error.exit();
        }
        output::print_bytes_or_exit(error.render().to_string().as_bytes());
        return ExitCode::SUCCESS;
    }
    let words = error.render().to_string();
    let words = words.trim_end();
    output::eprint(format_args!("{words}"));
    if wants_json() {
        let message = words.strip_prefix("error: ").unwrap_or(words);
        output::print_json(Layout::Line, &error_report(&Error::usage(message)));
    }
    ExitCode::from(2)
}

/// Prints why the program ends: to a person on standard error, and to a program on standard output.
fn report(error: &Error) {
    output::eprint(format_args!("{}", error_text(error)));
    if wants_json() {
        output::print_json(Layout::Line, &error_report(error));
    }
}

/// Whether the output is for programs. Arguments that are wrong cannot be asked.
fn wants_json() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json" || word == "--events")
}

/// Sets up this process for a command.
fn prepare_process(command: &Command) -> Result<(), Error> {
    if !command.is_agents() {
        // The environment holds the user's secrets, and agents run as the same user. Where the system cannot keep them out, an
        // agent can find them in the user's shell as well.
        let _ = towline_process::refuse_inspection();
    }
    // Every write reports an error by itself; where the signal cannot be caught, the system ends the program with a message.
    let _ = towline_process::survive_file_size_limit();
    if !command.is_agents() {
        towline_process::prepare_limits()
            .map_err(|limit| Error::internal(limit.to_string()).hint(limit.fix()))?;
    }
    Ok(())
}

fn run(args: Args) -> Result<ExitCode, Error> {
    prepare_process(&args.command)?;
    // The built-in agent has a runtime of its own.
    if let Command::Acp(acp) = args.command {
        commands::acp::run(&context::of_this_process()?, acp)?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Error::internal(format!("cannot start the runtime: {error}")))?;
    let context = context::of_this_process()?;
    if args.command.changes_goals() {
        towline_app::require_operator(&context)?;
    }
    if let Some(file) = args.log.or_else(|| context.variable("TOWLINE_LOG").map(Into::into)) {
        engine_log::write_to(&context.directory.join(file))?;
    }
    let ended = runtime.block_on(carry_out(&context, args.command));
    // A thread that waits for a directory which does not answer would be waited for as well.
    runtime.shutdown_timeout(SHUTDOWN_PATIENCE);
    ended
}

async fn carry_out(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Run(run) => return commands::run::run(context, run).await,
        Command::Demo(demo) => return commands::demo::run(context, demo).await,
        Command::Doctor(doctor) => return commands::doctor::run(context, doctor).await,
        Command::Agents(agents) => return commands::agents::run(context, agents).await,
        Command::Watch(watch) => return commands::watch::run(context, watch).await,
        Command::Attach(attach) => return commands::attach::run(context, attach).await,
        Command::Logs(logs) => return commands::logs::run(context, logs).await,
        Command::Replay(replay) => return commands::replay::run(context, replay).await,
        Command::Resume(resume) => return commands::retry::resume(context, resume).await,
        Command::Retry(retry) => return commands::retry::run(context, retry).await,
        Command::Merge(merge) => return commands::merge::run(context, merge).await,
        Command::Verify(verify) => return commands::verify::run(context, verify).await,
        Command::Rm(rm) => return commands::rm::run(context, rm).await,
        Command::Script(script) => return commands::script::run(context, script),
        Command::Init(init) => commands::init::run(context, &init)?,
        Command::Trust(trust) => commands::trust::run(context, &trust).await?,
        Command::Show(show) => commands::show::run(context, show).await?,
        Command::Add(add) => commands::add::run(context, &add).await?,
        Command::Queue(queue) => commands::queue::run(context, queue).await?,
        Command::Accounts(accounts) => commands::accounts::run(context, accounts).await?,
        Command::Cost(cost) => commands::cost::run(context, &cost).await?,
        Command::Ls(ls) => commands::ls::run(context, ls).await?,
        Command::Diff(diff) => commands::diff::run(context, diff).await?,
        Command::Questions(questions) => commands::questions::run(context, questions).await?,
        Command::Answer(answer) => commands::steer::answer(context, answer).await?,
        Command::Tell(tell) => commands::steer::tell(context, tell).await?,
        Command::Compact(compact) => commands::steer::compact(context, compact).await?,
        Command::Cancel(cancel) => commands::steer::cancel(context, cancel).await?,
        Command::Pause(pause) => commands::steer::pause(context, pause).await?,
        Command::Enter(enter) => commands::enter::run(context, enter).await?,
        Command::Restore(restore) => commands::restore::run(context, restore).await?,
        Command::Push(push) => commands::push::run(context, push).await?,
        Command::Proof(proof) => commands::proof::run(context, proof).await?,
        Command::Keys(keys) => commands::keys::run(context, &keys)?,
        Command::Gc(gc) => commands::gc::run(context, gc).await?,
        Command::Up(up) => commands::up::run(context, up).await?,
        Command::Down => commands::down::run(context).await?,
        Command::Open(open) => commands::open::run(context, &open)?,
        Command::Service(service) => commands::service::run(context, &service)?,
        Command::Completions(completions) => commands::completions::run(&completions),
        Command::Complete(complete) => commands::completions::complete(context, complete).await?,
        Command::Man(man) => commands::man::run(&man)?,
        Command::Mcp => commands::mcp::run(context).await?,
        Command::Acp(acp) => commands::acp::run(context, acp)?,
    }
    Ok(ExitCode::SUCCESS)
}
