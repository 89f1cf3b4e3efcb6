//! Finds the state of a run: a living supervisor, an exit record, or only leftovers.

use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use towline_core::{Goal, GoalId};
use towline_process::{
    ExitRecord, Notice, ProcessError, SupervisorHandle, SupervisorProgram, connect, end_strays,
    end_supervisor, remove_dead_socket, supervisor_process,
};

/// The variable that every process of a goal's agents carries, so that they can be found without their supervisor.
pub const GOAL_VARIABLE: &str = "TOWLINE_GOAL";
/// How long processes without a supervisor may take to end.
const SWEEP_PATIENCE: Duration = Duration::from_secs(10);

/// The goal whose processes are looked for.
#[derive(Debug, Clone)]
pub(crate) struct Trail {
    goal: GoalId,
    /// The first arguments of the supervisors of this state directory: a copy of it has the same goals.
    supervisors: Vec<String>,
    /// Before it was created, nothing ran for it: neither setup nor checks on the base.
    since: Timestamp,
}

impl Trail {
    pub(crate) fn of(goal: &Goal, supervisor: &SupervisorProgram) -> Self {
        Self { goal: goal.id, supervisors: supervisor.args.clone(), since: goal.created_at }
    }

    pub(crate) fn goal(&self) -> GoalId {
        self.goal
    }
}

/// The state of an agent's process tree.
pub(crate) enum RunState {
    Alive(Box<SupervisorHandle>),
    /// All of it has ended.
    Ended(ExitRecord),
    /// The supervisor is gone without a record, or processes may be left.
    Lost,
}

impl RunState {
    /// The state of the run in `dir`; none if nothing was started there.
    pub(crate) async fn find(dir: &Path, trail: &Trail) -> Option<Self> {
        if Self::is_left(dir) { Some(Self::reach(dir, trail).await) } else { None }
    }

    /// Whether a run was started in `dir`.
    pub(crate) fn is_left(dir: &Path) -> bool {
        dir.join("launch.json").exists()
    }

    /// Connects to the supervisor, or finds out that there is none. While one lives, the run has not ended, whatever is on disk.
    /// A tree without a supervisor is ended first: nothing else may start beside it.
    pub(crate) async fn reach(dir: &Path, trail: &Trail) -> Self {
        if let Ok(Some(supervisor)) = supervisor_process(dir) {
            if let Ok(supervisor) = connect(dir).await {
                return Self::Alive(Box::new(supervisor));
            }
            // A supervisor that cannot be reached is of no use. What it leaves is found below.
            let _ = spawn_blocking(move || end_supervisor(supervisor, SWEEP_PATIENCE)).await;
        }
        remove_dead_socket(dir);
        match (sweep(trail).await, ExitRecord::read(dir)) {
            (Ok(()), Ok(Some(record))) => Self::Ended(record),
            _ => Self::Lost,
        }
    }

    /// Ends the run in `dir` and waits until it is gone. Leftovers are found before the next start for the goal.
    pub(crate) async fn end(dir: &Path, trail: &Trail) {
        let Some(Self::Alive(mut supervisor)) = Self::find(dir, trail).await else { return };
        if !matches!(timeout(SWEEP_PATIENCE, kill(&mut supervisor)).await, Ok(Ok(()))) {
            let _ = supervisor.end().await;
            let _ = sweep(trail).await;
        }
    }
}

/// Has a supervisor end its run, and waits until nothing of it is left.
pub(crate) async fn kill(supervisor: &mut SupervisorHandle) -> Result<(), ProcessError> {
    supervisor.kill().await?;
    while let Notice::Grown { .. } = supervisor.next().await? {}
    Ok(())
}

/// Ends processes of agents and checks that have no living supervisor. Until that is certain, nothing may be started or
/// checked for the goal.
pub(crate) async fn sweep(trail: &Trail) -> Result<(), ProcessError> {
    let since = u64::try_from(trail.since.as_millisecond()).unwrap_or(0);
    let (goal, supervisors) = (trail.goal.to_string(), trail.supervisors.clone());
    let swept =
        spawn_blocking(move || end_strays((GOAL_VARIABLE, &goal), &supervisors, since, SWEEP_PATIENCE));
    swept.await.unwrap_or_else(|panic| Err(ProcessError::CannotLook { source: io::Error::other(panic) }))
}
