//! The revert probe: a check that passed runs once more without the change, and must fail there.
//!
//! What the work changed is taken back, but for its tests. A check that still passes does not depend on the work. One that did not run
//! to its own end there shows nothing: the work may be what keeps setup from working without it.

use std::future::Future;
use std::time::Instant;

use towline_core::{Check, CheckResult, Probe, Reuse};
use towline_workspace::Protect;

use crate::CheckError;
use crate::blocking::stoppable;
use crate::finding::Finding;
use crate::judge::UNMATCHED;
use crate::stop::Stop;
use crate::verdict::{CheckRun, Pass, Progress};

/// Where projects have their tests, in every ecosystem that `towline init` knows.
const TESTS: [&str; 16] = [
    "**/tests/**",
    "**/test/**",
    "**/spec/**",
    "**/e2e/**",
    "**/integration_tests/**",
    "**/testdata/**",
    "**/__tests__/**",
    "**/__mocks__/**",
    "**/__snapshots__/**",
    "**/*.snap",
    "**/*.test.*",
    "**/*.spec.*",
    "**/test_*.py",
    "**/*_test.py",
    "**/conftest.py",
    "**/*_test.go",
];

/// How a shell exits whose command could not be executed, was not found, or was killed.
const NOT_ITS_OWN: [i32; 3] = [126, 127, 137];

/// Why a check fails that passes without the change.
const PASSES: &str = "it passes without the change: revert probe";
/// Why a check fails whose probe has nothing to take back.
const NOTHING: &str = "there is no change but to tests, so nothing could be taken back: revert probe";

/// Why a check fails that did not run to its own end without the change.
fn shows_nothing(why: &str) -> String {
    format!(
        "the revert probe showed nothing: without the change, {why}; setup and the check must run without it, \
         and the check must fail by itself"
    )
}

impl CheckRun<'_> {
    /// Runs the probes of checks that have passed, and fails those that show nothing.
    pub(crate) async fn probe<F: Future<Output = ()>>(
        &self,
        results: &mut [CheckResult],
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<(), CheckError> {
        for check in self.goal.checks.iter().filter(|check| check.probe == Some(Probe::Revert)) {
            let name = format!("revert probe of {}", check.name);
            // No process is named: a probe that was interrupted runs again with the whole verdict.
            on_progress(Progress::Started { name: name.clone(), process: None });
            let started = Instant::now();
            let problem = self.passes_reverted(check, stop).await?;
            let finding = problem.clone().map_or_else(Finding::met, Finding::not_met);
            on_progress(Progress::Finished { result: finding.into_result(&name, started.elapsed()) });
            let result = results.iter_mut().find(|result| result.name == check.name);
            if let Some((result, problem)) = result.zip(problem) {
                result.met = false;
                result.problem = Some(problem);
            }
        }
        Ok(())
    }

    /// What is wrong with a check that should fail without the change.
    async fn passes_reverted<F: Future<Output = ()>>(
        &self,
        check: &Check,
        stop: &mut Stop<F>,
    ) -> Result<Option<String>, CheckError> {
        let (repository, base) = (self.repository.clone(), self.goal.workspace.base.clone());
        let commit = self.candidate.commit.clone();
        let tests = Protect::new(&TESTS.map(str::to_owned))?;
        let reverted =
            stoppable(stop, move |halt| Ok(repository.until(halt).reverted(&base, &commit, &tests)?));
        let Some(reverted) = reverted.await? else { return Ok(Some(NOTHING.to_owned())) };
        let mut goal = self.goal.clone();
        goal.checks = vec![Check { probe: None, ..check.clone() }];
        let run = CheckRun { goal: &goal, candidate: &reverted, base: &[], reuse: Reuse::Never, ..*self };
        let judged = run.check_out_and_judge(Pass::First, stop, &mut |_| ()).await?;
        if judged.met() {
            return Ok(Some(PASSES.to_owned()));
        }
        Ok(disturbance(&check.name, &judged.checks).map(|why| shows_nothing(&why)))
    }
}

/// What else than the check itself failed without the change; none where the check ran to its end and did not hold.
fn disturbance(check: &str, results: &[CheckResult]) -> Option<String> {
    if let Some(other) = results.iter().find(|result| result.name != check && !result.met) {
        let name = &other.name;
        return Some(other.problem.clone().unwrap_or_else(|| format!("`{name}` failed")));
    }
    let result = results.iter().find(|result| result.name == check)?;
    match (result.exit_code, result.problem.as_deref()) {
        (Some(code), None) if NOT_ITS_OWN.contains(&code) => {
            Some(format!("the check could not run or was killed (exit code {code})"))
        }
        (Some(_), None) => None,
        (_, Some(problem)) if problem.starts_with(UNMATCHED) => None,
        (_, problem) => {
            Some(format!("the check did not end by itself ({})", problem.unwrap_or("no exit code")))
        }
    }
}
