//! One verdict: a clean checkout of the candidate, its setup, and every check in it. Where a goal has warm directories, a
//! checkout with those of the last failed verdict comes first, and only what passes there is judged in a clean one. Hidden checks have
//! a clean checkout of their own.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use towline_core::{
    BaselineCheck, Check, CheckProcess, CheckResult, Checkout, Confirm, Goal, Reuse, Verdict,
};
use towline_process::{Priority, SupervisorProgram};
use towline_workspace::{Candidate, Protect, Repository, Scope, Verification, WorkspaceError};

use crate::blocking::{blocking, stoppable};
use crate::command::{Place, Running};
use crate::environment::Environment;
use crate::integrity::{self, Integrity};
use crate::judge::Bench;
use crate::judges::Judges;
use crate::run_logs::RunLogs;
use crate::setup::{Commands, SETUP};
use crate::stop::Stop;
use crate::validate::validate_all;
use crate::{CheckError, floor, leftovers, sections};

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
    /// What the checks found on the base, where that is known: no check may run fewer tests than there.
    pub base: &'a [BaselineCheck],
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
    pub supervisor: &'a SupervisorProgram,
    /// The environment of the commands.
    pub environment: &'a Environment,
    /// What setup changes before any work, with the id of what is there then.
    pub setup_changes: &'a BTreeMap<String, Option<String>>,
    /// How much of the machine the commands get.
    pub priority: Priority,
    /// Who asks the goal's judges, when all other checks are met.
    pub judges: Judges<'a>,
}

/// What happens on the way to a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A check begins. Each setup command is reported as a check named `setup`, and all together have one result.
    Started {
        name: String,
        /// Where it can be found again; only of one that can be adopted.
        process: Option<CheckProcess>,
    },
    /// A check that an interrupted verdict had begun still runs, and is waited for.
    Adopted { name: String },
    /// A check is over.
    Finished {
        /// How it went.
        result: CheckResult,
    },
    /// All checks passed in a warm checkout, and run again in a clean one.
    Confirming,
}

/// Runs all checks on the candidate, one after the other in one clean checkout, also after one has failed, and
/// returns what was found. Judges are asked last, and only if all other checks are met.
///
/// Hidden checks come after the others, in another clean checkout with setup of its own: what the code under test has left for them in
/// the first one, or in its home, is not there.
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
    validate_all(&run.goal.checks)?;
    let mut stop = Stop::new(stop);
    leftovers::clear(run.log_dir).await?;
    stop.must_not_have_come().await?;
    let judged = run.check_out_and_judge(Pass::First, &mut stop, &mut on_progress).await?;
    run.conclude(judged, &mut stop, &mut on_progress).await
}

/// Which of the checkouts of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    First,
    /// All checks have passed in a warm checkout.
    Confirming,
    /// All checks that agents can read have a result, and the hidden ones follow.
    Hidden,
}

/// What was found in one checkout.
pub(crate) struct Judged {
    pub(crate) checks: Vec<CheckResult>,
    pub(crate) notes: Vec<String>,
    pub(crate) checkout: Checkout,
}

/// A checkout whose checks are being run.
pub(crate) struct Begun {
    pub(crate) pass: Pass,
    pub(crate) checkout: Arc<Verification>,
    pub(crate) in_checkout: InCheckout,
    pub(crate) integrity: Integrity,
    /// The results so far of the goal's checks.
    pub(crate) results: Vec<CheckResult>,
}

/// What is recorded of a checkout with everything that runs in it.
pub(crate) struct InCheckout {
    pub(crate) kind: Checkout,
    /// A digest of the files that were copied into it.
    pub(crate) copies: String,
}

impl Judged {
    /// By one result alone.
    pub(crate) fn by(result: CheckResult, checkout: Checkout) -> Self {
        Self { checks: vec![result], notes: Vec::new(), checkout }
    }

    pub(crate) fn met(&self) -> bool {
        self.checks.iter().all(|check| check.met)
    }
}

