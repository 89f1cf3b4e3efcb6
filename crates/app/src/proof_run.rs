//! Runs the checks of a proof again, on its commit in a clean checkout.
//!
//! The goal of the proof need not be known here. So the checks run for a goal of their own, in a state directory inside of the user's
//! that exists as long as they run: no engine resumes that goal, and no list shows it.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use towline_core::{
    BaselineMode, Budget, Check, Commit, Envelope, Event, Goal, GoalId, GoalState, Origin, Source, Verdict,
    WorkspaceBinding, WorkspaceMode, WorkspaceSpec,
};
use towline_engine::{Home, LeaseGuard, Recheck, repository_of, supervisor_arguments};
use towline_proof::{CheckFacts, Facts, Statement};
use towline_store::{SqliteStore, Store};
use towline_workspace::Repository;

use crate::context::{Context, State};
use crate::draft::{CHANNEL, in_utf8, new_goal_id};
use crate::error::Error;
use crate::recheck::{RecheckStep, recheck};

/// What a run found.
pub(crate) struct RunResult {
    pub(crate) holds: bool,
    pub(crate) text: String,
    /// None if nothing was run.
    pub(crate) verdict: Option<Verdict>,
}

impl RunResult {
    fn nothing_run(why: impl Into<String>) -> Self {
        Self { holds: false, text: format!("not run: {}", why.into()), verdict: None }
    }
}

/// Runs them; none when `stop` came to its end first. The statement's signature was accepted before.
pub(crate) async fn run(
    context: &Context,
    repository: &Repository,
    statement: &Statement,
    now: Timestamp,
    stop: impl Future<Output = ()>,
    show: impl FnMut(RecheckStep),
) -> Result<Option<RunResult>, Error> {
    let facts = &statement.predicate.towline;
    let Some(setup) = &facts.setup.commands else {
        return Ok(Some(RunResult::nothing_run(
            "the setup commands are not in the proof, because of a secret in them",
        )));
    };
    let (checks, left_out) = match checks_of(facts) {
        Ok(checks) => checks,
        Err(why) => return Ok(Some(RunResult::nothing_run(why))),
    };
    if checks.is_empty() {
        return Ok(Some(RunResult::nothing_run("the proof has the definition of no check")));
    }
    // They cost money, and there is no agent that this goal could ask.
    let (judges, checks): (Vec<Check>, Vec<Check>) =
        checks.into_iter().partition(|check| check.kind.is_judge());
    let goal = goal_of(context, repository, facts, (checks, setup.clone()), now)?;
    let scratch = Scratch::make(&context.home()?, goal.id)?;
    let candidate = Commit::new(statement.candidate().unwrap_or_default());
    let verdict = run_in(context, &scratch.home, goal, (facts, &candidate), stop, show).await;
    scratch.remove();
    let Some(verdict) = verdict? else { return Ok(None) };
    let failed: Vec<String> = verdict.failed().map(|check| format!("`{}`", check.name)).collect();
    let mut text = match failed.is_empty() {
        true => "passed again, in a clean checkout".to_owned(),
        false => format!("these fail now: {}", failed.join(", ")),
    };
    if !left_out.is_empty() {
        text += &format!("; not run, because the proof does not have them: {}", left_out.join(", "));
    }
    if !judges.is_empty() {
        let names: Vec<String> = judges.iter().map(|judge| format!("`{}`", judge.name)).collect();
        text += &format!("; judges are not asked again: {}", names.join(", "));
    }
    Ok(Some(RunResult { holds: verdict.met(), text, verdict: Some(verdict) }))
}

/// The checks that can run, and the names of the others.
fn checks_of(facts: &Facts) -> Result<(Vec<Check>, Vec<String>), String> {
    let (mut checks, mut left_out) = (Vec::new(), Vec::new());
    for CheckFacts { name, definition, .. } in &facts.checks {
        let Some(definition) = definition else {
            left_out.push(format!("`{name}`"));
            continue;
        };
        let read = serde_json::from_value::<Check>(definition.clone()).map_err(|error| error.to_string());
        let valid = read.and_then(|check| {
            towline_check::validate(&check).map(|()| check).map_err(|error| error.to_string())
        });
        checks
            .push(valid.map_err(|error| format!("check `{name}` is none that this version knows: {error}"))?);
    }
    Ok((checks, left_out))
}

