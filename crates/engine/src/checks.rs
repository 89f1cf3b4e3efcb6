//! Makes the candidate of an attempt's work and has the checks run on it.

use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, watch};
use towline_check::{CheckError, CheckRun, Interrupted, Judges, Progress};
use towline_core::{AttemptNo, BaselineCheck, Event, Goal, Reuse, Seq, Verdict, Work, WorkspaceBinding};
use towline_process::Priority;
use towline_workspace::{AS_IT_IS_NOW, Candidate, Protect, Repository};

use crate::confinement::Homes;
use crate::engine::Shared;
use crate::executors::ExecutorControl;
use crate::home::Home;
use crate::judge::{AgentJudge, JudgeMeans};
use crate::news::{EventSender, StopLevel};
use crate::place::workspace_of;
use crate::prepare::{stoppable, stopped, stopped_for_a_while, try_stoppable};
use crate::resolver::Resolved;
use crate::runs::{self, Trail};
use crate::{baseline, interrupted, supervisors};

/// What is reported between the checks in a warm checkout and those in a clean one.
const CONFIRMING: &str = "all checks passed in a warm checkout; running them again in a clean one";

/// How much of a list of changes is handed over.
const LONGEST_CHANGES: usize = 4 * 1024;

/// What is to be checked.
pub(crate) struct ChecksJob {
    pub(crate) goal: Goal,
    pub(crate) resolved: Arc<Resolved>,
    pub(crate) workspace: Option<WorkspaceBinding>,
    /// The attempt whose work it is.
    pub(crate) attempt: AttemptNo,
    /// The agent's last message.
    pub(crate) summary: String,
    /// What the checks found on the base, where that is known.
    pub(crate) base: Vec<BaselineCheck>,
    /// What the verdict may use of the one before it.
    pub(crate) reuse: Reuse,
    /// The last event of the goal.
    pub(crate) last_seq: Seq,
    /// What the goal's judges may use.
    pub(crate) means: JudgeMeans,
}

/// Runs the checks and reports the verdict, that they could not be run, that a judge gave none, or that they were stopped.
pub(crate) async fn run(shared: Arc<Shared>, job: ChecksJob, sender: EventSender, control: ExecutorControl) {
    let ChecksJob { goal, resolved, workspace, attempt, summary, base, reuse, last_seq, means } = job;
    let ExecutorControl { stop, lease_ends, deliveries: _ } = control;
    let trail = Trail::of(&goal, &shared.supervisor);
    let judged = async {
        let workspace = workspace.ok_or(CheckError::NoWorkspace)?;
        let interrupted = interrupted::find(&shared, &goal, last_seq).await;
        // Nothing of the agent may be alive while its work is judged, nor of the checks on the base.
        baseline::clear(&shared.home, goal.id).await?;
        runs::sweep(&trail).await?;
        let setup_changes = workspace.setup_changes.clone();
        let made = candidate(&shared.home, &goal, workspace, attempt.get(), &summary, stopped(stop.clone()));
        let (repository, candidate) = made.await?;
        for warning in &candidate.warnings {
            // A driver that is gone needs no report.
            let _ = sender.send_own(Event::Notice { text: warning.clone() }).await;
        }
        let asked = AgentJudge {
            shared: &shared,
            goal: &goal,
            resolved: &resolved,
            repository: &repository,
            candidate: &candidate,
            attempt,
            sender: &sender,
            stop: stop.clone(),
            lease_ends,
            means: Mutex::new(means),
        };
        let verify_dir = &shared.home.verification(goal.id);
        let place = (&goal, &*resolved);
        let run = CheckRun {
            goal: &goal,
            candidate: &candidate,
            base: &base,
            repository: &repository,
            setup_changes: &setup_changes,
            verify_dir,
            reuse,
            log_dir: &shared.home.attempt(goal.id, attempt).join("checks"),
            supervisor: &shared.supervisor_of(goal.id),
            environment: &shared.check_environment(place, &repository, Homes::Checks, verify_dir)?,
            priority: Priority::Normal,
            judges: Judges::Asked(&asked),
        };
        judge(&shared, run, interrupted.as_ref(), &sender, stop).await
    };
    let mut judged = judged.await;
    if judged.is_err()
        && let Err(error) = supervisors::end_all(&shared, &trail).await
    {
        judged = Err(error.into());
    }
    // A driver that is gone needs no report.
    let _ = sender.send_own(outcome(&goal, judged)).await;
}

