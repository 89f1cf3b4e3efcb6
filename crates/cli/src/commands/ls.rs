//! `towline ls`: goals, the newest first.

use std::process::ExitCode;

use towline_core::MicroUsd;
use towline_engine::is_driven;
use towline_store::GoalRecord;

use crate::args::Ls;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{self, Layout};
use crate::report::{GoalLine, agent_of};

/// Lists goals.
pub(crate) async fn run(context: &Context, args: Ls) -> Result<ExitCode, Failure> {
    let state = context.existing_state()?;
    let records = match &state {
        Some(state) => state.store.list().await?,
        None => Vec::new(),
    };
    let left = |record: &&GoalRecord| {
        let home = state.as_ref().map(|state| &state.home);
        !record.state.phase.is_settled() && home.is_some_and(|home| !is_driven(home, record))
    };
    if args.json {
        output::tell_json(Layout::Pretty, &records.iter().map(GoalLine::of).collect::<Vec<_>>());
    } else if records.is_empty() {
        output::say(format_args!(
            "no goals yet; begin with: towline run \"what is to be done\" --check \"a command\""
        ));
    } else {
        table(&records).iter().for_each(output::tell);
        for record in records.iter().filter(left) {
            let id = record.goal.id.short();
            output::tell(format_args!("nobody drives {id}; go on: towline run --goal {id}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(records: &[GoalRecord]) -> Vec<String> {
    let mut rows = vec![["ID", "PHASE", "AGENT", "ATTEMPTS", "COST", "TITLE"].map(str::to_owned).to_vec()];
    rows.extend(records.iter().map(|record| {
        let state = &record.state;
        vec![
            record.goal.id.short(),
            match &state.merged {
                Some(_) => format!("{}, merged", state.phase.name()),
                None => state.phase.name().to_owned(),
            },
            agent_of(record).unwrap_or_default(),
            state.attempts.len().to_string(),
            match state.usage().cost {
                MicroUsd(0) => "–".to_owned(),
                cost => cost.to_string(),
            },
            output::brief(&record.goal.title),
        ]
    }));
    output::table(&rows, &["ATTEMPTS", "AGENT"])
}
