//! Finding what there is of an agent's process: its living supervisor, its exit record, or nothing but what it left.

use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use towline_core::{GoalId, GoalState};
use towline_process::{
    ExitRecord, Notice, ProcessError, SupervisorHandle, connect, end_strays, end_supervisor,
    remove_dead_socket, supervisor_process,
};

/// The variable that every process of a goal's agents carries, so that they can be found without their supervisor.
pub(crate) const GOAL_VARIABLE: &str = "TOWLINE_GOAL";
/// How long processes that lost their supervisor may take to be gone.
const SWEEP_PATIENCE: Duration = Duration::from_secs(10);

/// Whose processes are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trail {
    goal: GoalId,
    /// When the goal's first attempt was started.
    since: Timestamp,
}

impl Trail {
    pub(crate) fn of(goal: GoalId, state: &GoalState, now: Timestamp) -> Self {
        Self { goal, since: state.attempts.first().map_or(now, |first| first.started_at) }
    }
}

impl Trail {
    pub(crate) fn goal(self) -> GoalId {
        self.goal
    }
}

/// What there is of a process.
pub(crate) enum RunState {
    /// It runs.
    Alive(Box<SupervisorHandle>),
    /// It has ended, and everything below it.
    Ended(ExitRecord),
    /// Its supervisor is gone and left no record, or something of it may be left.
    Lost,
}

impl RunState {
    /// What there is of a process that was started in `dir`; none when none was.
    pub(crate) async fn find(dir: &Path, trail: Trail) -> Option<Self> {
        if Self::is_left(dir) { Some(Self::reach(dir, trail).await) } else { None }
    }

    /// Whether there is anything of a process that was started in `dir`.
    pub(crate) fn is_left(dir: &Path) -> bool {
        dir.join("launch.json").exists()
    }

    /// Reaches the supervisor once more, or finds out that there is none. As long as one lives, nothing on disk says that the run
    /// has ended. A tree that lost its supervisor is ended before that is reported: nothing else may start beside it.
    pub(crate) async fn reach(dir: &Path, trail: Trail) -> Self {
        if let Ok(Some(supervisor)) = supervisor_process(dir) {
            if let Ok(supervisor) = connect(dir).await {
                return Self::Alive(Box::new(supervisor));
            }
            // One that cannot be reached is of no use to anybody. Whether something is left is looked for below.
            let _ = spawn_blocking(move || end_supervisor(supervisor, SWEEP_PATIENCE)).await;
        }
        remove_dead_socket(dir);
        match (sweep(trail).await, ExitRecord::read(dir)) {
            (Ok(()), Ok(Some(record))) => Self::Ended(record),
            _ => Self::Lost,
        }
    }

    /// Ends whatever was started in `dir` and waits until it is gone. What is left after that is found before the next start
    /// for the goal.
    pub(crate) async fn end(dir: &Path, trail: Trail) {
        let Some(Self::Alive(mut supervisor)) = Self::find(dir, trail).await else { return };
        let ended = async {
            supervisor.kill().await?;
            while let Notice::Grown { .. } = supervisor.next().await? {}
            Ok::<(), ProcessError>(())
        };
        if !matches!(timeout(SWEEP_PATIENCE, ended).await, Ok(Ok(()))) {
            let _ = supervisor.end().await;
            let _ = sweep(trail).await;
        }
    }
}

/// Ends processes of agents and checks that have no living supervisor. Until that is certain nothing may be started for the
/// goal, and nothing judged.
pub(crate) async fn sweep(trail: Trail) -> Result<(), ProcessError> {
    let since = u64::try_from(trail.since.as_millisecond()).unwrap_or(0);
    let swept = spawn_blocking(move || {
        let goal = trail.goal.to_string();
        end_strays((GOAL_VARIABLE, &goal), since, SWEEP_PATIENCE)
    });
    swept.await.unwrap_or_else(|panic| Err(ProcessError::CannotLook { source: io::Error::other(panic) }))
}
