//! The engine: starts and resumes goals, and knows which it drives.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use towline_core::{
    Envelope, Event, Goal, GoalId, GoalState, Illegal, Incoming, Seq, Source, Stamp, StepOutcome, step,
};
use towline_process::SupervisorProgram;
use towline_store::{GoalRecord, Lease, Store, StoreError};

use crate::clock::Clock;
use crate::control::Control;
use crate::driver::{Driver, StoreTrouble};
use crate::error::EngineError;
use crate::executors::{Executors, Real};
use crate::feed::{Feed, FeedSource};
use crate::handle::Handle;
use crate::home::Home;
use crate::news::own;
use crate::place::{DirectoryLock, must_be_alone};
use crate::pool::{NOTICES_WAITING, Notice, Orders, Pool};
use crate::presence::{Presence, is_dead, new_name};
use crate::resolver::Resolver;
use crate::slots::Slots;
use crate::token::Secret;
use crate::watch::StateWatch;
use crate::{supervisors, sweep};

/// How long a lease holds without being renewed.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// What the engine's decisions are traced under.
pub(crate) const TRACES: &str = "towline::engine";

/// The end of the lease of a goal that waits: it is not renewed, and lasts as long as its engine lives.
pub(crate) const RESTING: Timestamp = Timestamp::constant(253_402_207_200, 0);

/// How long a living engine may take to renew a lease: it does so three times while the lease holds.
const RENEWAL_PATIENCE: Duration = Duration::from_secs(30);
const RENEWAL_PAUSE: Duration = Duration::from_millis(500);

/// How often, and with what pause, it is looked whether an engine that cannot be reached is dead.
const DEATH_TRIES: u32 = 40;
const DEATH_PAUSE: Duration = Duration::from_millis(50);

/// Everything an engine is given. It reads nothing else: no environment, no configuration files.
pub struct EngineSettings {
    /// The state directory.
    pub home: Home,
    /// The database of goals.
    pub store: Arc<dyn Store>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// How a supervisor process is started.
    pub supervisor: SupervisorProgram,
    /// Reads the configuration of a goal's project when something starts for the goal.
    pub resolver: Arc<dyn Resolver>,
    /// Goals that may hold a slot at the same time.
    pub slots: usize,
}

/// What the drivers share.
pub(crate) struct Shared {
    pub(crate) home: Home,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) supervisor: SupervisorProgram,
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) secret: Secret,
    pub(crate) slots: Arc<Slots>,
    pool: mpsc::Sender<Notice>,
    pub(crate) executors: Box<dyn Executors>,
    /// Whether the store fails for now, to be shown to people.
    pub(crate) store_trouble: watch::Sender<Option<StoreTrouble>>,
    driven: Mutex<HashMap<GoalId, Driven>>,
    /// Owns the pool of goals and the sweep, so that neither outlives the engine unseen.
    pub(crate) tasks: TaskTracker,
    pub(crate) watch: StateWatch,
}

/// How to reach the driver of a goal.
#[derive(Clone)]
pub(crate) struct Driven {
    pub(crate) orders: Orders,
    pub(crate) feed: FeedSource,
}

impl Shared {
    /// Renews a lease from now on, for as long as one lasts.
    pub(crate) async fn renew(&self, lease: &Lease) -> Result<Lease, StoreError> {
        let now = self.clock.now();
        self.store.renew(lease, now.checked_add(LEASE).unwrap_or(now)).await
    }

    /// The program that supervises what runs for a goal.
    pub(crate) fn supervisor_of(&self, goal: GoalId) -> SupervisorProgram {
        supervisors::of_goal(&self.supervisor, goal)
    }

    /// The driver of this goal, if this engine has one.
    pub(crate) fn driven(&self, goal: GoalId) -> Option<Driven> {
        self.driven.lock().unwrap_or_else(PoisonError::into_inner).get(&goal).cloned()
    }

