//! One verdict: a clean checkout of the candidate, its setup, and every check in it. Where a goal has warm directories, a
//! checkout with those of the last failed verdict comes first, and only what passes there is judged in a clean one.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use towline_core::{CheckResult, Checkout, Confirm, Goal, Reuse, Verdict};
use towline_process::{Priority, ShimProgram};
use towline_workspace::{Candidate, Protect, Repository, Verification, WorkspaceError};

use crate::blocking::{blocking, stoppable};
use crate::command::Place;
use crate::environment::Environment;
use crate::integrity::{self, Integrity, Scope};
use crate::judge::Bench;
use crate::run_logs::RunLogs;
use crate::setup::{self, SETUP};
use crate::stop::Stop;
use crate::validate::validate;
use crate::{CheckError, leftovers, sections};

/// How many ignored files a verdict names.
const MOST_IGNORED: usize = 8;

/// The longest part of a check's name in the name of its directory.
const NAME_IN_PATH: usize = 40;

/// What a verdict needs.
#[derive(Debug, Clone, Copy)]
pub struct CheckRun<'a> {
    /// The goal, for its checks, setup commands and files to copy.
    pub goal: &'a Goal,
    /// What is judged.
    pub candidate: &'a Candidate,
    /// Our own repository of the goal, which holds it.
    pub repository: &'a Repository,
    /// Where the checkout goes. It is made anew, and removed at the end, unless it is left for the next verdict.
    pub verify_dir: &'a Path,
    /// What the verdict may use of the one before it in the same directory.
    pub reuse: Reuse,
    /// Where the logs go, a directory for each command: `setup-1-…`, `1-tests-…`. Those of an earlier call are
    /// removed.
    pub log_dir: &'a Path,
    /// The program that supervises each command.
    pub shim: &'a ShimProgram,
    /// The environment of the commands.
    pub environment: &'a Environment,
    /// What setup changes before any work, with the id of what is there then.
    pub setup_changes: &'a BTreeMap<String, Option<String>>,
    /// How much of the machine the commands get.
    pub priority: Priority,
}

/// What happens on the way to a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A check begins. The setup is told of as if it were a check named `setup`.
    Started {
        /// Its name.
        name: String,
    },
    /// A check is over.
    Finished {
        /// How it went.
        result: CheckResult,
    },
    /// All checks passed in a warm checkout, and run again in a clean one.
    Confirming,
}

/// Runs all checks on the candidate, one after the other in one clean checkout, also after one has failed, and
/// returns what was found.
///
/// A setup command that fails here, where only the candidate's files are, may have been broken by the work itself:
/// the verdict then has one failed result named `setup`, and no check is run.
///
/// With [`Reuse::Warm`], the checkout has the warm directories of the last verdict that failed. If all checks pass there, they
/// run once more in a clean checkout, unless the goal wants no confirmation.
///
/// When `stop` comes to its end, the running command's tree is ended and [`CheckError::Stopped`] returned.
/// Whatever is returned, no process is left. A checkout is left only after a failed verdict, and only for the next verdict of a
/// goal with warm directories. When the future itself is dropped, both stay until the next call for the same directories.
pub async fn run(
    run: CheckRun<'_>,
    stop: impl Future<Output = ()>,
    mut on_progress: impl FnMut(Progress),
) -> Result<Verdict, CheckError> {
    run.goal.checks.iter().try_for_each(validate)?;
    let mut stop = Stop::new(stop);
    leftovers::clear(run.log_dir).await?;
    if stop.has_come().await {
        return Err(CheckError::Stopped);
    }
    let mut judged = run.check_out_and_judge(run.reuse, &mut stop, &mut on_progress).await?;
    if judged.checkout == Checkout::Warm && judged.met() && run.goal.workspace.confirm == Confirm::Clean {
        on_progress(Progress::Confirming);
        judged = run.check_out_and_judge(Reuse::Fresh, &mut stop, &mut on_progress).await?;
        judged.checkout = Checkout::WarmThenClean;
    }
    let Judged { checks, mut notes, checkout } = judged;
    notes.extend(run.environment.note_on(&checks));
    if checks.iter().any(|check| !check.met) {
        notes.extend(run.ignored_note());
    }
    Ok(Verdict {
        candidate: run.candidate.commit.clone(),
        head: Some(run.candidate.head.clone()),
        tree: run.candidate.tree.clone(),
        restored: run.candidate.restored.clone(),
        checks,
        notes,
        checkout,
    })
}

/// What was found in one checkout.
struct Judged {
    checks: Vec<CheckResult>,
    notes: Vec<String>,
    checkout: Checkout,
}

impl Judged {
    fn met(&self) -> bool {
        self.checks.iter().all(|check| check.met)
    }
}

