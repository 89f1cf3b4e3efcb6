//! `towline retry` and `resume`: continue a goal that has ended, or is paused.

use std::process::ExitCode;

use towline_app::{Context, Error, Resumption, find, must_not_wait};
use towline_core::{BudgetChange, NextSession};
use towline_engine::GoalCommand;

use crate::args::{Resume, RunFormat};
use crate::commands::attach::{From, attach};
use crate::commands::foreground::{Beginning, Foreground};
use crate::{notices, output};

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
pub(crate) async fn run(context: &Context, args: Retry) -> Result<ExitCode, Error> {
    let session = if args.fresh { NextSession::Fresh } else { NextSession::Resumed };
    let command = GoalCommand::Retry { budget: args.budget, session, model: args.model };
    resume_goal(context, &args.id, Some(command), &args.check, args.format).await
}

/// Resumes a paused goal and drives it in the foreground.
pub(crate) async fn resume(context: &Context, args: Resume) -> Result<ExitCode, Error> {
    let id = match args.id {
        Some(id) => id,
        None => find::only_paused(context).await?.to_string(),
    };
    resume_goal(context, &id, Some(GoalCommand::Resume), &[], args.format).await
}

/// Continues a goal and shows it, wherever it runs.
pub(crate) async fn resume_goal(
    context: &Context,
    id: &str,
    command: Option<GoalCommand>,
    checks: &[String],
    format: RunFormat,
) -> Result<ExitCode, Error> {
    match towline_app::resume(context, id, command, checks).await? {
        Resumption::PassedOn(goal) => {
            let id = goal.short();
            output::print_or_exit(format_args!(
                "goal {id} stops waiting; follow it with: towline logs -f {id}"
            ));
            Ok(ExitCode::SUCCESS)
        }
        Resumption::Elsewhere(found) => attach(context, *found, format, From::Now).await,
        Resumption::Here { found, agents, requests } => {
            if found.record.state.preparations == 0 {
                must_not_wait(&found.record.goal)?;
            }
            notices::print(&agents.notices);
            let foreground = Foreground { context, state: found.state, agents: agents.agents, format };
            Ok(foreground.drive(Beginning::Existing { record: Box::new(found.record), requests }).await?.1)
        }
    }
}
