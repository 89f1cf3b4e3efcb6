//! Holds a goal that no engine is running while its work is checked again, merged, restored or removed.
//!
//! The lease is claimed and renewed as a driver does it, so that no process resumes the goal meanwhile. No agent is
//! started.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use towline_agent::AgentSettings;
use towline_check::{CheckError, CheckRun, Judges, Progress};
use towline_core::{Commit, Event, Goal, GoalId, Reuse, Sandbox, Verdict};
use towline_process::Priority;
use towline_sandbox::Signals;
use towline_store::{GoalRecord, Lease};
use towline_workspace::{Candidate, Repository};

use crate::confinement::{AgentNeeds, Homes, give_back};
use crate::driver::Driver;
use crate::engine::{Engine, InHand, LEASE, RESTING, Shared};
use crate::error::EngineError;
use crate::feed::Feed;
use crate::home::Home;
use crate::place::repository_of;
use crate::reads::apart;
use crate::removal::is_alive;
use crate::runs::{self, Trail};

/// A held goal. Release it at the end; a lease that is not released expires.
pub struct LeaseGuard {
    /// The goal as it was when it was claimed.
    pub record: GoalRecord,
    shared: Arc<Shared>,
    lease: Lease,
    /// Before the lease is released, no other task of this process claims the goal.
    _in_hand: InHand,
    driver: Driver,
    /// Whether the claim is in the goal's log.
    is_claim_noted: bool,
    /// Renews the lease as long as this guard lives.
    renewal: JoinSet<()>,
}

/// A commit to check again.
#[derive(Debug, Clone, Copy)]
pub struct Recheck<'a> {
    /// The repository that holds it.
    pub repository: &'a Repository,
    pub candidate: &'a Candidate,
    /// The commit before the work.
    pub base: &'a Commit,
}

impl Engine {
    /// Holds a goal that no engine is running. If its engine was killed after the goal had ended, the goal's work may have no
    /// branch yet, and gets it now.
    pub async fn hold(&self, goal: GoalId) -> Result<LeaseGuard, EngineError> {
        let shared = self.shared();
        // An engine that ends normally releases its lease.
        let left = shared.store.load(goal).await?;
        let (was_left, project) = (left.lease.is_some(), shared.project_of(&left.goal).await?);
        let (in_hand, lease) = shared.claim_in_time(goal, &[]).await?;
        // The holder before may have changed it until a moment ago.
        let record = shared.store.load(goal).await?;
        let (_, inbox) = mpsc::channel(1);
        let driver =
            Driver::new(Arc::clone(&shared), record.clone(), project, lease.clone(), inbox, Feed::new());
        let mut renewal = JoinSet::new();
        renewal.spawn(renew(Arc::clone(&shared), lease.clone(), driver.lease_ends.clone()));
        let mut guard =
            LeaseGuard { record, shared, lease, _in_hand: in_hand, driver, is_claim_noted: false, renewal };
        if was_left && let Err(error) = guard.publish_left_work().await {
            guard.give_back().await;
            return Err(error);
        }
        if let Err(error) = guard.note_moved_place().await {
            guard.give_back().await;
            return Err(error);
        }
        Ok(guard)
    }

    /// Holds a goal that no engine is running, and with it the directory that it works in: no other goal begins there.
    pub async fn hold_place(&self, goal: GoalId) -> Result<LeaseGuard, EngineError> {
        let record = self.shared().store.load(goal).await?;
        let lock = self.shared().lock_directory(&record.goal).await?;
        let guard = self.hold(goal).await?;
        // From here on the lease protects the directory.
        drop(lock);
        Ok(guard)
    }
}