impl CheckRun<'_> {
    /// Work that depends on files which git ignores fails in a clean checkout, and nothing else says why.
    fn ignored_note(&self) -> Option<String> {
        let not_copied = |path: &&String| !self.goal.workspace.copy.contains(path);
        let ignored = self.candidate.ignored.iter().filter(not_copied);
        let mut names: Vec<&str> = ignored.take(MOST_IGNORED + 1).map(String::as_str).collect();
        if names.len() > MOST_IGNORED {
            names[MOST_IGNORED] = "…";
        }
        let note =
            || format!("git ignores these files, so they are not part of the work: {}", names.join(", "));
        (!names.is_empty()).then(note)
    }

    /// Makes a checkout, runs setup and checks there, and removes it or leaves it for the next verdict.
    async fn check_out_and_judge<F: Future<Output = ()>>(
        &self,
        reuse: Reuse,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Judged, CheckError> {
        let checkout = match self.check_out(reuse, stop).await {
            Ok(checkout) => Arc::new(checkout),
            // The work has a pointer to a file that is not a part of it.
            Err(CheckError::Workspace(missing @ WorkspaceError::LargeFileMissing { .. })) => {
                let failed = integrity::incomplete(&missing);
                on_progress(Progress::Finished { result: failed.clone() });
                return Ok(Judged { checks: vec![failed], notes: Vec::new(), checkout: Checkout::Clean });
            }
            Err(error) => return Err(error),
        };
        let judged = self.judge(&checkout, stop, on_progress).await;
        let is_for_next = reuse != Reuse::Never
            && !self.goal.workspace.warm.is_empty()
            && judged.as_ref().is_ok_and(|judged| !judged.met());
        // What was found holds whether or not the checkout can be removed or left; the next one removes what is left of it.
        let _ = blocking(move || match is_for_next {
            true => Ok(checkout.keep_warm()?),
            false => Ok(checkout.remove()?),
        })
        .await;
        judged
    }

    /// Makes the checkout. The candidate's protected files must be those of the base, by objects that are proven.
    async fn check_out<F: Future<Output = ()>>(
        &self,
        reuse: Reuse,
        stop: &mut Stop<F>,
    ) -> Result<Verification, CheckError> {
        let (repository, path) = (self.repository.clone(), self.verify_dir.to_owned());
        let (commit, copy) = (self.candidate.commit.clone(), self.goal.workspace.copy.clone());
        let warm = self.goal.workspace.warm.clone();
        let (protect, base) = (Protect::of_goal(self.goal)?, self.goal.workspace.base.clone());
        stoppable(stop, move |halt| {
            let repository = repository.until(halt);
            if let Some(changed) = repository.changes_under(&protect, &base, &commit)?.first() {
                return Err(CheckError::NotProtected { change: changed.to_string() });
            }
            let from = repository.root();
            let made = match reuse {
                Reuse::Warm if !warm.is_empty() => {
                    towline_workspace::warm_verification(&repository, &path, &commit, &copy, from, &warm)?
                }
                _ => towline_workspace::verification(&repository, &path, &commit, &copy, from)?,
            };
            Ok(made.open_to_builds(&warm, &copy))
        })
        .await
    }

    async fn judge<F: Future<Output = ()>>(
        &self,
        checkout: &Arc<Verification>,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Judged, CheckError> {
        let kind = if checkout.is_warm() { Checkout::Warm } else { Checkout::Clean };
        let place = Place::new(checkout.path(), self.shim, self.environment).with_priority(self.priority);
        let mut integrity = self.integrity(checkout).await?;
        if let Some(failed) = self.set_up(&place, stop, on_progress).await? {
            return Ok(Judged { checks: vec![failed], notes: Vec::new(), checkout: kind });
        }
        if !self.goal.workspace.setup.is_empty() {
            integrity.look("by setup", Scope::All).await?;
        }
        let bench = Bench { run: self, checkout: checkout.path(), place: &place };
        let mut results = Vec::with_capacity(self.goal.checks.len());
        results.extend(sections::changed(self, on_progress).await?);
        for (check, number) in self.goal.checks.iter().zip(1..) {
            on_progress(Progress::Started { name: check.name.clone() });
            let logs = RunLogs::new(self.log_dir, format!("{number}-{}", path_part(&check.name)));
            let result = bench.judge(check, logs, stop).await?;
            integrity.look(&format!("by the check `{}`", check.name), Scope::Protected).await?;
            on_progress(Progress::Finished { result: result.clone() });
            results.push(result);
        }
        let notes = integrity.notes();
        if let Some(failed) = integrity.into_result() {
            on_progress(Progress::Finished { result: failed.clone() });
            results.push(failed);
        }
        Ok(Judged { checks: results, notes, checkout: kind })
    }

    async fn integrity(&self, checkout: &Arc<Verification>) -> Result<Integrity, CheckError> {
        // Files to copy are protected, too.
        let protect = Protect::of_candidate(self.goal)?;
        let generated = Protect::new(&self.goal.workspace.generated)?;
        Integrity::of(Arc::clone(checkout), protect, generated, self.setup_changes.clone()).await
    }

    /// Runs the setup commands; the result is there when one failed.
    async fn set_up<F: Future<Output = ()>>(
        &self,
        place: &Place<'_>,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Option<CheckResult>, CheckError> {
        let commands = &self.goal.workspace.setup;
        if commands.is_empty() {
            return Ok(None);
        }
        on_progress(Progress::Started { name: SETUP.to_owned() });
        let started = Instant::now();
        let setup = setup::run_all(commands, self.log_dir, place, stop).await?;
        let result = setup.into_result(started.elapsed());
        on_progress(Progress::Finished { result: result.clone() });
        Ok((!result.met).then_some(result))
    }
}

/// A name as a part of a path that is safe everywhere; the number before it keeps two of them apart.
fn path_part(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    name.chars().take(NAME_IN_PATH).map(safe).collect()
}
