//! Finding what there is of an agent's process: its living shim, its exit record, or nothing but what it left.

use std::path::Path;
use std::time::Duration;

use tokio::task::spawn_blocking;
use towline_core::GoalId;
use towline_process::{
    ExitRecord, Notice, Shim, connect, end_processes, end_supervisor, processes_with_env, shim_process,
};

/// The variable that every process of a goal's agents carries, so that they can be found without their shim.
pub(crate) const GOAL_VARIABLE: &str = "TOWLINE_GOAL";
/// How long processes that lost their shim may take to be gone.
const SWEEP_PATIENCE: Duration = Duration::from_secs(10);

/// What there is of a process.
pub(crate) enum Link {
    /// It runs.
    Alive(Box<Shim>),
    /// It has ended, and everything below it.
    Ended(ExitRecord),
    /// Its shim is gone and left no record; what was below it is gone, too.
    Lost,
}

impl Link {
    /// What there is of a process that was started in `dir`; none when none was.
    pub(crate) async fn find(dir: &Path, goal: GoalId) -> Option<Self> {
        if dir.join("launch.json").exists() { Some(Self::reach(dir, goal).await) } else { None }
    }

    /// Reaches the supervisor once more, or finds out that there is none. As long as one lives, nothing on disk says that the run
    /// has ended. A tree that lost its supervisor is ended before that is reported: nothing else may start beside it.
    pub(crate) async fn reach(dir: &Path, goal: GoalId) -> Self {
        if let Ok(Some(supervisor)) = shim_process(dir) {
            if let Ok(shim) = connect(dir).await {
                return Self::Alive(Box::new(shim));
            }
            // One that cannot be reached is of no use to anybody.
            let _ = spawn_blocking(move || end_supervisor(supervisor, SWEEP_PATIENCE)).await;
        }
        sweep(goal).await;
        match ExitRecord::read(dir) {
            Ok(Some(record)) => Self::Ended(record),
            _ => Self::Lost,
        }
    }

    /// Ends whatever was started in `dir` and waits until it is gone.
    pub(crate) async fn end(dir: &Path, goal: GoalId) {
        let Some(Self::Alive(mut shim)) = Self::find(dir, goal).await else { return };
        if shim.kill().await.is_err() {
            return sweep(goal).await;
        }
        loop {
            match shim.next().await {
                Ok(Notice::Grown { .. }) => {}
                Ok(Notice::Exited(_)) => return,
                Err(_) => return sweep(goal).await,
            }
        }
    }
}

/// Ends processes of the goal's agents that no supervisor of ours looks after any more.
pub(crate) async fn sweep(goal: GoalId) {
    let goal = goal.to_string();
    let ourselves = std::process::id();
    let find = move || {
        let mut found = processes_with_env(GOAL_VARIABLE, &goal);
        found.retain(|process| process.pid != ourselves);
        found
    };
    // What cannot be ended within its time is found again by whoever looks next.
    let _ = spawn_blocking(move || end_processes(find, SWEEP_PATIENCE)).await;
}
