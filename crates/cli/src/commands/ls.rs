//! `towline ls`: goals, the newest first.

use jiff::Timestamp;
use towline_api::GoalLine;
use towline_app::report::goal_lines;
use towline_app::{Action, Context, Error, Hint, Holds, State, way_to_resume};
use towline_core::{HoldReason, Phase};
use towline_engine::{Clock, SystemClock};
use towline_store::{Listed, Listing, list_all};
use towline_view::goal_table;
use towline_view::hints::{command_line, words};

use crate::args::Ls;
use crate::find;
use crate::output::{self, Layout};

pub(crate) async fn run(context: &Context, args: Ls) -> Result<(), Error> {
    let state = context.existing_state()?;
    let listing = listing(context, &args);
    let listed = match (&state, args.limit) {
        (None, _) => Vec::new(),
        (Some(state), Some(limit)) => state.store.list(&Listing { limit: limit.get(), ..listing }).await?,
        (Some(state), None) => list_all(state.store.as_ref(), listing).await?,
    };
    let now = SystemClock.now();
    let holds = holds(context, state.as_ref(), &listed, now).await;
    if !args.json {
        print(&args, state.as_ref(), &listed, &holds);
        return Ok(());
    }
    let lines = match &state {
        Some(state) => goal_lines(context, state, &listed).await,
        None => Vec::new(),
    };
    let with_hold =
        |(line, listed): (GoalLine, &Listed)| GoalLine { hold: holds.report(listed.id(), now), ..line };
    let lines: Vec<GoalLine> = lines.into_iter().zip(&listed).map(with_hold).collect();
    output::print_json_or_exit(Layout::Pretty, &lines);
    Ok(())
}

/// Why those of these goals wait that are queued. What cannot be read, such as a broken configuration, hides no goal.
async fn holds(context: &Context, state: Option<&State>, listed: &[Listed], now: Timestamp) -> Holds {
    let Some(state) = state else { return Holds::default() };
    let is_queued = |listed: &&Listed| matches!(listed, Listed::Goal(goal) if goal.phase == Phase::Queued);
    let mut queued = Vec::new();
    for listed in listed.iter().filter(is_queued) {
        queued.extend(state.store.load(listed.id()).await.ok());
    }
    Holds::of_records(context, state, &queued, now).await.unwrap_or_default()
}

fn listing(context: &Context, args: &Ls) -> Listing {
    let phases = Phase::names().iter().copied().filter(|name| args.phase.iter().any(|wanted| wanted == name));
    let repository = if args.all { None } else { find::repository_here(context) };
    Listing { repository, phases: phases.collect(), ..Listing::all() }
}

fn print(args: &Ls, state: Option<&State>, listed: &[Listed], holds: &Holds) {
    if !listed.is_empty() {
        let table = goal_table(listed, holds, SystemClock.now(), output::terminal_width());
        table.iter().for_each(output::print_or_exit);
        listed.iter().filter_map(|listed| next_step(state?, listed, holds)).for_each(output::print_or_exit);
    } else if !args.phase.is_empty() {
        output::eprint(format_args!("no goal is {}", args.phase.join(" or ")));
    } else if state.is_some() && !args.all {
        output::eprint(format_args!("this repository has no goals; `towline ls --all` lists all goals"));
    } else {
        output::eprint(format_args!(
            "no goals yet; start one with: towline run \"what is to be done\" --check \"a command\""
        ));
    }
}

/// What the operator may have to do about a goal.
fn next_step(state: &State, listed: &Listed, holds: &Holds) -> Option<String> {
    let id = listed.id().short();
    match listed {
        Listed::Unreadable(goal) => Some(format!("{id} cannot be read; {}", words(&Hint::mend(goal.id)))),
        Listed::Goal(goal) => {
            // What waits for something else is not left behind, and no engine of its own could start it.
            if holds.of(goal.id).is_some_and(|reason| *reason != HoldReason::NoServer) {
                return None;
            }
            let action = way_to_resume(&state.home, goal.id, &goal.phase, goal.lease.as_ref())?;
            if goal.phase == Phase::Queued && action == Action::Up {
                return Some(format!("no server is running; start {id} with: {}", command_line(&action)));
            }
            Some(format!("no engine is running {id}; resume it with: {}", command_line(&action)))
        }
    }
}
