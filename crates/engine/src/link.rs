//! Finding what there is of an agent's process: its living shim, its exit record, or nothing but what it left.

use std::path::Path;
use std::time::Duration;

use towline_core::GoalId;
use towline_process::{
    ExitRecord, Notice, ProcessId, Shim, connect, end_processes, processes_with_env, shim_process,
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

    /// Reaches the shim once more, or finds out that there is none. A tree that lost its shim is ended before that is
    /// said: nothing else may start beside it.
    pub(crate) async fn reach(dir: &Path, goal: GoalId) -> Self {
        if let Ok(Some(record)) = ExitRecord::read(dir) {
            return Self::Ended(record);
        }
        if shim_process(dir).ok().flatten().is_some_and(ProcessId::is_running)
            && let Ok(shim) = connect(dir).await
        {
            return Self::Alive(Box::new(shim));
        }
        // It may have come to its end in the meantime.
        if let Ok(Some(record)) = ExitRecord::read(dir) {
            return Self::Ended(record);
        }
        sweep(goal).await;
        Self::Lost
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

/// Ends processes of the goal's agents that no shim looks after any more.
async fn sweep(goal: GoalId) {
    let goal = goal.to_string();
    let ourselves = std::process::id();
    let find = move || {
        let mut found = processes_with_env(GOAL_VARIABLE, &goal);
        found.retain(|process| process.pid != ourselves);
        found
    };
    // What cannot be ended within its time is found again by whoever looks next.
    let _ = tokio::task::spawn_blocking(move || end_processes(find, SWEEP_PATIENCE)).await;
}
