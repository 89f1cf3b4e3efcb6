//! Continues a verdict whose process was killed: a check or setup command that still runs is adopted, the results before it count,
//! and what comes after it runs in the same checkout.
//!
//! Both run the agent's code as the same user, so nothing on disk decides what is adopted. The caller has recorded who the
//! supervisor is, by number and start time, and the results. Whatever is unclear ends in a verdict from the start.

use std::future::Future;
use std::sync::Arc;

use towline_core::{Check, CheckKind, CheckProcess, CheckResult, Checkout, Verdict};
use towline_process::ProcessId;
use towline_workspace::{Scope, reopened_verification};

use crate::blocking::blocking;
use crate::command::Running;
use crate::integrity::Integrity;
use crate::judge::Bench;
use crate::run_logs::{is_run, name_of};
use crate::setup::{self, SETUP};
use crate::stop::Stop;
use crate::validate::validate_all;
use crate::verdict::{Begun, CheckRun, InCheckout, Judged, Pass, Progress, finish, log_name};
use crate::{CheckError, sections};

/// What is known of a verdict that was interrupted while a check or a setup command ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupted {
    /// The results of the goal's checks before it, in their order.
    pub results: Vec<CheckResult>,
    /// Where it runs.
    pub process: CheckProcess,
    /// When it was started, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
}

impl Interrupted {
    /// The supervisor of what runs.
    pub fn supervisor(&self) -> ProcessId {
        ProcessId { pid: self.process.pid, start_time: self.process.start_time }
    }
}

/// What still runs of an interrupted verdict.
enum Step<'a> {
    /// The setup command of this number, from 1.
    Setup(usize),
    Check(&'a Check),
}

impl Step<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Setup(_) => SETUP,
            Self::Check(check) => &check.name,
        }
    }
}

/// Resumes an interrupted verdict: adopts what still runs of it, and runs what comes after that. None if the verdict must run from
/// the start. Whatever is not a verdict may leave processes of the interrupted one: the caller ends them first.
pub async fn resume(
    run: CheckRun<'_>,
    interrupted: &Interrupted,
    stop: impl Future<Output = ()>,
    mut on_progress: impl FnMut(Progress),
) -> Result<Option<Verdict>, CheckError> {
    validate_all(&run.goal.checks)?;
    let mut stop = Stop::new(stop);
    let Some(judged) = run.resume(interrupted, &mut stop, &mut on_progress).await? else { return Ok(None) };
    Ok(Some(run.conclude(judged, &mut stop, &mut on_progress).await?))
}