/// The goal that the checks run for. A proof does not decide which ignored files are copied and which secrets are passed: both are as
/// configured here.
fn goal_of(
    context: &Context,
    repository: &Repository,
    facts: &Facts,
    (checks, setup): (Vec<Check>, Vec<String>),
    now: Timestamp,
) -> Result<Goal, Error> {
    let here = context.configuration(&context.directory)?.config.workspace;
    let base = Commit::new(&facts.base);
    let git = repository.git_settings(&base)?;
    repository.refuse_filters_inside(&base, &git)?;
    Ok(Goal {
        id: new_goal_id(),
        title: facts.goal.title.clone(),
        prompt: String::new(),
        checks,
        budget: Budget::NONE,
        agents: Vec::new(),
        model: None,
        agent_settings: Default::default(),
        protect: facts.protected.paths.clone(),
        unprotect: facts.protected.lifted.clone(),
        workspace: WorkspaceSpec {
            repository: in_utf8(repository.root())?,
            mode: WorkspaceMode::Clone,
            base,
            setup,
            copy: here.copy.unwrap_or_default(),
            generated: facts.setup.generated.clone(),
            pass_env: here.pass_env.unwrap_or_default(),
            warm: facts.setup.warm.clone(),
            confirm: Default::default(),
            git: Some(git),
        },
        briefing: false,
        baseline: BaselineMode::Off,
        sessions: Default::default(),
        accounts: Default::default(),
        continues: None,
        scheduling: Default::default(),
        labels: Vec::new(),
        metadata: Default::default(),
        origin: Origin { channel: CHANNEL.to_owned(), thread: None, by: None },
        created_at: now,
    })
}

async fn run_in(
    context: &Context,
    home: &Home,
    goal: Goal,
    (facts, candidate): (&Facts, &Commit),
    stop: impl Future<Output = ()>,
    show: impl FnMut(RecheckStep),
) -> Result<Option<Verdict>, Error> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&home.database())?);
    let id = goal.id;
    let binding = WorkspaceBinding {
        path: home.root().display().to_string(),
        branch: None,
        base: goal.workspace.base.clone(),
        setup_changes: facts.setup.changes.clone(),
        base_tree: None,
    };
    let state = GoalState { workspace: Some(binding), ..GoalState::new(&goal) };
    let created = Envelope::new(id, goal.created_at, Source::Operator, Event::Created);
    store.create(&goal, &state, created).await?;
    let engine = context.engine_apart(State { home: home.clone(), store })?;
    let verdict = match engine.hold(id).await {
        Ok(guard) => {
            let verdict = run_held(context, home, &guard, (facts, candidate), stop, show).await;
            guard.give_back().await;
            verdict
        }
        Err(error) => Err(error.into()),
    };
    engine.close().await;
    verdict
}

async fn run_held(
    context: &Context,
    home: &Home,
    guard: &LeaseGuard,
    (facts, candidate): (&Facts, &Commit),
    stop: impl Future<Output = ()>,
    mut show: impl FnMut(RecheckStep),
) -> Result<Option<Verdict>, Error> {
    let goal = &guard.record.goal;
    let own = repository_of(home, goal)?;
    let head = facts.head.as_ref().map(Commit::new);
    let again = own.candidate_again(candidate, head.as_ref(), &facts.restored)?;
    // People know the goal of the proof.
    let known = facts.goal.id.parse().unwrap_or(goal.id);
    show(RecheckStep::Checking { goal: known, commit: candidate.clone() });
    let what = Recheck { repository: &own, candidate: &again, base: &goal.workspace.base };
    recheck(context, guard, what, stop, show).await
}

/// A state directory inside of the user's, as long as checks run.
struct Scratch {
    outer: Home,
    home: Home,
    /// Held as long as it is used.
    _lock: File,
}

impl Scratch {
    fn make(outer: &Home, goal: GoalId) -> Result<Self, Error> {
        let make = || -> std::io::Result<Self> {
            outer.make(&outer.proofs())?;
            // One whose lock is not held yet must not be removed as a leftover.
            let all = towline_files::append(&outer.proofs().join("lock"))?;
            all.lock()?;
            remove_left(outer);
            let home = outer.inside(&goal.to_string())?;
            let lock = towline_files::append(&home.root().join("lock"))?;
            lock.lock()?;
            Ok(Self { outer: outer.clone(), home, _lock: lock })
        };
        make().map_err(|error| {
            Error::internal(format!("cannot make a directory in {}: {error}", outer.proofs().display()))
        })
    }

    fn remove(self) {
        // The next one removes what cannot be removed now.
        let _ = self.outer.remove(self.home.root());
    }
}

/// Removes what runs left that were killed, unless something still runs there.
fn remove_left(outer: &Home) {
    for entry in fs::read_dir(outer.proofs()).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_left =
            entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_locked(&path) && !is_alive(&path);
        if is_left {
            let _ = outer.remove(&path);
        }
    }
}

fn is_locked(directory: &Path) -> bool {
    towline_files::open(&directory.join("lock")).is_ok_and(|lock| lock.try_lock().is_err())
}

fn is_alive(directory: &Path) -> bool {
    let supervisors =
        supervisor_arguments(directory).and_then(|arguments| towline_process::supervisors(&arguments));
    supervisors.map_or(true, |supervisors| !supervisors.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_removed_by_the_next_and_what_is_used_stays() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::create(dir.path().join("state")).unwrap();
        let used = Scratch::make(&home, new_goal_id()).unwrap();
        let left = home.inside("left").unwrap();
        std::fs::write(left.root().join("lock"), "").unwrap();
        let next = Scratch::make(&home, new_goal_id()).unwrap();
        assert!(used.home.root().exists() && next.home.root().exists() && !left.root().exists());
        used.remove();
        next.remove();
        let names = fs::read_dir(home.proofs()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["lock"]);
    }
}
