//! Starts the goals of a pool: looks after what other engines left, wakes what is due, and asks the core who is next.
//!
//! It looks when something has changed or a time has come, and does nothing in between. Each look reads the store, so a signal that
//! comes twice, or is due to several changes, does no harm.

mod refusals;
mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use towline_core::{
    AccountStatus, Dispatch, Event, GoalId, HoldReason, PassedOver, PauseReason, Phase, Plan, PoolGoal,
    Prerequisite, Purse, schedule,
};
use towline_store::{GoalRecord, GoalSummary, Listed, Listing, Order, PoolView, StoreError, list_all};

use self::refusals::Refusals;
use self::search::Search;
use crate::clock::Alarm;
use crate::control::is_driven;
use crate::driver::{Grant, Order as DriverOrder};
use crate::engine::{Shared, TRACES};
use crate::error::EngineError;
use crate::neighbours::Neighbours;
use crate::place::place_must_be_free;
use crate::rules::{Limits, PoolRules};
use crate::situation::situation;

/// The pause after a look, times what the look took: while changes never end, a fifth of a core is spent on looking. A change that
/// comes after the pause is looked at without delay.
const PAUSE_FACTOR: u32 = 4;
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// When to look again after the store has failed; it doubles with each failure.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// When to look again for what nobody reports: free disk space, credentials, a directory that is free again.
const UNREPORTED_PAUSE: Duration = Duration::from_secs(60);
/// How many goals are listed at once.
const PAGE: usize = 64;

/// The phases in which something may run for a goal.
const WORKING: [&str; 5] = ["preparing", "running", "stopping", "checking", "blocked"];

/// Decides which goals of a pool start.
pub(crate) struct Scheduler {
    shared: Arc<Shared>,
    rules: Arc<dyn PoolRules>,
    refusals: Refusals,
    search: Search,
    /// What is still to be taken over.
    left: Takeover,
    /// How often in a row the store could not be read.
    failures: u32,
    /// What was wrong with the configuration at the last look.
    problem: Option<String>,
}

impl Scheduler {
    pub(crate) fn new(shared: Arc<Shared>, rules: Arc<dyn PoolRules>) -> Self {
        let (refusals, search, left) = (Refusals::default(), Search::default(), Takeover::ByEngine);
        Self { shared, rules, refusals, search, left, failures: 0, problem: None }
    }