/// What came of the checks.
fn outcome(goal: &Goal, judged: Result<Verdict, CheckError>) -> Event {
    match judged {
        Ok(verdict) => Event::VerdictReached { verdict },
        Err(CheckError::Stopped) => Event::Stopped,
        Err(CheckError::NoOpinion { check, agent, reason }) => {
            let account = goal.account_of(&agent).to_owned();
            Event::JudgeUnavailable { check, agent, account, reason }
        }
        Err(error) => Event::ChecksFailed { error: error.to_string() },
    }
}

/// Reaches the verdict and reports how the checks go. An engine that was killed may have left a part of the same verdict.
async fn judge(
    shared: &Shared,
    run: CheckRun<'_>,
    interrupted: Option<&Interrupted>,
    sender: &EventSender,
    stop: watch::Receiver<StopLevel>,
) -> Result<Verdict, CheckError> {
    // Cannot grow: two entries for each check of the goal and each of its few checkouts.
    let (progress, mut reported) = mpsc::unbounded_channel();
    let report = move |report| {
        // The receiver lives as long as this call.
        let _ = progress.send(report);
    };
    let verdict = async move {
        let mut report = report;
        if let Some(interrupted) = interrupted {
            match towline_check::resume(run, interrupted, stopped(stop.clone()), &mut report).await {
                Ok(Some(verdict)) => return Ok(verdict),
                Err(error @ (CheckError::Stopped | CheckError::NoOpinion { .. })) => return Err(error),
                // Whatever is left of it must not disturb the verdict from the start.
                Ok(None) | Err(_) => {
                    supervisors::end_all(shared, &Trail::of(run.goal, &shared.supervisor)).await?
                }
            }
        }
        towline_check::run(run, stopped(stop), report).await
    };
    let relay = async {
        while let Some(progress) = reported.recv().await {
            let event = match progress {
                Progress::Started { name, process } => Event::CheckStarted { name, process },
                Progress::Adopted { name } => {
                    Event::Notice { text: format!("`{name}` still runs; waiting for its result") }
                }
                Progress::Finished { result } => Event::CheckFinished { result },
                Progress::Confirming => Event::Notice { text: CONFIRMING.to_owned() },
            };
            // A driver that is gone needs no report; the report of the verdict fails as well.
            let _ = sender.send_own(event).await;
        }
    };
    let (verdict, ()) = tokio::join!(verdict, relay);
    verdict
}

/// Whether an attempt left work that no verdict covers. If that is unknown, the answer is no: the work stays in the
/// workspace, and the next attempt continues it.
pub(crate) async fn left_work(
    home: &Home,
    goal: Goal,
    workspace: WorkspaceBinding,
    checked: Option<String>,
    stop: watch::Receiver<StopLevel>,
) -> Work {
    let made = candidate(home, &goal, workspace, AS_IT_IS_NOW, "", stopped_for_a_while(stop));
    let Ok((repository, candidate)) = made.await else { return Work::Nothing };
    let base = goal.workspace.base;
    let before = match checked {
        Some(tree) => Some(tree),
        None => {
            let base = tokio::task::spawn_blocking(move || repository.as_candidate(&base)).await;
            base.ok().and_then(Result::ok).map(|base| base.tree)
        }
    };
    if before.is_some_and(|tree| tree != candidate.tree) { Work::Unchecked } else { Work::Nothing }
}

/// A summary of the changes in the workspace; empty if it cannot be made.
pub(crate) async fn changes(
    home: &Home,
    goal: Goal,
    binding: WorkspaceBinding,
    stop: watch::Receiver<StopLevel>,
) -> String {
    let home = home.clone();
    let stat = stoppable(stopped_for_a_while(stop), move |halt| {
        let (_, workspace) = workspace_of(&home, &goal, &binding, halt)?;
        workspace.diff_stat()
    });
    let stat = stat.await.ok().and_then(Result::ok).map(|stat| stat.to_string()).unwrap_or_default();
    match stat.char_indices().nth(LONGEST_CHANGES) {
        Some((end, _)) => format!("{} …", &stat[..end]),
        None => stat,
    }
}

/// Makes the candidate with this number: that of an attempt, or [`AS_IT_IS_NOW`].
async fn candidate(
    home: &Home,
    goal: &Goal,
    binding: WorkspaceBinding,
    number: u32,
    summary: &str,
    stop: impl Future<Output = ()>,
) -> Result<(Repository, Candidate), CheckError> {
    let (home, goal, message) = (home.clone(), goal.clone(), goal.commit_message(summary));
    let made = try_stoppable(stop, move |halt| {
        let (repository, workspace) = workspace_of(&home, &goal, &binding, halt)?;
        let protect = Protect::of_candidate(&goal)?;
        let candidate = workspace.with_message(message).candidate(number, &protect)?;
        Ok((repository, candidate))
    });
    made.await
}