impl LeaseGuard {
    /// Runs the goal's checks on a commit in a clean checkout, as after an attempt. When `stop` completes, or the state
    /// directory is removed, the checks and everything that they started are ended.
    pub async fn check(
        &self,
        what: Recheck<'_>,
        stop: impl Future<Output = ()>,
        on_progress: impl FnMut(Progress),
    ) -> Result<Result<Verdict, CheckError>, EngineError> {
        let trail = Trail::of(&self.record.goal, &self.shared.supervisor);
        if let Err(error) = runs::sweep(&trail).await {
            return Ok(Err(error.into()));
        }
        let mut goal: Goal = self.record.goal.clone();
        goal.workspace.base = what.base.clone();
        // No agent starts, so nothing that is wrong with one matters.
        let resolved = apart(|| self.shared.resolver.resolve(&goal));
        let resolved = resolved.unwrap_or_else(|unresolved| unresolved.known);
        let verify_dir = self.shared.home.verification(goal.id);
        let confined =
            self.shared.check_environment((&goal, &resolved), what.repository, Homes::Checks, &verify_dir);
        let environment = match confined {
            Ok(environment) => environment,
            Err(error) => return Ok(Err(error)),
        };
        let (nothing, recorded) = (BTreeMap::new(), self.record.state.last_verdict());
        // Another base may have fewer tests.
        let is_same_base = *what.base == self.record.goal.workspace.base;
        let base = if is_same_base { self.record.state.baseline.checks() } else { &[] };
        let workspace = self.record.state.workspace.as_ref();
        let run = CheckRun {
            setup_changes: workspace.map_or(&nothing, |workspace| &workspace.setup_changes),
            goal: &goal,
            candidate: what.candidate,
            base,
            repository: what.repository,
            verify_dir: &verify_dir,
            reuse: Reuse::Never,
            log_dir: &self.shared.home.rechecks(goal.id),
            supervisor: &self.shared.supervisor_of(goal.id),
            environment: &environment,
            priority: Priority::Normal,
            judges: Judges::Recorded(recorded.map_or(&[], |verdict| &verdict.checks)),
        };
        let watch = &self.shared.watch;
        let stop_or_gone = async {
            tokio::select! {
                () = stop => {}
                () = watch.gone() => {}
            }
        };
        let verdict = towline_check::run(run, stop_or_gone, on_progress).await;
        watch.check()?;
        Ok(verdict)
    }

    async fn publish_left_work(&mut self) -> Result<(), EngineError> {
        if self.record.state.phase.has_ended() && self.driver.publish_left_work().await? {
            self.is_claim_noted = true;
            self.record = self.shared.store.load(self.record.goal.id).await?;
        }
        Ok(())
    }

    /// Records where the workspace is in a state directory that was moved or copied.
    async fn note_moved_place(&mut self) -> Result<(), EngineError> {
        let GoalRecord { goal, state, .. } = &self.record;
        if self.is_claim_noted || self.shared.home.moved_place(goal, state).is_none() {
            return Ok(());
        }
        self.driver.record_claim(None).await?;
        self.is_claim_noted = true;
        self.record = self.shared.store.load(self.record.goal.id).await?;
        Ok(())
    }

    /// Records what the operator did.
    pub async fn note(&mut self, event: Event) -> Result<(), EngineError> {
        if self.renewal.is_empty() {
            // A lease that is not renewed has no end. The store is waited for as long as for any other.
            self.driver.lease_ends.send_replace(Instant::now() + LEASE);
        }
        if self.is_claim_noted {
            let goal = self.record.goal.id;
            let granted = self.driver.grant(event).await?;
            return granted.map_err(|illegal| EngineError::Illegal { goal, illegal });
        }
        self.driver.record_claim(Some(event)).await?;
        self.is_claim_noted = true;
        Ok(())
    }

