//! Starting the agent of an attempt.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;
use towline_agent::{AgentSettings, LaunchContext, LaunchPlan, McpServer, agent};
use towline_core::{End, Event, Exit, LaunchProblem, Sandbox, Work};
use towline_process::{Priority, spawn};

use super::AttemptJob;
use crate::confinement::{AgentNeeds, Confined, Homes};
use crate::engine::Shared;
use crate::news::EventSender;
use crate::opening::Opening;
use crate::place::repository_of;
use crate::question_file;
use crate::runs::{RunState, Trail};

/// How long an agent may go on after its lease ran out: its engine may be restarted meanwhile.
const WITHOUT_ENGINE: Duration = Duration::from_secs(15 * 60);
/// How long an agent may take to end after the signal that interrupts it.
pub(super) const SIGNAL_PATIENCE: Duration = Duration::from_millis(1_500);
/// How long what an agent leaves running may still write.
const DRAIN: Duration = Duration::from_secs(2);
/// How long an agent that closed its output may take to end.
const CLOSED_OUTPUT_GRACE: Duration = Duration::from_secs(30);

/// The agent's settings with Towline's own tools: a server by its side that is always permitted.
pub(super) fn with_tools(settings: &AgentSettings, tools: &[String]) -> AgentSettings {
    let mut settings = settings.clone();
    if !tools.is_empty() {
        settings.mcp.insert(McpServer::TOWLINE.to_owned(), McpServer::program(tools.to_vec()));
        settings.allow.push(format!("mcp__{}", McpServer::TOWLINE));
    }
    settings
}

/// What is to be started, and where.
pub(super) struct Starting<'a> {
    pub(super) job: &'a AttemptJob,
    pub(super) opening: &'a Opening,
    pub(super) context: &'a LaunchContext<'a>,
    pub(super) dir: &'a Path,
    pub(super) lifetime: Duration,
}

/// Starts the agent in its sandbox, under a supervisor of its own.
pub(super) async fn start(
    shared: &Shared,
    starting: Starting<'_>,
) -> Result<(RunState, Option<Sandbox>), LaunchProblem> {
    let Starting { job, opening, context, dir, lifetime } = starting;
    let (goal, settings) = (job.goal.id, &opening.settings);
    shared.home.make(dir).map_err(|error| other(format!("cannot make {}: {error}", dir.display())))?;
    if job.judge.is_none() {
        question_file::make_place(dir)
            .map_err(|error| other(format!("cannot write to {}: {error}", dir.display())))?;
    }
    if let Some(problem) = agent(settings.kind).refuses(settings, context) {
        return Err(problem);
    }
    opening.keep(dir).map_err(|error| other(format!("cannot write to {}: {error}", dir.display())))?;
    let plan = agent(settings.kind).plan(settings, context);
    let confined = confine(shared, job, opening, &plan, dir).await?;
    let (sandbox, wrapper) =
        confined.map_or((None, Vec::new()), |confined| (Some(confined.sandbox), confined.wrapper));
    let launch = towline_process::Launch {
        argv: plan.argv,
        sandbox: wrapper,
        sandbox_stays: sandbox.is_some_and(Sandbox::stays_above),
        cwd: PathBuf::from(&opening.directory),
        lifetime,
        interrupt_grace: SIGNAL_PATIENCE,
        term_grace: settings.stop_grace,
        drain: DRAIN,
        closed_output_grace: Some(CLOSED_OUTPUT_GRACE),
        stdio: stdio(plan.stdio),
        priority: Priority::Normal,
    };
    match spawn(&shared.supervisor_of(goal), dir, &launch, &plan.env).await {
        Ok(supervisor) => Ok((RunState::Alive(Box::new(supervisor)), sandbox)),
        Err(error) => Err(other(error.to_string())),
    }
}

fn other(message: String) -> LaunchProblem {
    LaunchProblem::Other { message }
}

/// What starts the agent in a sandbox that has what it needs; none without one.
async fn confine(
    shared: &Shared,
    job: &AttemptJob,
    opening: &Opening,
    plan: &LaunchPlan,
    dir: &Path,
) -> Result<Option<Confined>, LaunchProblem> {
    let repository = repository_of(&shared.home, &job.goal).map_err(|error| other(error.to_string()))?;
    let mut needs = AgentNeeds::of(&opening.settings, &opening.directory, &plan.argv, &plan.env);
    needs.read.push(PathBuf::from(&opening.prompt_file));
    match job.judge {
        Some(_) => needs.homes = Homes::Judge,
        None => needs.write.push(question_file::place(dir)),
    }
    shared.confiner(&job.goal, &job.resolved, Some(&repository)).agent(needs).await.map_err(other)
}

/// Reports that the agent of an attempt cannot be started. What was started before, under other settings, must not live
/// on unseen.
pub(crate) async fn refuse(dir: &Path, trail: &Trail, sender: &EventSender, problem: LaunchProblem) {
    RunState::end(dir, trail).await;
    let end = End::SpawnFailed { problem };
    let (exit, work, changes) = (Exit::default(), Work::Nothing, String::new());
    // A driver that is gone needs no report.
    let _ = sender.send_own(Event::AttemptEnded { end, exit, work, changes }).await;
}

fn stdio(wanted: towline_agent::Stdio) -> towline_process::Stdio {
    use towline_agent::Stdio;
    match wanted {
        Stdio::Pipes => towline_process::Stdio::Pipes,
        Stdio::OutputFile => towline_process::Stdio::OutputFile,
        Stdio::Terminal(size) => towline_process::Stdio::Terminal(towline_process::WindowSize {
            columns: size.columns,
            rows: size.rows,
        }),
    }
}

/// How long an agent may last from now on: as long as the lease holds, and some time for an engine to come back.
pub(super) fn lifetime(lease_ends: Instant) -> Duration {
    lease_ends.saturating_duration_since(Instant::now()) + WITHOUT_ENGINE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_agent_may_live_for_a_quarter_of_an_hour_without_an_engine() {
        let quarter = Duration::from_secs(15 * 60);
        assert_eq!(lifetime(Instant::now()), quarter);
        let lease = Duration::from_secs(60);
        assert_eq!(lifetime(Instant::now() + lease), quarter + lease);
        tokio::time::advance(lease).await;
        assert_eq!(lifetime(Instant::now() - lease), quarter, "after the end of the lease");
    }
}
