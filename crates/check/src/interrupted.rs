//! Goes on with a verdict whose process was killed: a check that still runs is adopted, the results before it count, and the checks
//! after it run in the same checkout.
//!
//! A check runs the agent's code as the same user, so nothing on disk says what is adopted. The caller has recorded who the
//! supervisor is, by number and start time, and the results. Whatever is unclear ends in a verdict from the start.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use towline_core::{Check, CheckKind, CheckProcess, CheckResult, Checkout};
use towline_process::ProcessId;
use towline_workspace::reopened_verification;

use crate::blocking::blocking;
use crate::command::Running;
use crate::integrity::Integrity;
use crate::judge::Bench;
use crate::run_logs::{is_run, name_of};
use crate::stop::Stop;
use crate::verdict::{Begun, CheckRun, Judged, Pass, Progress, finish, log_name};
use crate::{CheckError, leftovers, sections};

/// What is known of a verdict that was interrupted while a check ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupted {
    /// The results of the goal's checks before that one, in their order.
    pub results: Vec<CheckResult>,
    /// Where it runs.
    pub process: CheckProcess,
    /// How long ago it was started.
    pub elapsed: Duration,
}

impl CheckRun<'_> {
    /// Adopts the running check of an interrupted verdict and runs those after it. None if the verdict must run from the start.
    pub(crate) async fn take_up<F: Future<Output = ()>>(
        &self,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Option<Judged>, CheckError> {
        let Some((check, interrupted, running)) = self.adoptable() else { return Ok(None) };
        leftovers::clear_except(self.log_dir, Some(&running.run_dir)).await?;
        // Whatever cannot be read or told here is found out by the verdict from the start.
        let Ok(Some(begun)) = self.reopen(interrupted).await else { return Ok(None) };
        on_progress(Progress::Adopted { name: check.name.clone() });
        let pass = match begun.kind {
            Checkout::WarmThenClean => Pass::Confirming,
            Checkout::Clean | Checkout::Warm => Pass::First,
        };
        let checkout = Arc::clone(&begun.checkout);
        let judged =
            self.adopt_and_judge(check, begun, (running, interrupted.elapsed), stop, on_progress).await;
        if !matches!(judged, Ok(None)) {
            self.leave(checkout, pass, judged.as_ref().ok().and_then(Option::as_ref)).await;
        }
        judged
    }

    /// The check that runs, if its supervisor lives and is the one that was recorded.
    fn adoptable(&self) -> Option<(&Check, &Interrupted, Running)> {
        let interrupted = self.interrupted?;
        let CheckProcess { directory, pid, start_time, commit, .. } = &interrupted.process;
        let number = interrupted.results.len() + 1;
        let check = self.goal.checks.get(number - 1)?;
        let run_dir = self.log_dir.join(directory);
        let supervisor = ProcessId { pid: *pid, start_time: *start_time };
        let is_it = *commit == self.candidate.commit
            && matches!(check.kind, CheckKind::Command { .. } | CheckKind::Program { .. })
            && is_run(directory)
            && name_of(&run_dir) == Some(log_name(check, number).as_str())
            && run_dir.parent() == Some(self.log_dir)
            && towline_process::shim_process(&run_dir).ok().flatten() == Some(supervisor);
        is_it.then_some((check, interrupted, Running { run_dir, supervisor }))
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
        (running, elapsed): (Running, Duration),
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Option<Judged>, CheckError> {
        let adopted_at = std::time::Instant::now();
        let place = self.place(&begun.checkout);
        let Some(ended) = place.adopt(running, check.timeout, stop).await? else { return Ok(None) };
        let bench = Bench { run: self, checkout: begun.checkout.path(), place: &place };
        let result = bench.judge_end(check, &ended, elapsed + adopted_at.elapsed()).await?;
        let result = finish(check, result, &mut begun.integrity, on_progress).await?;
        begun.results.push(result);
        // They were reported when the verdict began.
        let sections = sections::changed(self, &mut |_| ()).await?;
        Ok(Some(self.judge_rest(begun, sections, stop, on_progress).await?))
    }
}
