//! The supervisors of a goal, found by their command lines: what they supervise can remove or forge their files, and cannot change those.

use std::io;
use std::time::Duration;

use tokio::task::spawn_blocking;
use towline_core::GoalId;
use towline_process::{ProcessError, ProcessId, SupervisorProgram, end_supervisor, supervisors};

use crate::engine::Shared;
use crate::removal::remove_dead_sockets;
use crate::runs::{self, Trail};

/// How long the end of one may take.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// All that run in a state directory, by their goals. Supervisors of earlier versions do not name one.
pub(crate) fn all(program: &SupervisorProgram) -> io::Result<Vec<(GoalId, ProcessId)>> {
    let found = supervisors(&program.args)?.into_iter();
    Ok(found.filter_map(|(process, rest)| Some((rest.first()?.parse().ok()?, process))).collect())
}

/// Ends everything that runs for a goal, with a supervisor or without. Until that is certain nothing may be started for the goal,
/// and nothing judged.
pub(crate) async fn end_all(shared: &Shared, trail: &Trail) -> Result<(), ProcessError> {
    end_others(shared, trail.goal(), None).await?;
    runs::sweep(trail).await
}

/// Ends the supervisors of a goal with everything below them, but for one that is `expected`. Sockets of dead ones are removed.
pub(crate) async fn end_others(
    shared: &Shared,
    goal: GoalId,
    expected: Option<ProcessId>,
) -> Result<(), ProcessError> {
    let (program, logs) = (shared.supervisor.clone(), shared.home.goal_logs(goal));
    let ended = spawn_blocking(move || {
        let found = all(&program).map_err(|source| ProcessError::CannotLook { source })?;
        let others = found.into_iter().filter(|(of, process)| *of == goal && Some(*process) != expected);
        let ended =
            others.map(|(_, process)| process).try_for_each(|process| end_supervisor(process, END_PATIENCE));
        remove_dead_sockets(&logs);
        ended
    });
    ended.await.unwrap_or_else(|panic| Err(ProcessError::CannotLook { source: io::Error::other(panic) }))
}
