//! `towline ls`: goals, the newest first.

use std::path::Path;

use jiff::Timestamp;
use towline_api::GoalLine;
use towline_app::report::{UNREADABLE, goal_line};
use towline_app::{Context, Error, State, way_to_continue};
use towline_core::{MicroUsd, Phase, Spent};
use towline_engine::{Clock, SystemClock, is_driven};
use towline_store::{GoalSummary, Listed, Listing, list_all};

use crate::args::Ls;
use crate::find;
use crate::hints::{command_line, how_to_mend};
use crate::output::{self, Layout};
use crate::view::{age, clock_time, cut};

/// Instead of a value that there is not.
const NOTHING: &str = "–";

/// How many columns the phase and its reason may take, and which part of a narrow terminal.
const PHASE: usize = 40;
const PART: usize = 2;

pub(crate) async fn run(context: &Context, args: Ls) -> Result<(), Error> {
    let Some(state) = context.existing_state()? else {
        print(&args, None, &[]);
        return Ok(());
    };
    let listing = listing(context, &args);
    let listed = match args.limit {
        Some(limit) => state.store.list(&Listing { limit: limit.get(), ..listing }).await?,
        None => list_all(state.store.as_ref(), listing).await?,
    };
    if args.json {
        let mut lines = Vec::new();
        for listed in &listed {
            lines.push(goal_line(listed, prompt(context, &state, listed).await));
        }
        output::print_json_or_exit(Layout::Pretty, &lines);
    } else {
        print(&args, Some(&state), &listed);
    }
    Ok(())
}

fn listing(context: &Context, args: &Ls) -> Listing {
    let phases = Phase::names().iter().copied().filter(|name| args.phase.iter().any(|wanted| wanted == name));
    let repository = if args.all { None } else { find::repository_here(context) };
    Listing { repository, phases: phases.collect(), ..Listing::all() }
}

async fn prompt(context: &Context, state: &State, listed: &Listed) -> Option<String> {
    let record = state.store.load(listed.id()).await.ok()?;
    find::know_secrets_of(context, &state.home, &record);
    Some(record.goal.prompt)
}

fn print(args: &Ls, state: Option<&State>, listed: &[Listed]) {
    if args.json {
        output::print_json_or_exit(Layout::Pretty, &Vec::<GoalLine>::new());
    } else if !listed.is_empty() {
        table(listed, SystemClock.now()).iter().for_each(output::print_or_exit);
        listed.iter().filter_map(|listed| next_step(state?, listed)).for_each(output::print_or_exit);
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
fn next_step(state: &State, listed: &Listed) -> Option<String> {
    let id = listed.id().short();
    match listed {
        Listed::Unreadable(goal) => Some(format!("{id} cannot be read; {}", how_to_mend(goal.id))),
        Listed::Goal(goal) => {
            let is_left = !goal.phase.is_settled() && !is_driven(&state.home, goal.lease.as_ref());
            is_left.then(|| {
                let command = command_line(&way_to_continue(goal.id, &goal.phase));
                format!("no engine is running {id}; resume it with: {command}")
            })
        }
    }
}

fn table(listed: &[Listed], now: Timestamp) -> Vec<String> {
    let heads = ["ID", "AGE", "PROJECT", "PHASE", "AGENT", "ATTEMPTS", "COST", "TITLE"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let room = output::terminal_width().map_or(PHASE, |width| PHASE.min(width / PART));
    rows.extend(listed.iter().map(|listed| match listed {
        Listed::Goal(goal) => cells(goal, now, room),
        Listed::Unreadable(goal) => {
            let [project, agent, attempts, cost] = [NOTHING; 4].map(str::to_owned);
            let (age, why) = (age(goal.created_at, now), output::brief(&goal.why));
            vec![goal.id.short(), age, project, UNREADABLE.to_owned(), agent, attempts, cost, why]
        }
    }));
    output::table(&rows, &["ATTEMPTS", "AGENT", "PROJECT", "COST", "AGE"])
}

fn cells(goal: &GoalSummary, now: Timestamp, room: usize) -> Vec<String> {
    let project = Path::new(&goal.repository).file_name().unwrap_or_default();
    vec![
        goal.id.short(),
        age(goal.created_at, now),
        output::brief(&project.to_string_lossy()),
        phase(goal, now, room),
        goal.agent.as_ref().map(ToString::to_string).unwrap_or_default(),
        goal.attempts.to_string(),
        match goal.usage.spent() {
            _ if !goal.usage.knows_cost() => "unknown".to_owned(),
            Spent { amount: MicroUsd(0), .. } => NOTHING.to_owned(),
            spent => spent.to_string(),
        },
        output::brief(&goal.title),
    ]
}

/// The phase with its reason, as far as there is room.
fn phase(goal: &GoalSummary, now: Timestamp, room: usize) -> String {
    let name = goal.phase.name();
    let text = match (&goal.phase, &goal.merged) {
        (_, Some(_)) => format!("{name}, merged"),
        (Phase::Blocked { .. }, None) => format!("{name}: needs an answer"),
        (Phase::Limited { until, .. } | Phase::Sleeping { until, .. }, None) => {
            format!("{name} until {}", clock_time(*until, now))
        }
        (phase, None) => {
            let why = phase.why(|_| goal.spent.clone());
            format!("{name}{}", why.lines().next().map(output::brief).unwrap_or_default())
        }
    };
    cut(&text, room)
}

#[cfg(test)]
mod tests {
    use towline_core::{Axis, FailureReason, PauseReason};

    use super::*;
    use crate::view::samples::{at, record};

    const fn failed(axis: Axis) -> Phase {
        Phase::Failed { reason: FailureReason::Budget { axis } }
    }

    #[test]
    fn a_waiting_goal_has_its_time_and_another_one_its_reason() {
        let until = at(3_600);
        for (phase, wanted) in [
            (Phase::Limited { until, guessed: true }, "limited until 09:00:00"),
            (Phase::Sleeping { until, reason: "CI".into() }, "sleeping until 09:00:00"),
            (Phase::Done, "done"),
            (Phase::Paused { reason: PauseReason::Operator }, "paused by you"),
            (Phase::Paused { reason: PauseReason::Shutdown }, "paused by a shutdown signal"),
            (failed(Axis::Usd), "failed: budget of $0.05 spent ($0.06)"),
        ] {
            let spent = Some("budget of $0.05 spent ($0.06)".to_owned());
            let goal = GoalSummary { phase, spent, ..GoalSummary::of(&record()) };
            assert_eq!(super::phase(&goal, at(0), PHASE), wanted);
        }
        // One that an earlier version recorded.
        let goal = GoalSummary { phase: failed(Axis::Usd), spent: None, ..GoalSummary::of(&record()) };
        assert_eq!(super::phase(&goal, at(0), PHASE), "failed: budget: usd");
        assert_eq!(super::phase(&goal, at(0), 10), "failed: b…");
    }
}
