//! `towline down`: stops the running server, from another terminal.

use std::time::Duration;

use towline_app::{Context, Error, Stopped, stop_server};
use towline_core::{GoalId, show_duration};

use crate::output;

/// Stops the server and waits until it is gone.
pub(crate) async fn run(context: &Context) -> Result<(), Error> {
    let asked_about = |working: &[GoalId], wait| {
        if !working.is_empty() {
            output::eprint(format_args!("{}", waiting(working, wait)));
        }
    };
    let Stopped { left } = stop_server(context, asked_about).await?;
    output::print_or_exit(match left {
        0 => "the server is stopped".to_owned(),
        1 => "the server is stopped; 1 goal still runs, and the next `towline up` continues it".to_owned(),
        left => {
            format!("the server is stopped; {left} goals still run, and the next `towline up` continues them")
        }
    });
    Ok(())
}

/// What the server waits for, and for how long at most.
fn waiting(working: &[GoalId], wait: Duration) -> String {
    let goals = ids(working);
    match wait {
        // It does not wait, or is of an earlier version.
        Duration::ZERO => format!("stopping; these goals still run: {goals}"),
        wait => format!(
            "waiting up to {} for the turns of: {goals} (`towline down` again does not wait)",
            show_duration(wait)
        ),
    }
}

/// Goals as a list of short ids.
pub(super) fn ids(goals: &[GoalId]) -> String {
    goals.iter().map(|goal| goal.short()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_a_server_gives_to_turns_is_printed_with_them() {
        let goal = GoalId::from_uuid(uuid::Uuid::from_u128(7));
        let waits = waiting(&[goal, goal], Duration::from_secs(90));
        assert_eq!(
            waits,
            "waiting up to 1m 30s for the turns of: 00000007, 00000007 (`towline down` again does not wait)"
        );
        assert_eq!(waiting(&[goal], Duration::ZERO), "stopping; these goals still run: 00000007");
    }
}
