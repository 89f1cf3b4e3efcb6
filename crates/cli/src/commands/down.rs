//! `towline down`: stops the running server, from another terminal.

use towline_app::{Context, Error, Stopped, stop_server};
use towline_core::GoalId;

use crate::output;

/// Stops the server and waits until it is gone.
pub(crate) async fn run(context: &Context) -> Result<(), Error> {
    let Stopped { left } = stop_server(context, |working| {
        if !working.is_empty() {
            output::eprint(format_args!("waiting for the turns of: {}", ids(working)));
        }
    })
    .await?;
    output::print_or_exit(match left {
        0 => "the server is stopped".to_owned(),
        1 => "the server is stopped; 1 goal still runs, and the next `towline up` continues it".to_owned(),
        left => {
            format!("the server is stopped; {left} goals still run, and the next `towline up` continues them")
        }
    });
    Ok(())
}

/// Goals as a list of short ids.
pub(super) fn ids(goals: &[GoalId]) -> String {
    goals.iter().map(|goal| goal.short()).collect::<Vec<_>>().join(", ")
}
