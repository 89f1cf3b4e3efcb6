//! `towline watch`: the dashboard over the running server.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

use towline_app::{Action, Context, Error};
use towline_engine::{Clock, Home, SystemClock, operator_token, running_server};
use towline_terminal::Letters;
use towline_watch::{Dashboard, Left, Look, Place};

use crate::args::{Attach, RunFormat};
use crate::commands::attach::{self, TERMINATED};
use crate::commands::foreground::suspend;
use crate::commands::open::reachable;
use crate::find;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  towline watch              all goals
  towline watch 1a2b3c4d     one goal
  towline watch @            the newest goal of this repository")]
pub(crate) struct Watch {
    /// The goal to open first: its id, a prefix of it, or `@`
    #[arg(required_if_eq_any([("json", "true"), ("events", "true")]))]
    id: Option<String>,
    #[command(flatten)]
    format: RunFormat,
}

/// Shows the dashboard, or attaches to the goal where there can be none.
pub(crate) async fn run(context: &Context, args: Watch) -> Result<ExitCode, Error> {
    let Watch { id, format } = args;
    let problem = problem(context, &format)?;
    match (id, problem) {
        (Some(id), Some(_)) => attach::run(context, Attach { id, format }).await,
        (None, Some(problem)) => Err(problem),
        (Some(id), None) => {
            let goal = find::goal(context, &id).await?.record.goal.id;
            show(context, Some(goal.to_string())).await
        }
        (None, None) => show(context, None).await,
    }
}

/// Why there can be no dashboard.
fn problem(context: &Context, format: &RunFormat) -> Result<Option<Error>, Error> {
    let list = [("list the goals", Action::List)];
    if format.json || format.events || !io::stdin().is_terminal() || !output::is_terminal() {
        return Ok(Some(Error::usage("the dashboard needs a terminal").hint(list)));
    }
    if context.variable("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
        let error =
            Error::usage("the dashboard cannot be drawn on this terminal: TERM is not set, or `dumb`");
        return Ok(Some(error.hint(list)));
    }
    if running_server(&context.home()?).is_none() {
        return Ok(Some(Error::usage("no server is running").hint([("start one", Action::Up)])));
    }
    Ok(None)
}

async fn show(context: &Context, goal: Option<String>) -> Result<ExitCode, Error> {
    let home = context.home()?;
    let dashboard = Dashboard {
        discover: Arc::new(move || discover(&home)),
        goal,
        look: Look { paint: output::paint(context), letters: Letters::of(|name| context.variable(name)) },
        now: || SystemClock.now(),
        suspend,
        nonce: uuid::Uuid::new_v4().simple().to_string(),
    };
    let left = towline_watch::run(dashboard).await;
    match left.map_err(|error| Error::internal(format!("the terminal cannot be used: {error}")))? {
        Left::Person => Ok(ExitCode::SUCCESS),
        Left::Terminated => Ok(ExitCode::from(TERMINATED)),
    }
}

/// The server that runs now: it may be another one than a moment ago.
fn discover(home: &Home) -> Result<Place, String> {
    let server = running_server(home).ok_or("no server is running; start it with 'towline up'")?;
    let token = operator_token(home);
    let token = token.map_err(|error| format!("the token of the operator cannot be read: {error}"))?;
    Ok(Place { address: reachable(&server.address), token })
}
