//! Runs the checks on the base, in a checkout of its own, or finds what an earlier goal has found there. An agent that works meanwhile
//! has the higher priority.
//!
//! Neighbours: the driver starts and stops it beside an attempt; `checks` judges the work itself and waits until nothing of
//! this is left.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::watch;
use towline_check::{CheckError, CheckRun, Environment, Judges, missing_program};
use towline_core::{
    BaselineCheck, BaselineMode, Check, CheckKind, CheckResult, Event, Goal, GoalId, MissingProgram, Reuse,
};
use towline_process::Priority;
use towline_store::StoredBaseline;
use towline_workspace::digest_of_copies;

use crate::confinement::Homes;
use crate::engine::Shared;
use crate::home::Home;
use crate::news::{EventSender, StopLevel};
use crate::place::repository_of;
use crate::prepare::{stopped, try_stoppable};
use crate::resolver::Resolved;

/// How long a stored result is good for. Tools, services and the time of day change without a trace in its key.
const GOOD_FOR: Duration = Duration::from_secs(24 * 3_600);
/// How a shell reports that a program could not be run, which is no property of the base.
const NOT_RUN: [i32; 2] = [126, 127];
/// Changes with how results are reached.
const KEY_VERSION: u32 = 2;

/// What is to be checked.
pub(crate) struct BaselineJob {
    pub(crate) goal: Goal,
    pub(crate) resolved: Arc<Resolved>,
    pub(crate) round: u32,
    /// What setup changes before any work.
    pub(crate) setup_changes: BTreeMap<String, Option<String>>,
}

/// Reports the result of the checks on the base, or why it is unknown; nothing if the run was stopped.
pub(crate) async fn run(
    shared: Arc<Shared>,
    job: BaselineJob,
    sender: EventSender,
    stop: watch::Receiver<StopLevel>,
) {
    let event = match reach(&shared, &job, stop).await {
        Ok(reached) => reached,
        Err(CheckError::Stopped) => return,
        Err(error) => Event::BaselineUnknown { round: job.round, reason: error.to_string() },
    };
    // A driver that is gone needs no news.
    let _ = sender.send_own(event).await;
}

async fn reach(
    shared: &Shared,
    job: &BaselineJob,
    stop: watch::Receiver<StopLevel>,
) -> Result<Event, CheckError> {
    let (goal, round) = (&job.goal, job.round);
    let key = key_of(job).await;
    if let Some(stored) = stored(shared, goal, key.as_deref()).await {
        let checks = stored.checks.into_iter().map(without_output).collect();
        let reused = Some(stored.found_at);
        return Ok(Event::BaselineReached { round, checks, reused, missing: None });
    }
    let checks = check(shared, job, stop).await?;
    let missing = missing(goal, &checks, &job.resolved.check_environment(goal));
    // Files that were changed meanwhile may have been copied as they were or as they are.
    if let Some(key) = key.filter(|_| is_of_the_base(goal, &checks))
        && key_of(job).await.as_ref() == Some(&key)
    {
        let found_at = shared.clock.now();
        let checks = checks.iter().map(BaselineCheck::from).collect();
        // The next goal runs them again then.
        let _ = shared.store.store_baseline(&key, &StoredBaseline { checks, found_at }).await;
    }
    Ok(Event::BaselineReached { round, checks, reused: None, missing })
}

/// The result that an earlier goal stored. An agent may have disturbed those checks, so a base that must be red is checked
/// again.
async fn stored(shared: &Shared, goal: &Goal, key: Option<&str>) -> Option<StoredBaseline> {
    if goal.baseline == BaselineMode::Red {
        return None;
    }
    let stored = shared.store.baseline(key?).await.ok().flatten()?;
    let age = Duration::try_from(shared.clock.now().duration_since(stored.found_at)).ok()?;
    (age <= GOOD_FOR).then_some(stored)
}