    /// Looks after the pool until the engine is closed or the state directory is gone.
    pub(crate) async fn run(mut self, mut alarm: Box<dyn Alarm>) {
        let (engines, worker) = (self.shared.home.engines(), self.shared.worker.clone());
        let mut neighbours = Neighbours::new(engines, worker, self.shared.watch.removals());
        let mut moved = self.shared.signals.moved();
        let mut answered = self.rules.reads().answered();
        while !self.shared.signals.is_closing() && self.shared.watch.check().is_ok() {
            // Also if it came at the same time as the alarm.
            if moved.has_changed().unwrap_or(false) {
                self.search.note_change();
            }
            moved.borrow_and_update();
            let begun = Instant::now();
            let next = match self.look().await {
                Ok(next) => {
                    self.failures = 0;
                    next
                }
                Err(error) => Some(self.after_failure(&error)),
            };
            let pause = begun.elapsed().saturating_mul(PAUSE_FACTOR);
            tokio::time::sleep(pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)).await;
            tokio::select! {
                Ok(()) = moved.changed() => self.search.note_change(),
                Ok(()) = answered.changed() => self.search.note_change(),
                () = alarm.ring(next) => {}
                () = neighbours.one_ended() => self.left = Takeover::ByEngine,
            }
        }
    }

    fn after_failure(&mut self, error: &EngineError) -> Timestamp {
        // Each failure would fill the log.
        if self.failures == 0 {
            tracing::warn!(target: TRACES, %error, "the pool cannot be looked at");
        }
        let pause = STORE_PAUSE * 2_u32.pow(self.failures.min(6));
        self.failures += 1;
        self.later(pause.min(UNREPORTED_PAUSE))
    }

    /// Looks once. Returns when to look again without being asked.
    async fn look(&mut self) -> Result<Option<Timestamp>, EngineError> {
        if self.shared.signals.is_draining() {
            // What runs still spends, and nothing starts any more.
            self.enforce_budgets().await?;
            return Ok(None);
        }
        self.count_failures();
        if self.left != Takeover::Nothing {
            let is_all = self.take_over().await?;
            // What failed a moment ago, or is in the hands of another task, is tried again at a later look.
            if is_all && self.refusals.held(self.shared.clock.now()).next().is_none() {
                self.left = Takeover::Nothing;
            }
        }
        self.wake_due().await?;
        let another = self.start_next().await?;
        let wake = self.next_wake().await?;
        let again = self.refusals.next(self.shared.clock.now());
        Ok(another.into_iter().chain(wake).chain(again).min())
    }

    fn later(&self, by: Duration) -> Timestamp {
        let now = self.shared.clock.now();
        now.checked_add(by).unwrap_or(now)
    }

    /// Takes note of drivers that have ended. One that failed has left its goal, and what it left may still run.
    fn count_failures(&mut self) {
        for (goal, error) in self.shared.signals.take_ended() {
            match error {
                Some(error) => {
                    self.refusals.add(goal, error, self.shared.clock.now());
                    self.left = self.left.max(Takeover::ByDriver);
                }
                None => self.refusals.forget(goal),
            }
        }
    }

    /// Drives goals that an engine was driving which is gone: what lives is observed again before anything new starts. What the
    /// shutdown of an engine has paused is resumed. Returns whether nothing is left.
    async fn take_over(&mut self) -> Result<bool, EngineError> {
        let mut is_all = true;
        let mut phases = WORKING.to_vec();
        phases.extend((self.left == Takeover::ByEngine).then_some("paused"));
        for goal in self.all_left(Listing { phases, ..Listing::all() }).await? {
            let request = match &goal.phase {
                Phase::Blocked { attempt: None, .. } => continue,
                Phase::Paused { reason: PauseReason::Shutdown } => Some(Event::ResumeRequested),
                Phase::Paused { .. } => continue,
                _ => None,
            };
            is_all &= matches!(self.drive(goal.id, request, None).await?, Driving::Begun);
        }
        for goal in self.all_left(Listing { held: true, settled: Some(false), ..Listing::all() }).await? {
            self.release_left(&goal).await?;
        }
        Ok(is_all)
    }

    /// Releases a waiting goal whose engine is dead: goals with a lease are not woken.
    async fn release_left(&self, goal: &GoalSummary) -> Result<(), EngineError> {
        let waits = matches!(
            goal.phase,
            Phase::Queued
                | Phase::Sleeping { .. }
                | Phase::Limited { .. }
                | Phase::Blocked { attempt: None, .. }
        );
        let in_hand = if waits { self.shared.take_in_hand(goal.id) } else { None };
        let Some(_in_hand) = in_hand else { return Ok(()) };
        match self.shared.claim_unread(goal.id).await {
            Ok(lease) => Ok(self.shared.store.release(&lease).await?),
            Err(EngineError::Store(error)) if error.is_passing() => Err(error.into()),
            // Another process has it by now.
            Err(_) => Ok(()),
        }
    }

    /// The goals of a listing that no living engine has.
    async fn all_left(&self, listing: Listing) -> Result<Vec<GoalSummary>, StoreError> {
        let listing = Listing { order: Order::OldestFirst, limit: PAGE, ..listing };
        let listed = list_all(self.shared.store.as_ref(), listing).await?;
        let readable = listed.into_iter().filter_map(Listed::readable);
        Ok(readable.filter(|goal| self.is_left(goal)).collect())
    }

    /// Whether no living engine has the goal, and it did not fail a moment ago.
    fn is_left(&self, goal: &GoalSummary) -> bool {
        let lease = goal.lease.as_ref().filter(|lease| lease.worker != self.shared.worker);
        let is_free = self.shared.driven(goal.id).is_none() && !is_driven(&self.shared.home, lease);
        is_free && !self.refusals.holds(goal.id, self.shared.clock.now())
    }

    /// Wakes goals whose time has come.
    async fn wake_due(&mut self) -> Result<(), EngineError> {
        for goal in self.all_left(Listing::due(self.shared.clock.now(), PAGE)).await? {
            self.drive(goal.id, None, None).await?;
        }
        Ok(())
    }

    /// When the next goal is due. What is due and could not be woken must not hide it.
    async fn next_wake(&self) -> Result<Option<Timestamp>, EngineError> {
        let Some(first) = self.shared.store.next_wake().await? else { return Ok(None) };
        if first > self.shared.clock.now() {
            return Ok(Some(first));
        }
        let mut next = self.later(UNREPORTED_PAUSE);
        for goal in self.all_left(Listing::due(next, PAGE)).await? {
            let record = self.shared.store.load(goal.id).await;
            let wakes_at = record.ok().and_then(|record| record.state.wakes_at(goal.id));
            next = next.min(wakes_at.unwrap_or(next).max(self.later(STORE_PAUSE)));
        }
        Ok(Some(next))
    }

    /// Starts those who are next. Returns when another one can start.
    async fn start_next(&mut self) -> Result<Option<Timestamp>, EngineError> {
        let limits = self.rules.limits(self.shared.clock.now());
        self.report_problem();
        let mut places_taken = BTreeMap::new();
        let mut passed_over: BTreeSet<GoalId> = self.refusals.held(self.shared.clock.now()).collect();
        let mut look_by = None;
        while !self.shared.signals.is_draining() {
            // Those that are passed over must not hide the ones behind them.
            let most = limits.caps.pool.max(1) + passed_over.len();
            let mut view = self.shared.store.pool(most).await?;
            let mut plan = self.plan(&mut view, &passed_over, &limits).await?;
            let mut page = None;
            if let Some(rest) = view.rest.filter(|_| has_room(&view, &limits) && plan.leaves_room()) {
                let further = self.shared.store.ready(self.search.begins(rest), search::PAGE).await?;
                let known: BTreeSet<GoalId> = view.queued.iter().map(|goal| goal.goal).collect();
                let new = further.iter().filter(|goal| !known.contains(&goal.goal));
                view.queued.extend(new.cloned());
                plan = self.plan(&mut view, &passed_over, &limits).await?;
                page = Some(further).filter(|_| plan.dispatched.is_empty());
            }
            let now = self.shared.clock.now();
            let Started { refused, held } = self.start_all(&plan.dispatched).await?;
            look_by = earlier(look_by, (!held.is_empty()).then(|| self.later(UNREPORTED_PAUSE)));
            places_taken.extend(held);
            if refused.is_empty() {
                self.shared.held.set(places_taken.into_iter().chain(self.refusals.reasons(now)).collect());
                self.watch_files(&view);
                let again = earlier(look_by, self.look_again(&plan));
                return Ok(match page {
                    Some(page) => self.search.pass(&page, again, now),
                    None => again,
                });
            }
            // Their places go to others in this look.
            passed_over.extend(refused);
        }
        Ok(None)
    }

    /// Decides which of these goals start, apart from those that are passed over or driven already.
    async fn plan(
        &self,
        view: &mut PoolView,
        passed_over: &BTreeSet<GoalId>,
        limits: &Limits,
    ) -> Result<Plan, EngineError> {
        view.queued
            .retain(|goal| !passed_over.contains(&goal.goal) && self.shared.driven(goal.goal).is_none());
        let store = self.shared.store.as_ref();
        let situation = situation(store, &self.shared.home, &self.rules, limits, view).await?;
        self.stop_overspending(&situation.purses, &view.working);
        Ok(schedule(&view.queued, &view.working, &situation, self.shared.clock.now()))
    }

    /// Has the files watched that decide about these goals.
    fn watch_files(&self, view: &PoolView) {
        let goals = view.queued.iter().chain(&view.working);
        let projects: BTreeSet<String> = goals.map(|goal| goal.lane.project.clone()).collect();
        self.shared.projects.send_if_modified(|known| std::mem::replace(known, projects.clone()) != projects);
    }

    /// Reports once that the configuration cannot be used, and that it can be used again.
    fn report_problem(&mut self) {
        let problem = self.rules.problem();
        if problem != self.problem {
            match &problem {
                Some(problem) => {
                    tracing::warn!(target: TRACES, %problem, "the configuration that was read last stays in force");
                }
                None => tracing::info!(target: TRACES, "the configuration can be used again"),
            }
            self.problem = problem;
        }
    }

    /// Stops agents of this engine where a budget that goals share is spent.
    async fn enforce_budgets(&self) -> Result<(), EngineError> {
        let limits = self.rules.limits(self.shared.clock.now());
        let mut view = self.shared.store.pool(1).await?;
        view.queued.clear();
        let store = self.shared.store.as_ref();
        let situation = situation(store, &self.shared.home, &self.rules, &limits, &view).await?;
        self.stop_overspending(&situation.purses, &view.working);
        Ok(())
    }

    /// Stops agents of this engine that spend money which is spent.
    fn stop_overspending(&self, purses: &[Purse], working: &[PoolGoal]) {
        for purse in purses.iter().filter(|purse| purse.spent >= purse.limit) {
            for goal in working.iter().filter(|goal| purse.scope.covers(&goal.lane)) {
                if let Some(driven) = self.shared.driven(goal.goal) {
                    // A driver that is gone spends nothing, and one with so many orders gets this one at the next look.
                    let _ = driven.orders.inbox.try_send(Box::new(DriverOrder::StopSpending(purse.clone())));
                }
            }
        }
    }

    /// When a goal that is held can start. What nobody reports is looked at from time to time.
    fn look_again(&self, plan: &Plan) -> Option<Timestamp> {
        let is_unreported =
            |reason: &HoldReason| matches!(reason, HoldReason::Disk { .. } | HoldReason::Credentials { .. });
        let unreported = plan.held.iter().any(|(_, reason)| is_unreported(reason));
        earlier(plan.look_again, unreported.then(|| self.later(UNREPORTED_PAUSE)))
    }

    /// Starts these goals.
    async fn start_all(&mut self, dispatched: &[Dispatch]) -> Result<Started, EngineError> {
        let mut started = Started::default();
        for dispatch in dispatched {
            if self.shared.signals.is_draining() {
                break;
            }
            match self.drive(dispatch.goal, None, Some(dispatch)).await? {
                Driving::Begun => {}
                Driving::Refused => started.refused.push(dispatch.goal),
                Driving::Held(reason) => {
                    started.refused.push(dispatch.goal);
                    started.held.push((dispatch.goal, reason));
                }
            }
        }
        Ok(started)
    }

    /// The permission to start, with what the goal has to know before.
    async fn grant_for(&self, record: &GoalRecord, dispatch: &Dispatch) -> Result<Grant, EngineError> {
        let slot = self.shared.slots.take();
        let mut grant =
            Grant { events: Vec::new(), slot, agent: Some(dispatch.agent.clone()), problem: None };
        let scheduling = &record.goal.scheduling;
        let inherits = scheduling.template.is_some() || scheduling.base_is_prerequisite;
        if inherits && record.state.preparations == 0 && record.state.inherited.is_none() {
            let mut prerequisites = Vec::new();
            for Prerequisite { goal, .. } in &scheduling.after {
                prerequisites.push(self.shared.store.load(*goal).await?);
            }
            match self.rules.inherited(&record.goal, &prerequisites) {
                Ok(inherited) => grant.events.push(Event::PrerequisitesMet { inherited }),
                Err(problem) => grant.problem = Some(problem),
            }
        }
        grant.events.extend(dispatch.passed_over.iter().map(|passed_over| self.unavailable(passed_over)));
        Ok(grant)
    }

    /// The event that records why another agent of the goal starts.
    fn unavailable(&self, PassedOver { agent, account, reason }: &PassedOver) -> Event {
        let Some(account) = account else {
            let why = reason.text(|time| time.to_string());
            return Event::AgentUnavailable { agent: agent.clone(), why };
        };
        let (until, guessed) = match account.status {
            AccountStatus::Limited { until, guessed } => {
                (until.or_else(|| Some(self.later(UNREPORTED_PAUSE))), guessed)
            }
            _ => (None, false),
        };
        Event::AccountUnavailable { account: account.name.clone(), until, guessed }
    }

    /// Drives a goal, where that is possible: another process may have it, or have changed it a moment ago.
    async fn drive(
        &mut self,
        goal: GoalId,
        request: Option<Event>,
        dispatch: Option<&Dispatch>,
    ) -> Result<Driving, EngineError> {
        let error = match self.try_to_drive(goal, request, dispatch).await {
            Ok(()) => return Ok(Driving::Begun),
            Err(error) => error,
        };
        tracing::debug!(target: TRACES, goal = goal.short(), %error, "is not driven");
        match &error {
            EngineError::Store(passing) if passing.is_passing() => return Err(error),
            EngineError::StateGone { .. } | EngineError::TakenOver => return Err(error),
            EngineError::PlaceTaken { folder, goal } => {
                let reason = HoldReason::Directory { goal: *goal, folder: folder.clone() };
                return Ok(Driving::Held(reason));
            }
            EngineError::NoAnswer { .. } => {
                return Ok(Driving::Held(HoldReason::Configuration { error: error.to_string() }));
            }
            // Whoever has it or has changed it reports that.
            EngineError::Busy { .. } | EngineError::Entered { .. } | EngineError::Illegal { .. } => {}
            EngineError::Store(StoreError::Conflict { .. } | StoreError::Fenced { .. }) => {}
            _ => self.refusals.add(goal, error.to_string(), self.shared.clock.now()),
        }
        Ok(Driving::Refused)
    }

    async fn try_to_drive(
        &self,
        goal: GoalId,
        request: Option<Event>,
        dispatch: Option<&Dispatch>,
    ) -> Result<(), EngineError> {
        let record = self.shared.store.load(goal).await?;
        let lease = record.lease.as_ref().filter(|lease| lease.worker != self.shared.worker);
        let has_moved = dispatch.is_some() && record.state.phase != Phase::Queued;
        // An engine that lives keeps its goals, even if it is suspended and does not renew their leases.
        if has_moved || is_driven(&self.shared.home, lease) {
            return Err(EngineError::Busy { goal });
        }
        let grant = match dispatch {
            Some(dispatch) => Some(self.grant_for(&record, dispatch).await?),
            None => None,
        };
        let lock = self.shared.lock_directory(&record.goal).await?;
        if lock.is_some() && dispatch.is_some() && record.state.attempts.is_empty() {
            place_must_be_free(self.shared.store.as_ref(), &record.goal).await?;
        }
        self.shared.drive(record, request.into_iter().collect(), grant, lock).await?;
        Ok(())
    }
}

/// Whether a slot of the pool is free.
fn has_room(view: &PoolView, limits: &Limits) -> bool {
    view.working.len() < limits.caps.pool
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

/// What earlier drivers may have left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Takeover {
    Nothing,
    /// A driver of this engine has failed.
    ByDriver,
    /// This engine is new, or another one has ended.
    ByEngine,
}

/// Whether a goal is driven.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Driving {
    Begun,
    Refused,
    /// It waits for something that the plan does not know.
    Held(HoldReason),
}

/// What came of starting goals.
#[derive(Debug, Default)]
struct Started {
    /// Those that could not be started.
    refused: Vec<GoalId>,
    /// Those among them that wait for a directory.
    held: Vec<(GoalId, HoldReason)>,
}