    pub(crate) fn set_driven(&self, goal: GoalId, driven: Option<Driven>) {
        let mut map = self.driven.lock().unwrap_or_else(PoisonError::into_inner);
        match driven {
            Some(driven) => map.insert(goal, driven),
            None => map.remove(&goal),
        };
    }
}

/// Drives goals of any number of projects, each with its own driver.
pub struct Engine {
    shared: Arc<Shared>,
    presence: Presence,
    _control: Control,
}

impl Engine {
    /// Starts an engine on a state directory; several may share one. Leftovers of earlier engines are removed in the
    /// background.
    pub fn open(settings: EngineSettings) -> Result<Self, EngineError> {
        Self::open_with(settings, Box::new(Real))
    }

    /// Starts an engine whose goals are worked on by these executors.
    pub(crate) fn open_with(
        settings: EngineSettings,
        executors: Box<dyn Executors>,
    ) -> Result<Self, EngineError> {
        let directory = settings.home.engines();
        let failed = |action, path| move |source| EngineError::Home { action, path, source };
        let announce = || {
            settings.home.make(&directory)?;
            Presence::announce(&directory, new_name()?)
        };
        let presence = announce().map_err(failed("announce the engine in", directory.clone()))?;
        let workspaces = settings.home.workspaces();
        settings.home.make(&workspaces).map_err(failed("make", workspaces.clone()))?;
        let watch = StateWatch::new(&settings.home, presence.lock_path());
        let path = settings.home.secret();
        let secret = Secret::of(&path).map_err(failed("make a secret in", path.clone()))?;
        let alarm = settings.clock.alarm().map_err(failed("set a timer for", directory.clone()))?;
        let (pool, notices) = mpsc::channel(NOTICES_WAITING);
        let shared = Arc::new(Shared {
            home: settings.home,
            store: settings.store,
            clock: settings.clock,
            supervisor: settings.supervisor,
            resolver: settings.resolver,
            secret,
            slots: Slots::new(settings.slots),
            pool,
            executors,
            store_trouble: watch::Sender::new(None),
            driven: Mutex::default(),
            tasks: TaskTracker::new(),
            watch,
        });
        let control = Control::serve(&directory, presence.worker(), Arc::clone(&shared))
            .map_err(failed("listen in", directory.clone()))?;
        shared.tasks.spawn(Pool::new(Arc::clone(&shared), notices, alarm).run());
        shared.tasks.spawn(sweep::run(Arc::clone(&shared)));
        Ok(Self { shared, presence, _control: control })
    }

    /// Records a new goal and begins to drive it.
    pub async fn start(&self, goal: Goal) -> Result<Handle, EngineError> {
        let lock = self.lock_directory(&goal).await?;
        let created = Envelope::new(goal.id, self.shared.clock.now(), Source::Operator, Event::Created);
        let record = self.shared.store.create(&goal, &GoalState::new(&goal), created).await?;
        self.drive(record, Vec::new(), lock).await
    }

    /// Resumes a goal that no engine is running, and adopts its attempt if that still runs. The operator's requests are
    /// the first events.
    pub async fn resume(
        &self,
        goal: GoalId,
        requests: impl IntoIterator<Item = Event>,
    ) -> Result<Handle, EngineError> {
        let requests: Vec<Event> = requests.into_iter().collect();
        let mut tries = 0;
        loop {
            let record = self.shared.store.load(goal).await?;
            let lock = self.lock_directory(&record.goal).await?;
            match self.drive(record, requests.clone(), lock).await {
                // A process that only records a request holds it for a moment.
                Err(EngineError::Busy { .. }) if tries < DEATH_TRIES => {
                    tries += 1;
                    tokio::time::sleep(DEATH_PAUSE).await;
                }
                driven => return driven,
            }
        }
    }

