//! The revert probe: a check that passed runs once more without the change, and must fail there.
//!
//! What the work changed is taken back, but for its tests. A check that still passes does not depend on the work.

use std::future::Future;
use std::time::Instant;

use towline_core::{Check, CheckResult, Probe, Reuse};
use towline_workspace::Protect;

use crate::CheckError;
use crate::blocking::stoppable;
use crate::finding::Finding;
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

/// Why a check fails that passes without the change.
const PASSES: &str = "it passes without the change: revert probe";
/// Why a check fails whose probe has nothing to take back.
const NOTHING: &str = "there is no change but to tests, so nothing could be taken back: revert probe";

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
            let finding = problem.map_or_else(Finding::met, Finding::not_met);
            on_progress(Progress::Finished { result: finding.into_result(&name, started.elapsed()) });
            let result = results.iter_mut().find(|result| result.name == check.name);
            if let Some((result, problem)) = result.zip(problem) {
                result.met = false;
                result.problem = Some(problem.to_owned());
            }
        }
        Ok(())
    }

    /// What is wrong with a check that should fail without the change.
    async fn passes_reverted<F: Future<Output = ()>>(
        &self,
        check: &Check,
        stop: &mut Stop<F>,
    ) -> Result<Option<&'static str>, CheckError> {
        let (repository, base) = (self.repository.clone(), self.goal.workspace.base.clone());
        let commit = self.candidate.commit.clone();
        let tests = Protect::new(&TESTS.map(str::to_owned))?;
        let reverted =
            stoppable(stop, move |halt| Ok(repository.until(halt).reverted(&base, &commit, &tests)?));
        let Some(reverted) = reverted.await? else { return Ok(Some(NOTHING)) };
        let mut goal = self.goal.clone();
        goal.checks = vec![Check { probe: None, ..check.clone() }];
        let run = CheckRun { goal: &goal, candidate: &reverted, base: &[], reuse: Reuse::Never, ..*self };
        let judged = run.check_out_and_judge(Pass::First, stop, &mut |_| ()).await?;
        Ok(judged.met().then_some(PASSES))
    }
}
