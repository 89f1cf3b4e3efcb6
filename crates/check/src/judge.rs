//! One check of any kind: what to run or to look at, and what its end means.
//!
//! Neighbours: `verdict` goes through all checks of a goal; `command` runs programs; `file`, `history` and `program`
//! know their kinds.

use std::future::Future;
use std::time::{Duration, Instant};

use regex::bytes::Regex;
use towline_core::{Check, CheckKind, CheckResult};
use towline_workspace::Protect;

use crate::blocking::blocking;
use crate::command::{ALTERED, Command, Ended, Place, Read, Running, timed_out};
use crate::environment::Purpose;
use crate::finding::Finding;
use crate::run_logs::RunLogs;
use crate::stop::Stop;
use crate::verdict::CheckRun;
use crate::{CheckError, file, floor, history, pattern, program, validate};

/// How the problem of a check begins that printed something else than it should.
pub(crate) const UNMATCHED: &str = "its output does not match";

/// Where a check is judged.
pub(crate) struct Bench<'a> {
    /// The whole run.
    pub(crate) run: &'a CheckRun<'a>,
    /// The clean checkout, where programs run.
    pub(crate) place: &'a Place<'a>,
}

impl Bench<'_> {
    /// Judges one check. Whatever is run for it has its files in `logs`. Its start is reported with its run, if it has one.
    pub(crate) async fn judge<F: Future<Output = ()>>(
        &self,
        check: &Check,
        logs: RunLogs,
        stop: &mut Stop<F>,
        mut on_start: impl FnMut(Option<Running>),
    ) -> Result<CheckResult, CheckError> {
        let started = Instant::now();
        let finding = match &check.kind {
            CheckKind::Command { run, .. } => {
                let command = Command::shell(Purpose::Check(&check.name), run, logs, check.timeout);
                let ended = self.place.run(command, stop, |running| on_start(Some(running))).await?;
                return self.judge_end(check, &ended, started.elapsed()).await;
            }
            CheckKind::Program { argv } => {
                let input = program::question(self.run, &check.name, self.place.directory);
                let (purpose, argv) = (Purpose::Check(&check.name), argv.clone());
                let command = Command { purpose, argv, input, logs, timeout: check.timeout };
                let ended = self.place.run(command, stop, |running| on_start(Some(running))).await?;
                return self.judge_end(check, &ended, started.elapsed()).await;
            }
            CheckKind::File { path, matches } => {
                on_start(None);
                let pattern = matches.as_deref().map(|text| validate::file_pattern(check, text));
                let (checkout, path, pattern) =
                    (self.place.directory.to_owned(), path.clone(), pattern.transpose()?);
                look(check.timeout, stop, move || Ok(file::look(&checkout, &path, pattern.as_ref()))).await?
            }
            CheckKind::Untouched { paths } => {
                on_start(None);
                let (paths, repository) = (Protect::new(paths)?, self.run.repository.clone());
                let (base, candidate) = (self.run.goal.workspace.base.clone(), self.run.candidate.clone());
                look(check.timeout, stop, move || {
                    Ok(history::untouched(&repository, &paths, &base, &candidate)?)
                })
                .await?
            }
            CheckKind::Committed => {
                on_start(None);
                let repository = self.run.repository.clone();
                let (place, candidate) = (self.run.goal.workspace.clone(), self.run.candidate.clone());
                look(check.timeout, stop, move || Ok(history::committed(&repository, &place, &candidate)?))
                    .await?
            }
            CheckKind::Judge { .. } => {
                let problem = "is a judge, which is asked when all other checks are met";
                return Err(CheckError::BadCheck { check: check.name.clone(), problem });
            }
        };
        Ok(finding.into_result(&check.name, started.elapsed()))
    }

    /// What the end of a check's program means.
    pub(crate) async fn judge_end(
        &self,
        check: &Check,
        ended: &Ended,
        took: Duration,
    ) -> Result<CheckResult, CheckError> {
        let finding = match &check.kind {
            CheckKind::Program { .. } => program::finding(ended).await?,
            CheckKind::Command { stdout: Some(text), .. } => {
                finding_of_command(ended, Some(validate::stdout_pattern(check, text)?)).await?
            }
            _ => finding_of_command(ended, None).await?,
        };
        let mut result = finding.into_result(&check.name, took);
        result.output = ended.output();
        if floor::holds_for(check) {
            result.tests = ended.tests().await?;
            result = floor::hold(result, self.run.base);
        }
        if !result.met {
            result.evidence = self.run.environment.explain(result.evidence);
        }
        Ok(result)
    }
}

/// Looks at something without running a program of the user's. What is given up goes on to its end by itself; it
/// only reads.
async fn look<F: Future<Output = ()>>(
    timeout: Duration,
    stop: &mut Stop<F>,
    work: impl FnOnce() -> Result<Finding, CheckError> + Send + 'static,
) -> Result<Finding, CheckError> {
    stop.must_not_have_come().await?;
    tokio::select! {
        found = blocking(work) => found,
        () = stop.wait() => Err(CheckError::Stopped),
        () = tokio::time::sleep(timeout) => Ok(Finding::not_met(timed_out(timeout))),
    }
}

async fn finding_of_command(ended: &Ended, pattern: Option<Regex>) -> Result<Finding, CheckError> {
    let finding = match (ended.problem(), pattern) {
        (Some(problem), _) => Finding::not_met(problem),
        (None, _) if !ended.succeeded() => Finding::not_met_by_exit_code(),
        (None, None) => Finding::met(),
        (None, Some(pattern)) => {
            let problem = format!("{UNMATCHED} `{pattern}`");
            match ended.read_stdout(move |stdout| pattern::found_in_stdout(stdout, &pattern)).await? {
                Read::Genuine(true) => Finding::met(),
                Read::Genuine(false) => Finding::not_met(problem),
                Read::Altered => Finding::not_met(ALTERED.to_owned()),
            }
        }
    };
    Ok(finding.with_exit_code(ended.exit_code()).with_evidence(ended.evidence().await?))
}
