//! `towline retry`: opens an ended goal again and continues it.

use std::process::ExitCode;

use towline_app::pass_on;
use towline_core::{BudgetChange, Check, Event, NextSession, Phase};
use towline_engine::GoalCommand;

use crate::args::RunFormat;
use crate::commands::foreground::{Beginning, Foreground};
use crate::context::Context;
use crate::draft::{agents_of, commands_as_checks};
use crate::failure::Failure;
use crate::find::{self, Found};
use crate::output;

/// Open an ended goal again and continue it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline retry 1a2b3c4d
  towline retry 1a2b3c4d --budget usd=+5
  towline retry 1a2b3c4d --fresh           in a new session, if the old one is stuck or refused")]
pub(crate) struct Retry {
    /// The goal's id, a prefix of it, or `@`
    id: String,
    /// A limit to raise (`usd=+5`) or to set (`attempts=20`)
    #[arg(long, value_name = "AXIS=+V")]
    budget: Vec<BudgetChange>,
    /// Start a new session with the full prompt instead of resuming the last one
    #[arg(long)]
    fresh: bool,
    /// The model to use from now on; another model starts a new session
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// A command that replaces the goal's checks; may be given several times
    ///
    /// The present work is checked first; an agent starts only if that fails.
    #[arg(long, value_name = "CMD")]
    check: Vec<String>,
    #[command(flatten)]
    format: RunFormat,
}

/// Opens the goal again and drives it in the foreground.
pub(crate) async fn run(context: &Context, args: Retry) -> Result<ExitCode, Failure> {
    let found = find::goal(context, &args.id).await?;
    let session = if args.fresh { NextSession::Fresh } else { NextSession::Resumed };
    let command = GoalCommand::Retry { budget: args.budget, session, model: args.model };
    resume_goal(context, found, command, commands_as_checks(&args.check)?, args.format).await
}

/// Has the command come true and drives the goal in the foreground. A goal that only waits in another process continues there.
pub(crate) async fn resume_goal(
    context: &Context,
    found: Found,
    command: GoalCommand,
    checks: Vec<Check>,
    format: RunFormat,
) -> Result<ExitCode, Failure> {
    let waits = matches!(found.record.state.phase, Phase::Sleeping { .. } | Phase::Limited { .. });
    if waits && checks.is_empty() && pass_on(&found, command.clone()).await? {
        let id = found.record.goal.id.short();
        output::print_or_exit(format_args!("goal {id} stops waiting; follow it with: towline logs -f {id}"));
        return Ok(ExitCode::SUCCESS);
    }
    let agents = agents_of(context, &found.record.goal)?;
    let foreground = Foreground { context, state: found.state, agents, format };
    let requests = replaced(checks).into_iter().chain([command.into()]).collect();
    let (_, code) =
        foreground.drive(Beginning::Existing { record: Box::new(found.record), requests }).await?;
    Ok(code)
}

/// The command for other checks, where there are any.
pub(crate) fn replaced(checks: Vec<Check>) -> Option<Event> {
    (!checks.is_empty()).then_some(Event::ChecksReplaced { checks })
}