/// Runs the checks as for a verdict.
async fn check(
    shared: &Shared,
    job: &BaselineJob,
    stop: watch::Receiver<StopLevel>,
) -> Result<Vec<CheckResult>, CheckError> {
    let (home, goal) = (shared.home.clone(), job.goal.clone());
    let base = try_stoppable(stopped(stop.clone()), move |halt| {
        let repository = repository_of(&home, &goal)?.until(halt);
        let base = repository.as_candidate(&goal.workspace.base)?;
        Ok((repository, base))
    });
    let (repository, base) = base.await?;
    let mut goal = job.goal.clone();
    // There is no change yet that could be taken back.
    goal.checks.iter_mut().for_each(|check| check.probe = None);
    let run = CheckRun {
        goal: &goal,
        candidate: &base,
        base: &[],
        repository: &repository,
        setup_changes: &job.setup_changes,
        verify_dir: &shared.home.base_verification(job.goal.id),
        reuse: Reuse::Never,
        log_dir: &shared.home.base_checks(job.goal.id),
        supervisor: &shared.supervisor_of(job.goal.id),
        environment: &shared.check_environment(
            (&job.goal, &job.resolved),
            &repository,
            Homes::Base,
            &shared.home.base_verification(job.goal.id),
        )?,
        priority: match job.goal.baseline {
            // The agent waits for it.
            BaselineMode::Red => Priority::Normal,
            BaselineMode::Auto | BaselineMode::Off => Priority::Low,
        },
        // They cost money, and there is no work to judge.
        judges: Judges::LeftOut,
    };
    Ok(towline_check::run(run, stopped(stop), |_| ()).await?.checks)
}

/// Ends what an engine that was killed left of it, and removes the checkout.
pub(crate) async fn clear(home: &Home, goal: GoalId) -> Result<(), CheckError> {
    towline_check::end_runs(&home.base_checks(goal)).await?;
    let checkout = home.base_verification(goal);
    // What cannot be removed now is removed with the goal.
    let _ = home.remove(&checkout);
    Ok(())
}

fn missing(goal: &Goal, results: &[CheckResult], environment: &Environment) -> Option<MissingProgram> {
    results.iter().find_map(|result| {
        let check = goal.checks.iter().find(|check| check.name == result.name)?;
        let program = missing_program(check, result, environment)?;
        Some(MissingProgram { check: check.name.clone(), program })
    })
}

/// Whether every failure is a property of the base. A timeout, a signal, a program that could not be run or a failed setup
/// may not happen again.
pub(crate) fn is_of_the_base(goal: &Goal, results: &[CheckResult]) -> bool {
    let mut failed = results.iter().filter(|result| !result.met);
    failed.all(|result| match goal.checks.iter().find(|check| check.name == result.name) {
        Some(Check { kind: CheckKind::Command { .. } | CheckKind::Program { .. }, .. }) => {
            result.problem.is_none() && result.exit_code.is_some_and(|code| !NOT_RUN.contains(&code))
        }
        Some(_) => true,
        None => false,
    })
}

/// A stored result: what the check printed is not stored.
fn without_output(check: BaselineCheck) -> CheckResult {
    let BaselineCheck { name, met, exit_code, tests } = check;
    CheckResult {
        name,
        met,
        exit_code,
        problem: None,
        evidence: String::new(),
        took: Duration::ZERO,
        output: None,
        tests,
    }
}

/// A hash of everything that the result depends on. None if that is not known; the result is not stored then.
async fn key_of(job: &BaselineJob) -> Option<String> {
    let (goal, environment) = (&job.goal, &job.resolved.environment);
    let (from, copy) = (goal.workspace.repository.clone(), goal.workspace.copy.clone());
    let copies = tokio::task::spawn_blocking(move || digest_of_copies(Path::new(&from), &copy));
    let copies = copies.await.ok()?.ok()??;
    let path = environment.get("PATH").map_or("", String::as_str);
    let passed: Vec<&String> =
        goal.workspace.pass_env.iter().filter(|name| environment.contains_key(*name)).collect();
    Some(key(goal, &copies, path, &passed))
}

pub(crate) fn key(goal: &Goal, copies: &str, path: &str, passed: &[&String]) -> String {
    let workspace = &goal.workspace;
    // Only these read what is to be done.
    let is_program = |kind: &CheckKind| matches!(kind, CheckKind::Program { .. });
    let reads_goal = goal.checks.iter().any(|check| is_program(&check.kind));
    let texts = reads_goal.then_some((&goal.title, &goal.prompt));
    let decides = (
        (KEY_VERSION, env!("CARGO_PKG_VERSION"), &workspace.repository, &workspace.base),
        (&goal.checks, texts, &goal.protect, &goal.unprotect),
        (&workspace.setup, &workspace.copy, copies, &workspace.generated),
        (&workspace.git, path, passed),
    );
    // Serialising these plain structs cannot fail; all goals would share the key of nothing, and none stores it.
    let decides = serde_json::to_vec(&decides).unwrap_or_default();
    towline_core::hexadecimal(&Sha256::digest(decides))
}
