//! Continues a verdict whose process was killed: a check that still runs is adopted, the results before it count, and the checks
//! after it run in the same checkout.
//!
//! A check runs the agent's code as the same user, so nothing on disk decides what is adopted. The caller has recorded who the
//! supervisor is, by number and start time, and the results. Whatever is unclear ends in a verdict from the start.

use std::future::Future;
use std::sync::Arc;

use towline_core::{Check, CheckKind, CheckProcess, CheckResult, Checkout, Verdict};
use towline_process::ProcessId;
use towline_workspace::reopened_verification;

use crate::blocking::blocking;
use crate::command::Running;
use crate::integrity::Integrity;
use crate::judge::Bench;
use crate::run_logs::{is_run, name_of};
use crate::stop::Stop;
use crate::validate::validate;
use crate::verdict::{Begun, CheckRun, Judged, Pass, Progress, finish, log_name};
use crate::{CheckError, sections};

/// What is known of a verdict that was interrupted while a check ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupted {
    /// The results of the goal's checks before that one, in their order.
    pub results: Vec<CheckResult>,
    /// Where it runs.
    pub process: CheckProcess,
    /// When it was started, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
}

impl Interrupted {
    /// The supervisor of the running check.
    pub fn supervisor(&self) -> ProcessId {
        ProcessId { pid: self.process.pid, start_time: self.process.start_time }
    }
}

/// Resumes an interrupted verdict: adopts its running check and runs those after it. None if the verdict must run from the
/// start. Whatever is not a verdict may leave processes of the interrupted one: the caller ends them first.
pub async fn resume(
    run: CheckRun<'_>,
    interrupted: &Interrupted,
    stop: impl Future<Output = ()>,
    mut on_progress: impl FnMut(Progress),
) -> Result<Option<Verdict>, CheckError> {
    run.goal.checks.iter().try_for_each(validate)?;
    let mut stop = Stop::new(stop);
    let Some(judged) = run.resume(interrupted, &mut stop, &mut on_progress).await? else { return Ok(None) };
    Ok(Some(run.conclude(judged, &mut stop, &mut on_progress).await?))
}

impl CheckRun<'_> {
    /// Adopts the running check of an interrupted verdict and runs those after it. None if the verdict must run from the start.
    async fn resume<F: Future<Output = ()>>(
        &self,
        interrupted: &Interrupted,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Option<Judged>, CheckError> {
        let Some((check, running)) = self.adoptable(interrupted) else { return Ok(None) };
        // What cannot be read here is found out by the verdict from the start.
        let Ok(Some(begun)) = self.reopen(interrupted).await else { return Ok(None) };
        on_progress(Progress::Adopted { name: check.name.clone() });
        let pass = match begun.kind {
            Checkout::WarmThenClean => Pass::Confirming,
            Checkout::Clean | Checkout::Warm => Pass::First,
        };
        let checkout = Arc::clone(&begun.checkout);
        let judged = self.adopt_and_judge(check, begun, running, interrupted, stop, on_progress).await;
        if !matches!(judged, Ok(None)) {
            self.leave(checkout, pass, judged.as_ref().ok().and_then(Option::as_ref)).await;
        }
        judged
    }

    /// The check that runs, if its supervisor lives and is the one that was recorded.
    fn adoptable(&self, interrupted: &Interrupted) -> Option<(&Check, Running)> {
        let CheckProcess { directory, commit, .. } = &interrupted.process;
        let number = interrupted.results.len() + 1;
        let check = self.goal.checks.get(number - 1)?;
        let run_dir = self.log_dir.join(directory);
        let supervisor = interrupted.supervisor();
        let is_it = *commit == self.candidate.commit
            && matches!(check.kind, CheckKind::Command { .. } | CheckKind::Program { .. })
            && is_run(directory)
            && name_of(&run_dir) == Some(log_name(check, number).as_str())
            && run_dir.parent() == Some(self.log_dir)
            && towline_process::supervisor_process(&run_dir).ok().flatten() == Some(supervisor);
        is_it.then_some((check, Running { run_dir, supervisor }))
    }

    async fn reopen(&self, interrupted: &Interrupted) -> Result<Option<Begun>, CheckError> {
        let (own, path) = (self.repository.clone(), self.verify_dir.to_owned());
        let commit = self.candidate.commit.clone();
        let reopened = blocking(move || Ok(reopened_verification(&own, &path, &commit)?)).await?;
        let Some(reopened) = reopened else { return Ok(None) };
        let workspace = &self.goal.workspace;
        let checkout = Arc::new(reopened.open_to_builds(&workspace.warm, &workspace.copy));
        let (protect, generated) = self.judged_paths()?;
        let integrity = Integrity::reopened(Arc::clone(&checkout), protect, generated, self).await?;
        let (kind, results) = (interrupted.process.checkout, interrupted.results.clone());
        Ok(integrity.map(|integrity| Begun { checkout, kind, integrity, results }))
    }

    async fn adopt_and_judge<F: Future<Output = ()>>(
        &self,
        check: &Check,
        mut begun: Begun,
        running: Running,
        interrupted: &Interrupted,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Option<Judged>, CheckError> {
        let place = self.place(&begun.checkout);
        let adopted = place.adopt(running, check.timeout, Some(interrupted.started_at_ms), stop);
        let Some(ended) = adopted.await? else { return Ok(None) };
        let bench = Bench { run: self, checkout: begun.checkout.path(), place: &place };
        let result = bench.judge_end(check, &ended, ended.took()).await?;
        let result = finish(check, result, &mut begun.integrity, on_progress).await?;
        begun.results.push(result);
        // They were reported when the verdict began.
        let sections = sections::changed(self, &mut |_| ()).await?;
        Ok(Some(self.judge_rest(begun, sections, stop, on_progress).await?))
    }
}