    /// Hands the goal's conversation and its place over to another goal. A workspace of Towline's own is moved aside with
    /// everything in it, so that nothing of the work is lost. `instead_of` is the goal that had them before and is gone.
    pub async fn hand_to(&mut self, by: GoalId, instead_of: Option<GoalId>) -> Result<(), EngineError> {
        self.end_leftovers().await?;
        let (goal, state) = (&self.record.goal, &self.record.state);
        let is_own = !goal.workspace.mode.is_in_place();
        let (from, to) =
            (self.shared.home.workspace(goal.place()), self.shared.home.moved_workspace(goal.id));
        let exists = |path: &Path| std::fs::symlink_metadata(path).is_ok();
        let is_there = is_own && state.workspace.is_some() && exists(&from) && !exists(&to);
        let workspace = is_own.then(|| to.display().to_string());
        self.note(Event::Continued { by, workspace, instead_of }).await?;
        if is_there {
            let failed = |source| EngineError::Home { action: "move aside", path: from.clone(), source };
            std::fs::rename(&from, &to).map_err(failed)?;
        }
        Ok(())
    }

    /// What starts a session of an agent of the goal for a person: the sandbox that its last attempt had, where its conversations are.
    /// None if that had none. The error names what to do.
    pub async fn confine_session(
        &self,
        settings: &AgentSettings,
        argv: &[String],
        environment: &BTreeMap<String, String>,
        directory: &Path,
    ) -> Result<Option<Vec<String>>, String> {
        let (goal, attempts) = (&self.record.goal, &self.record.state.attempts);
        let last = attempts.iter().rev().find(|attempt| attempt.started);
        if last.is_none_or(|last| last.sandbox != Some(Sandbox::Bubblewrap)) {
            return Ok(None);
        }
        let resolved = apart(|| self.shared.resolver.resolve(goal));
        let resolved = resolved.map_err(|unresolved| unresolved.reason)?;
        let repository = repository_of(self.home(), goal).map_err(|error| error.to_string())?;
        let directory = directory.display().to_string();
        let needs = AgentNeeds {
            signals: Signals::EndTheSession,
            ..AgentNeeds::of(settings, &directory, argv, environment)
        };
        let confined = self.shared.confiner(goal, &resolved, Some(&repository)).agent(needs).await?;
        Ok(confined.map(|confined| confined.wrapper))
    }

    /// Gives the user what a session in the sandbox has refreshed of what signs the agent in.
    pub async fn end_session(&self) -> Result<(), String> {
        give_back(self.home(), &self.record.goal).await
    }

    /// Holds the goal for as long as this process lives, even while it is suspended and cannot renew a lease.
    pub async fn hold_unrenewed(&mut self) -> Result<(), EngineError> {
        self.renewal.shutdown().await;
        self.lease = self.shared.store.renew(&self.lease, RESTING).await?;
        Ok(())
    }

    /// Ends processes of the goal that have no supervisor, and fails if something of it is supervised.
    pub async fn end_leftovers(&self) -> Result<(), EngineError> {
        let goal = self.record.goal.id;
        if self.is_alive() {
            return Err(EngineError::Busy { goal });
        }
        let trail = Trail::of(&self.record.goal, &self.shared.supervisor);
        runs::sweep(&trail).await.map_err(|source| EngineError::Processes { goal, source })
    }

    /// Whether something that was started for the goal still runs.
    pub fn is_alive(&self) -> bool {
        is_alive(self.home(), self.record.goal.id)
    }

    pub(crate) fn home(&self) -> &Home {
        &self.shared.home
    }

    /// Removes what is stored about the goal.
    pub(crate) async fn forget(self) -> Result<(), EngineError> {
        Ok(self.shared.store.remove(&self.lease).await?)
    }

    /// Releases the goal.
    pub async fn give_back(self) {
        // A lease that cannot be released expires.
        let _ = self.shared.store.release(&self.lease).await;
    }
}

/// Renews the lease until another worker has it.
async fn renew(shared: Arc<Shared>, mut lease: Lease, ends: watch::Sender<Instant>) {
    loop {
        tokio::time::sleep(LEASE / 3).await;
        let asked_at = Instant::now();
        match shared.renew(&lease).await {
            Ok(renewed) => {
                lease = renewed;
                ends.send_replace(asked_at + LEASE);
            }
            Err(towline_store::StoreError::Fenced { .. }) => return,
            // The store may work again the next time.
            Err(_) => {}
        }
    }
}
