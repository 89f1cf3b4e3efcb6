//! `towline ls`: goals, the newest first.

use std::process::ExitCode;

use towline_core::{MicroUsd, Spent};
use towline_engine::is_driven;
use towline_store::{GoalSummary, Listed, Listing, list_all};

use crate::args::Ls;
use crate::context::{Context, State};
use crate::failure::Failure;
use crate::find::how_to_mend;
use crate::output::{self, Layout};
use crate::report::{GoalLine, UNREADABLE};

/// Instead of a value that there is not.
const NOTHING: &str = "–";

/// Lists goals.
pub(crate) async fn run(context: &Context, args: Ls) -> Result<ExitCode, Failure> {
    let Some(state) = context.existing_state()? else {
        print(&args, None, &[]);
        return Ok(ExitCode::SUCCESS);
    };
    let listed = match args.limit {
        Some(limit) => state.store.list(&Listing::first(limit.get())).await?,
        None => list_all(state.store.as_ref(), Listing::all()).await?,
    };
    print(&args, Some(&state), &listed);
    Ok(ExitCode::SUCCESS)
}

fn print(args: &Ls, state: Option<&State>, listed: &[Listed]) {
    if args.json {
        output::tell_json(Layout::Pretty, &listed.iter().map(GoalLine::of).collect::<Vec<_>>());
    } else if listed.is_empty() {
        output::say(format_args!(
            "no goals yet; begin with: towline run \"what is to be done\" --check \"a command\""
        ));
    } else {
        table(listed).iter().for_each(output::tell);
        listed.iter().filter_map(|listed| next_step(state?, listed)).for_each(output::tell);
    }
}

/// What the operator may have to do about a goal.
fn next_step(state: &State, listed: &Listed) -> Option<String> {
    let id = listed.id().short();
    match listed {
        Listed::Unreadable(goal) => Some(format!("{id} cannot be read; {}", how_to_mend(goal.id))),
        Listed::Goal(goal) => {
            let is_left = !goal.phase.is_settled() && !is_driven(&state.home, goal.lease.as_ref());
            is_left.then(|| format!("nobody drives {id}; go on: towline run --goal {id}"))
        }
    }
}

fn table(listed: &[Listed]) -> Vec<String> {
    let mut rows = vec![["ID", "PHASE", "AGENT", "ATTEMPTS", "COST", "TITLE"].map(str::to_owned).to_vec()];
    rows.extend(listed.iter().map(|listed| match listed {
        Listed::Goal(goal) => cells(goal),
        Listed::Unreadable(goal) => {
            let [nothing, attempts, cost] = [NOTHING; 3].map(str::to_owned);
            vec![goal.id.short(), UNREADABLE.to_owned(), nothing, attempts, cost, output::brief(&goal.why)]
        }
    }));
    output::table(&rows, &["ATTEMPTS", "AGENT"])
}

fn cells(goal: &GoalSummary) -> Vec<String> {
    vec![
        goal.id.short(),
        match &goal.merged {
            Some(_) => format!("{}, merged", goal.phase.name()),
            None => goal.phase.name().to_owned(),
        },
        goal.agent.as_ref().map(ToString::to_string).unwrap_or_default(),
        goal.attempts.to_string(),
        match goal.usage.spent() {
            Spent { amount: MicroUsd(0), .. } => NOTHING.to_owned(),
            spent => spent.to_string(),
        },
        output::brief(&goal.title),
    ]
}