impl CheckRun<'_> {
    /// The checks of which agents know no more than their names.
    fn hidden_checks(&self) -> impl Iterator<Item = &Check> {
        self.goal.checks.iter().filter(|check| !check.hidden.is_shown())
    }

    /// The checks that are no judges, with their numbers in the goal.
    pub(crate) fn numbered_checks(&self) -> impl Iterator<Item = (&Check, usize)> {
        self.goal.checks.iter().zip(1..).filter(|(check, _)| !check.kind.is_judge())
    }

    /// Whether a check runs in a checkout of hidden checks alone: hidden ones do, unless there are no others.
    pub(crate) fn follows(&self, check: &Check) -> bool {
        !check.hidden.is_shown() && self.numbered_checks().any(|(other, _)| other.hidden.is_shown())
    }

    /// Whether all checks have a result but for the hidden ones that follow them.
    fn hidden_follow(&self, judged: &Judged) -> bool {
        let has_none = |check: &Check| judged.checks.iter().all(|result| result.name != check.name);
        let mut without_result =
            self.numbered_checks().map(|(check, _)| check).filter(|check| has_none(check)).peekable();
        without_result.peek().is_some() && without_result.all(|check| self.follows(check))
    }

    /// Work that depends on files which git ignores fails in a clean checkout, and nothing else explains it.
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

    /// Confirms what passed in a warm checkout, asks the judges about work that meets all checks, and puts the verdict together.
    pub(crate) async fn conclude<F: Future<Output = ()>>(
        &self,
        mut judged: Judged,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Verdict, CheckError> {
        let confirms = self.goal.workspace.confirm == Confirm::Clean;
        if judged.checkout == Checkout::Warm && judged.met() && confirms {
            on_progress(Progress::Confirming);
            judged = self.check_out_and_judge(Pass::Confirming, stop, on_progress).await?;
        }
        if self.hidden_follow(&judged) {
            let hidden = self.check_out_and_judge(Pass::Hidden, stop, on_progress).await?;
            judged.checks.extend(hidden.checks);
            let is_new = |note: &String| !judged.notes.contains(note);
            let notes: Vec<String> = hidden.notes.into_iter().filter(is_new).collect();
            judged.notes.extend(notes);
        }
        if judged.met() {
            self.probe(&mut judged.checks, stop, on_progress).await?;
        }
        if judged.met() {
            judged.checks.extend(self.ask_judges(stop, on_progress).await?);
            judged.notes.extend(self.recorded_note());
        }
        let Judged { checks, mut notes, checkout } = judged;
        // A check may have failed for what was withheld from it.
        let is_hidden = |name: &str| self.hidden_checks().any(|check| check.name == name);
        let explains = |check: &CheckResult, note: &str| {
            !check.met && !is_hidden(&check.name) && check.evidence.contains(note)
        };
        let is_shown = |note: &String| checks.iter().any(|check| explains(check, note));
        notes.extend(self.environment.note().filter(is_shown));
        self.environment.forget();
        if checks.iter().any(|check| !check.met) {
            notes.extend(self.ignored_note());
        } else {
            notes.extend(floor::notes(self.goal, &checks, self.base));
        }
        Ok(Verdict {
            candidate: self.candidate.commit.clone(),
            head: Some(self.candidate.head.clone()),
            tree: self.candidate.tree.clone(),
            restored: self.candidate.restored.clone(),
            checks,
            notes,
            checkout,
            sandbox: self.environment.sandbox(),
        })
    }

    /// Makes a checkout, runs setup and checks there, and removes it or leaves it for the next verdict.
    pub(crate) async fn check_out_and_judge<F: Future<Output = ()>>(
        &self,
        pass: Pass,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Judged, CheckError> {
        let reuse = self.reuse_in(pass);
        let checkout = match self.check_out(reuse, stop).await {
            Ok(checkout) => Arc::new(checkout),
            // The work has a pointer to a file that is not a part of it.
            Err(CheckError::Workspace(missing @ WorkspaceError::LargeFileMissing { .. })) => {
                let failed = integrity::incomplete(&missing);
                on_progress(Progress::Finished { result: failed.clone() });
                return Ok(Judged::by(failed, kind_of(pass, false)));
            }
            Err(error) => return Err(error),
        };
        let environment = self.environment.clone();
        blocking(move || environment.renew().map_err(CheckError::Private)).await?;
        let judged = self.judge(&checkout, pass, stop, on_progress).await;
        self.leave(checkout, pass, judged.as_ref().ok()).await;
        judged
    }

    /// What one checkout may use of an earlier one.
    fn reuse_in(&self, pass: Pass) -> Reuse {
        match pass {
            Pass::First => self.reuse,
            Pass::Confirming | Pass::Hidden => Reuse::Fresh,
        }
    }

    /// Removes a checkout that is no longer needed, or leaves it for the next verdict.
    pub(crate) async fn leave(&self, checkout: Arc<Verification>, pass: Pass, judged: Option<&Judged>) {
        let is_for_next = self.reuse_in(pass) != Reuse::Never
            && !self.goal.workspace.warm.is_empty()
            // A later check would show the agent what a hidden one left there.
            && self.hidden_checks().next().is_none()
            && judged.is_some_and(|judged| !judged.met());
        // What was found holds whether or not the checkout can be removed or left; the next one removes what is left of it.
        let _ = blocking(move || match is_for_next {
            true => Ok(checkout.keep_warm()?),
            false => Ok(checkout.remove()?),
        })
        .await;
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
            let made = match reuse {
                Reuse::Warm if !warm.is_empty() => {
                    towline_workspace::warm_verification(&repository, &path, &commit, &copy, &warm)?
                }
                _ => towline_workspace::verification(&repository, &path, &commit, &copy)?,
            };
            Ok(made.open_to_builds(&warm, &copy))
        })
        .await
    }

    async fn judge<F: Future<Output = ()>>(
        &self,
        checkout: &Arc<Verification>,
        pass: Pass,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Judged, CheckError> {
        let kind = kind_of(pass, checkout.is_warm());
        let mut integrity = Integrity::of(Arc::clone(checkout), self).await?;
        let in_checkout = InCheckout { kind, copies: integrity.copies() };
        if let Some(failed) = self.set_up(&self.place(checkout), &in_checkout, stop, on_progress).await? {
            return Ok(Judged::by(failed, kind));
        }
        if !self.goal.workspace.setup.is_empty() {
            integrity.look("by setup", Scope::All).await?;
        }
        let sections = match pass {
            Pass::First | Pass::Confirming => sections::changed(self, on_progress).await?,
            // They are in the result of the first checkout.
            Pass::Hidden => None,
        };
        let begun =
            Begun { pass, checkout: Arc::clone(checkout), in_checkout, integrity, results: Vec::new() };
        self.judge_rest(begun, sections, stop, on_progress).await
    }

    /// Runs the checks of this checkout that have no result yet.
    pub(crate) async fn judge_rest<F: Future<Output = ()>>(
        &self,
        begun: Begun,
        sections: Option<CheckResult>,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Judged, CheckError> {
        let Begun { pass, checkout, in_checkout, mut integrity, mut results } = begun;
        let place = self.place(&checkout);
        let bench = Bench { run: self, place: &place };
        let left = self.numbered_checks().skip(results.len());
        for (check, number) in left.filter(|(check, _)| self.follows(check) == (pass == Pass::Hidden)) {
            let logs = RunLogs::new(self.log_dir, log_name(check, number));
            // A finding is known to this process alone, so that nobody else can continue the verdict.
            let is_adoptable = !integrity.has_found();
            let on_start = |running: Option<Running>| {
                let process =
                    running.filter(|_| is_adoptable).and_then(|running| self.process(&running, &in_checkout));
                on_progress(Progress::Started { name: check.name.clone(), process });
            };
            let result = bench.judge(check, logs, stop, on_start).await?;
            results.push(finish(check, result, &mut integrity, on_progress).await?);
        }
        let notes = integrity.notes();
        if let Some(failed) = integrity.into_result() {
            on_progress(Progress::Finished { result: failed.clone() });
            results.push(failed);
        }
        let checks = sections.into_iter().chain(results).collect();
        Ok(Judged { checks, notes, checkout: in_checkout.kind })
    }

    /// Where commands run.
    pub(crate) fn place<'b>(&'b self, checkout: &'b Verification) -> Place<'b> {
        Place {
            directory: checkout.path(),
            supervisor: self.supervisor,
            environment: self.environment,
            priority: self.priority,
        }
    }

    /// A running check, as it can be found again.
    fn process(&self, running: &Running, place: &InCheckout) -> Option<CheckProcess> {
        let Running { run_dir, supervisor } = running;
        Some(CheckProcess {
            directory: run_dir.file_name()?.to_str()?.to_owned(),
            pid: supervisor.pid,
            start_time: supervisor.start_time,
            commit: self.candidate.commit.clone(),
            checkout: place.kind,
            copies: place.copies.clone(),
        })
    }

    /// Runs the setup commands; the result is there when one failed.
    async fn set_up<F: Future<Output = ()>>(
        &self,
        place: &Place<'_>,
        in_checkout: &InCheckout,
        stop: &mut Stop<F>,
        on_progress: &mut impl FnMut(Progress),
    ) -> Result<Option<CheckResult>, CheckError> {
        let commands = self.setup_commands(place);
        if commands.lines.is_empty() {
            return Ok(None);
        }
        let started = Instant::now();
        let on_start = |running: Running| on_progress(self.setting_up(&running, in_checkout));
        let setup = commands.run_after(0, stop, on_start).await?;
        let result = setup.into_result(started.elapsed());
        on_progress(Progress::Finished { result: result.clone() });
        Ok((!result.met).then_some(result))
    }

    pub(crate) fn setup_commands<'b>(&'b self, place: &'b Place<'b>) -> Commands<'b> {
        Commands { lines: &self.goal.workspace.setup, log_dir: self.log_dir, place }
    }

    /// What is reported of each setup command that was started.
    pub(crate) fn setting_up(&self, running: &Running, in_checkout: &InCheckout) -> Progress {
        Progress::Started { name: SETUP.to_owned(), process: self.process(running, in_checkout) }
    }
}

/// The checkout of a verdict, as it is reported.
fn kind_of(pass: Pass, is_warm: bool) -> Checkout {
    match (pass, is_warm) {
        (Pass::Confirming, _) => Checkout::WarmThenClean,
        (Pass::First, true) => Checkout::Warm,
        (Pass::First, false) | (Pass::Hidden, _) => Checkout::Clean,
    }
}

/// Looks whether the check has changed what is judged, and reports its result.
pub(crate) async fn finish(
    check: &Check,
    result: CheckResult,
    integrity: &mut Integrity,
    on_progress: &mut impl FnMut(Progress),
) -> Result<CheckResult, CheckError> {
    integrity.look(&format!("by the check `{}`", check.name), Scope::Protected).await?;
    on_progress(Progress::Finished { result: result.clone() });
    Ok(result)
}

/// What the directories of a check's runs begin with.
pub(crate) fn log_name(check: &Check, number: usize) -> String {
    format!("{number}-{}", path_part(&check.name))
}

/// A name as a part of a path that is safe everywhere; the number before it keeps two of them apart.
fn path_part(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    name.chars().take(NAME_IN_PATH).map(safe).collect()
}