    /// Records a request of the operator for a goal that no engine is running. It takes effect when the goal is resumed.
    pub async fn record_request(&self, goal: GoalId, request: Event) -> Result<(), EngineError> {
        let lease = self.claim_in_time(goal, Some(request.clone())).await?;
        // The holder before may have changed it until a moment ago.
        let record = self.shared.store.load(goal).await?;
        let (_, inbox) = mpsc::channel(1);
        Driver::new(Arc::clone(&self.shared), record, lease, inbox, Feed::new()).record_request(request).await
    }

    /// Whether the store fails for now. The log cannot report it then.
    pub fn store_trouble(&self) -> watch::Receiver<Option<StoreTrouble>> {
        self.shared.store_trouble.subscribe()
    }

    /// Waits until everything the engine has begun is over.
    pub async fn close(self) {
        // A pool that is gone has no goals.
        let _ = self.shared.pool.send(Notice::Close).await;
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    /// If a goal works in place, waits until it can begin there, and fails if another goal is at work there.
    pub(crate) async fn lock_directory(&self, goal: &Goal) -> Result<Option<DirectoryLock>, EngineError> {
        if !goal.workspace.mode.is_in_place() {
            return Ok(None);
        }
        let lock = DirectoryLock::take(&self.shared.home).await?;
        let folder = Path::new(&goal.workspace.repository);
        must_be_alone(&self.shared.home, self.shared.store.as_ref(), goal.id, folder).await?;
        Ok(Some(lock))
    }

    /// Drives a goal as it was when it was looked up.
    pub(crate) async fn drive(
        &self,
        record: GoalRecord,
        requests: Vec<Event>,
        lock: Option<DirectoryLock>,
    ) -> Result<Handle, EngineError> {
        refuse(&record, &requests, self.shared.clock.now())?;
        let lease = self.claim(record.goal.id).await?;
        // From here on the lease protects the directory.
        drop(lock);
        // The holder before may have changed it until a moment ago.
        let record = self.shared.store.load(record.goal.id).await?;
        if let Err(refused) = refuse(&record, &requests, self.shared.clock.now()) {
            // A lease that cannot be released expires by itself.
            let _ = self.shared.store.release(&lease).await;
            return Err(refused);
        }
        let goal = record.goal.id;
        let (sender, inbox) = mpsc::channel(16);
        let orders = Orders { goal, inbox: sender, pool: self.shared.pool.clone() };
        let feed = Feed::new();
        let source = feed.source();
        // Known before its first event, so that every process that sees the goal can reach its driver.
        self.shared.set_driven(goal, Some(Driven { orders: orders.clone(), feed: source.clone() }));
        let driver = Driver::new(Arc::clone(&self.shared), record, lease, inbox, feed);
        let driver = match driver.begin(requests).await {
            Ok(driver) => driver,
            Err(error) => {
                self.shared.set_driven(goal, None);
                return Err(error);
            }
        };
        let (outcome, result) = oneshot::channel();
        let begun = Notice::Begun { goal, driver: Box::new(driver), outcome };
        // A pool that is gone drops the sender of the outcome.
        let _ = self.shared.pool.send(begun).await;
        Ok(Handle::new(Arc::clone(&self.shared.store), orders, source, result))
    }

    /// Takes the lease of a goal whose engine could not be reached any more: it may take a moment until it is known to be
    /// dead.
    pub(crate) async fn claim_in_time(
        &self,
        goal: GoalId,
        request: Option<Event>,
    ) -> Result<Lease, EngineError> {
        let mut tries = 0;
        loop {
            let record = self.shared.store.load(goal).await?;
            if request.is_some() {
                refuse(&record, request.as_slice(), self.shared.clock.now())?;
            }
            match self.claim(goal).await {
                Err(EngineError::Busy { .. }) if tries < DEATH_TRIES => {
                    tries += 1;
                    tokio::time::sleep(DEATH_PAUSE).await;
                }
                claimed => return claimed,
            }
        }
    }

    /// What the drivers share.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Takes the lease of a goal of which nothing else can be read.
    pub(crate) async fn claim_unread(&self, goal: GoalId) -> Result<Lease, EngineError> {
        let now = self.shared.clock.now();
        let until = now.checked_add(LEASE).unwrap_or(now);
        let (store, worker) = (&self.shared.store, self.presence.worker());
        match store.claim(goal, worker, now, until, None).await {
            Err(StoreError::Held { worker: holder, .. }) if is_dead(&self.shared.home.engines(), &holder) => {
                Ok(store.claim(goal, worker, now, until, Some(&holder)).await?)
            }
            Err(StoreError::Held { .. }) => Err(EngineError::Busy { goal }),
            claimed => Ok(claimed?),
        }
    }

    /// Takes the lease, also from an engine that is dead or does not renew it any more.
    async fn claim(&self, goal: GoalId) -> Result<Lease, EngineError> {
        let GoalRecord { lease, last_seq, .. } = self.shared.store.load(goal).await?;
        let lost = match &lease {
            Some(lease) if self.is_held(lease).await? => return Err(self.held(goal, last_seq).await?),
            lease => lease.as_ref().map(|lease| &lease.worker),
        };
        let now = self.shared.clock.now();
        let until = now.checked_add(LEASE).unwrap_or(now);
        let claimed = self.shared.store.claim(goal, self.presence.worker(), now, until, lost).await;
        claimed.map_err(|error| match error {
            StoreError::Held { goal, .. } => EngineError::Busy { goal },
            other => other.into(),
        })
    }

    /// Who has a goal whose log ends here: a person, or an engine that may release it in a moment. Nobody else writes to
    /// the log of a goal that a person has entered.
    async fn held(&self, goal: GoalId, last: Seq) -> Result<EngineError, EngineError> {
        let before = Seq(last.0.saturating_sub(1));
        let events = self.shared.store.events(goal, before, 1).await?;
        let is_entered = events.last().is_some_and(|last| matches!(last.event, Event::Entered { .. }));
        Ok(if is_entered { EngineError::Entered { goal } } else { EngineError::Busy { goal } })
    }

    /// Whether a living engine holds this lease. The clock may have been set since it was written, or the machine was
    /// suspended. So if the lease seems expired, or longer than any lease can be, a living engine gets the time to
    /// renew it.
    async fn is_held(&self, lease: &Lease) -> Result<bool, EngineError> {
        let is_ours = lease.worker == *self.presence.worker();
        if is_ours || is_dead(&self.shared.home.engines(), &lease.worker) {
            return Ok(false);
        }
        let now = self.shared.clock.now();
        let latest = now.checked_add(LEASE).unwrap_or(now);
        if lease.until == RESTING || (lease.until > now && lease.until <= latest) {
            return Ok(true);
        }
        let give_up = Instant::now() + RENEWAL_PATIENCE;
        while Instant::now() < give_up {
            tokio::time::sleep(RENEWAL_PAUSE).await;
            let current = self.shared.store.load(lease.goal).await?.lease;
            if current.as_ref() != Some(lease) {
                return Ok(current.is_some());
            }
        }
        Ok(false)
    }
}

/// Refuses requests that do not fit the phase of the goal, before anything is changed.
fn refuse(record: &GoalRecord, requests: &[Event], now: Timestamp) -> Result<(), EngineError> {
    let goal = record.goal.id;
    let phase = &record.state.phase;
    if requests.is_empty() && phase.is_settled() {
        let illegal = Illegal::WrongPhase { phase: phase.name(), event: "run" };
        return Err(EngineError::Illegal { goal, illegal });
    }
    let stamp = Stamp { generation: record.state.generation, attempt: None };
    let mut state = record.state.clone();
    for request in requests {
        let incoming = Incoming { source: Source::Operator, ..own(stamp, request.clone()) };
        let after = step(&record.goal, state, &incoming, now);
        if let StepOutcome::Illegal(illegal) = after.outcome {
            return Err(EngineError::Illegal { goal, illegal });
        }
        state = after.state;
    }
    Ok(())
}