impl CheckRun<'_> {
    async fn resume<F: Future<Output = ()>>(
        &self,
        interrupted: &Interrupted,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Option<Judged>, CheckError> {
        let Some((step, running)) = self.adoptable(interrupted) else { return Ok(None) };
        // What cannot be read here is found out by the verdict from the start.
        let Ok(Some(begun)) = self.reopen(interrupted, &step).await else { return Ok(None) };
        on_progress(Progress::Adopted { name: step.name().to_owned() });
        let (checkout, pass) = (Arc::clone(&begun.checkout), begun.pass);
        let started_at_ms = interrupted.started_at_ms;
        let judged = match step {
            Step::Setup(number) => {
                self.adopt_setup(number, begun, running, started_at_ms, stop, on_progress).await
            }
            Step::Check(check) => {
                self.adopt_check(check, begun, running, started_at_ms, stop, on_progress).await
            }
        };
        if !matches!(judged, Ok(None)) {
            self.leave(checkout, pass, judged.as_ref().ok().and_then(Option::as_ref)).await;
        }
        judged
    }

    /// What runs, if its supervisor lives and is the one that was recorded.
    fn adoptable(&self, interrupted: &Interrupted) -> Option<(Step<'_>, Running)> {
        let CheckProcess { directory, commit, .. } = &interrupted.process;
        let run_dir = self.log_dir.join(directory);
        let step = self.step(name_of(&run_dir)?, interrupted.results.len())?;
        let supervisor = interrupted.supervisor();
        let is_it = *commit == self.candidate.commit
            && is_run(directory)
            && run_dir.parent() == Some(self.log_dir)
            && towline_process::supervisor_process(&run_dir).ok().flatten() == Some(supervisor);
        is_it.then_some((step, Running { run_dir, supervisor }))
    }

    /// The step whose runs have this name, if as many checks as there should be have a result.
    fn step(&self, name: &str, finished: usize) -> Option<Step<'_>> {
        let mut setup = 1..=self.goal.workspace.setup.len();
        if let Some(number) = setup.find(|number| setup::log_name(*number) == name) {
            return (finished == 0).then_some(Step::Setup(number));
        }
        let (check, number) = self.numbered_checks().nth(finished)?;
        let is_it = matches!(check.kind, CheckKind::Command { .. } | CheckKind::Program { .. })
            && log_name(check, number) == name;
        is_it.then_some(Step::Check(check))
    }

    async fn reopen(&self, interrupted: &Interrupted, step: &Step<'_>) -> Result<Option<Begun>, CheckError> {
        let (own, path) = (self.repository.clone(), self.verify_dir.to_owned());
        let commit = self.candidate.commit.clone();
        let reopened = blocking(move || Ok(reopened_verification(&own, &path, &commit)?)).await?;
        let Some(reopened) = reopened else { return Ok(None) };
        let workspace = &self.goal.workspace;
        let checkout = Arc::new(reopened.open_to_builds(&workspace.warm, &workspace.copy));
        let mut integrity = Integrity::reopened(Arc::clone(&checkout), self).await?;
        if matches!(step, Step::Check(_)) {
            integrity = match integrity {
                Some(integrity) => integrity.after_setup().await?,
                None => None,
            };
        }
        let CheckProcess { checkout: kind, copies, .. } = interrupted.process.clone();
        // A program that runs there may have changed a copy and the file that it was made of.
        let integrity = integrity.filter(|integrity| integrity.copies() == copies);
        let pass = match (step, kind) {
            (Step::Check(check), _) if self.follows(check) => Pass::Hidden,
            (_, Checkout::WarmThenClean) => Pass::Confirming,
            (_, Checkout::Clean | Checkout::Warm) => Pass::First,
        };
        let (in_checkout, results) = (InCheckout { kind, copies }, interrupted.results.clone());
        Ok(integrity.map(|integrity| Begun { pass, checkout, in_checkout, integrity, results }))
    }

    async fn adopt_setup<F: Future<Output = ()>>(
        &self,
        number: usize,
        mut begun: Begun,
        running: Running,
        started_at_ms: u64,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Option<Judged>, CheckError> {
        let place = self.place(&begun.checkout);
        let kind = begun.in_checkout.kind;
        let on_start = |running: Running| on_progress(self.setting_up(&running, &begun.in_checkout));
        let commands = self.setup_commands(&place);
        let adopted = commands.adopt(number, running, Some(started_at_ms), stop, on_start).await?;
        let Some((setup, took)) = adopted else { return Ok(None) };
        let result = setup.into_result(took);
        if !result.met {
            on_progress(Progress::Finished { result: result.clone() });
            return Ok(Some(Judged::by(result, kind)));
        }
        begun.integrity.look("by setup", Scope::All).await?;
        // A reopened checkout does not know which files git converted: they look changed.
        if begun.integrity.has_found() {
            return Ok(None);
        }
        on_progress(Progress::Finished { result });
        let sections = sections::changed(self, on_progress).await?;
        Ok(Some(self.judge_rest(begun, sections, stop, on_progress).await?))
    }

    async fn adopt_check<F: Future<Output = ()>>(
        &self,
        check: &Check,
        mut begun: Begun,
        running: Running,
        started_at_ms: u64,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Option<Judged>, CheckError> {
        let place = self.place(&begun.checkout);
        let adopted = place.adopt(running, check.timeout, Some(started_at_ms), stop);
        let Some(ended) = adopted.await? else { return Ok(None) };
        let bench = Bench { run: self, place: &place };
        let result = bench.judge_end(check, &ended, ended.took()).await?;
        let result = finish(check, result, &mut begun.integrity, on_progress).await?;
        begun.results.push(result);
        // They were reported when the verdict began.
        let sections = sections::changed(self, &mut |_| ()).await?;
        Ok(Some(self.judge_rest(begun, sections, stop, on_progress).await?))
    }
}
