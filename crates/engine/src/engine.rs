//! The engine: starts and resumes goals, and knows which it drives.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::task::TaskTracker;
use towline_check::{CheckError, Environment};
use towline_core::{Envelope, Event, Goal, GoalId, GoalState, PoolSeq, Source};
use towline_process::SupervisorProgram;
use towline_store::{Lease, Store, StoreError, WorkerName};
use towline_workspace::Repository;

use crate::claiming::{DEATH_PAUSE, DEATH_TRIES};
use crate::clock::Clock;
use crate::confinement::{Confiner, Homes};
use crate::control::Control;
use crate::driver::{Driver, StoreTrouble};
use crate::error::EngineError;
use crate::executors::{Executors, Real};
use crate::feed::{Feed, FeedSource};
use crate::handle::Handle;
use crate::held::Held;
use crate::home::Home;
use crate::live::Live;
use crate::pool::{NOTICES_WAITING, Notice, Orders, Pool};
use crate::presence::{Presence, new_name};
use crate::resolver::{Resolved, Resolver};
use crate::rules::PoolRules;
use crate::scheduler::Scheduler;
use crate::signals::Signals;
use crate::slots::Slots;
use crate::tail::{PoolEvents, Tail};
use crate::token::Secret;
use crate::watch::StateWatch;
use crate::{rule_files, sweep, writes};

/// How long a lease holds without being renewed.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// How long the tasks of an engine may take to end when it leaves its goals to the next one.
const LEAVE_PATIENCE: Duration = Duration::from_secs(5);

/// What the engine's decisions are traced under.
pub(crate) const TRACES: &str = "towline::engine";

/// The end of the lease of a goal that waits: it is not renewed, and lasts as long as its engine lives.
pub(crate) const RESTING: Timestamp = Timestamp::constant(253_402_207_200, 0);

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
    /// Which goals start.
    pub dispatch: Dispatching,
}

/// Which goals an engine starts.
#[derive(Clone)]
pub enum Dispatching {
    /// Those that it is given, so many at the same time.
    Given { slots: usize },
    /// All goals of the state directory, by these rules.
    Pool(Arc<dyn PoolRules>),
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
    /// The name of this engine.
    pub(crate) worker: WorkerName,
    /// The rules of the pool that this engine runs, if it runs one.
    pub(crate) rules: Option<Arc<dyn PoolRules>>,
    pub(crate) signals: Signals,
    /// Why goals wait that only the scheduler knows about.
    pub(crate) held: Held,
    /// The projects whose rules decide about goals.
    pub(crate) projects: watch::Sender<BTreeSet<String>>,
    pub(crate) tail: Tail,
    pub(crate) pool: mpsc::Sender<Notice>,
    pub(crate) executors: Box<dyn Executors>,
    /// Whether the store fails for now, to be shown to people.
    pub(crate) store_trouble: watch::Sender<Option<StoreTrouble>>,
    driven: Mutex<HashMap<GoalId, Driven>>,
    /// Goals whose lease this process is taking or holds for a moment: it cannot distinguish its own claims.
    in_hand: Mutex<HashSet<GoalId>>,
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

    /// The right to claim a goal in this process; none while another task has it or the goal is driven here.
    pub(crate) fn take_in_hand(self: &Arc<Self>, goal: GoalId) -> Option<InHand> {
        let mut in_hand = self.in_hand.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = self.driven(goal).is_none() && in_hand.insert(goal);
        is_free.then(|| InHand { goal, shared: Arc::clone(self) })
    }

    /// What confines the programs of a goal.
    pub(crate) fn confiner<'a>(
        &'a self,
        goal: &'a Goal,
        resolved: &'a Resolved,
        repository: Option<&'a Repository>,
    ) -> Confiner<'a> {
        Confiner { home: &self.home, goal, resolved, program: self.supervisor.file(), repository }
    }

    /// The environment of setup and checks in a directory, with their sandbox.
    pub(crate) fn check_environment(
        &self,
        (goal, resolved): (&Goal, &Resolved),
        repository: &Repository,
        homes: Homes,
        directory: &Path,
    ) -> Result<Environment, CheckError> {
        let environment = resolved.check_environment(goal);
        let confiner = self.confiner(goal, resolved, Some(repository));
        let confinement = confiner.commands(homes, directory, environment.variables());
        Ok(environment.confined(confinement.map_err(CheckError::NoSandbox)?))
    }

    /// The program that supervises what runs for a goal. Its arguments name the goal: supervisors are found by them.
    pub(crate) fn supervisor_of(&self, goal: GoalId) -> SupervisorProgram {
        let mut program = self.supervisor.clone();
        program.args.push(goal.to_string());
        program
    }

    /// The driver of this goal, if this engine has one.
    pub(crate) fn driven(&self, goal: GoalId) -> Option<Driven> {
        self.driven.lock().unwrap_or_else(PoisonError::into_inner).get(&goal).cloned()
    }

    /// Whether this engine drives any goal.
    fn drives_any(&self) -> bool {
        !self.driven.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub(crate) fn set_driven(&self, goal: GoalId, driven: Option<Driven>) {
        let mut map = self.driven.lock().unwrap_or_else(PoisonError::into_inner);
        match driven {
            Some(driven) => map.insert(goal, driven),
            None => map.remove(&goal),
        };
    }
}

/// The right of one task of this process to claim a goal.
pub(crate) struct InHand {
    goal: GoalId,
    shared: Arc<Shared>,
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.shared.in_hand.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.goal);
        // Whoever could not have it meanwhile looks again.
        self.shared.signals.note_move();
    }
}

/// Drives goals of any number of projects, each with its own driver.
pub struct Engine {
    shared: Arc<Shared>,
    _presence: Presence,
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
        let (slots, rules) = match settings.dispatch {
            Dispatching::Given { slots } => (slots, None),
            Dispatching::Pool(rules) => (usize::MAX, Some(rules)),
        };
        let shared = Arc::new(Shared {
            home: settings.home,
            store: settings.store,
            clock: settings.clock,
            supervisor: settings.supervisor,
            resolver: settings.resolver,
            secret,
            slots: Slots::new(slots),
            worker: presence.worker().clone(),
            rules,
            signals: Signals::default(),
            held: Held::default(),
            projects: watch::Sender::default(),
            tail: Tail::new(),
            pool,
            executors,
            store_trouble: watch::Sender::new(None),
            driven: Mutex::default(),
            in_hand: Mutex::default(),
            tasks: TaskTracker::new(),
            watch,
        });
        let control = Control::serve(&directory, presence.worker(), Arc::clone(&shared))
            .map_err(failed("listen in", directory.clone()))?;
        shared.tasks.spawn(Pool::new(Arc::clone(&shared), notices, alarm).run());
        shared.tasks.spawn(sweep::run(Arc::clone(&shared)));
        if let Some(rules) = shared.rules.clone() {
            let alarm = shared.clock.alarm().map_err(failed("set a timer for", directory.clone()))?;
            shared.tasks.spawn(Scheduler::new(Arc::clone(&shared), Arc::clone(&rules)).run(alarm));
            shared.tasks.spawn(shared.tail.clone().run(Arc::clone(&shared)));
            shared.tasks.spawn(writes::watch(Arc::clone(&shared)));
            shared.tasks.spawn(rule_files::watch(Arc::clone(&shared), rules));
        }
        Ok(Self { shared, _presence: presence, _control: control })
    }

    /// Records a new goal and begins to drive it.
    pub async fn start(&self, goal: Goal) -> Result<Handle, EngineError> {
        let lock = self.shared.lock_directory(&goal).await?;
        let created = Envelope::new(goal.id, self.shared.clock.now(), Source::Operator, Event::Created);
        let record = self.shared.store.create(&goal, &GoalState::new(&goal), created).await?;
        self.shared.drive(record, Vec::new(), None, lock).await
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
            let lock = self.shared.lock_directory(&record.goal).await?;
            match self.shared.drive(record, requests.clone(), None, lock).await {
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
        self.record_requests(goal, vec![request]).await
    }

    /// Records several of them: all, or none.
    pub async fn record_requests(&self, goal: GoalId, requests: Vec<Event>) -> Result<(), EngineError> {
        let project = self.shared.project_of(&self.shared.store.load(goal).await?.goal).await?;
        let (_in_hand, lease) = self.shared.claim_in_time(goal, &requests).await?;
        // The holder before may have changed it until a moment ago.
        let record = self.shared.store.load(goal).await?;
        let (_, inbox) = mpsc::channel(1);
        Driver::new(Arc::clone(&self.shared), record, project, lease, inbox, Feed::new())
            .record_requests(requests)
            .await
    }

    /// The events of all goals after this place, each exactly once, whichever process records them. Only for an engine that runs a
    /// pool.
    pub fn pool_events(&self, after: PoolSeq) -> PoolEvents {
        self.shared.tail.events(Arc::clone(&self.shared.store), after)
    }

    /// Goals that are removed from now on, as far as their removers report it to this engine. A goal's log goes with it, so its events
    /// do not show that.
    pub fn removals(&self) -> broadcast::Receiver<GoalId> {
        self.shared.tail.removals()
    }

    /// The message that the agent of a goal is writing, while this engine drives the goal.
    pub fn live(&self, goal: GoalId) -> Option<Live> {
        Some(self.shared.driven(goal)?.feed.live())
    }

    /// Changes when something was recorded, here or in another process. Only for an engine that runs a pool.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.shared.signals.appended()
    }

    /// The name of this engine, by which others see whether it lives.
    pub fn worker(&self) -> &WorkerName {
        &self.shared.worker
    }

    /// Starts no goal any more, and waits until no turn runs, at most so long. What still runs then goes on under its supervisor,
    /// which lets it live for a quarter of an hour, and the next engine adopts it.
    pub async fn drain(&self, patience: Duration) {
        self.shared.signals.drain();
        let mut moved = self.shared.signals.moved();
        let _ = tokio::time::timeout(patience, async {
            while self.shared.drives_any() && moved.changed().await.is_ok() {}
        })
        .await;
        self.shared.signals.close();
        // A pool that is gone has no goals.
        let _ = self.shared.pool.send(Notice::Leave).await;
        self.shared.tasks.close();
        // What waits for the store or the disk is not waited for.
        let _ = tokio::time::timeout(LEAVE_PATIENCE, self.shared.tasks.wait()).await;
    }

    /// Waits until nothing can be recorded here any more: another engine has taken the place of this one (see
    /// [`take_place_of`](crate::take_place_of)), or the state directory is gone.
    pub async fn place_lost(&self) -> EngineError {
        loop {
            self.shared.watch.gone().await;
            if let Err(lost) = self.shared.watch.check() {
                return lost;
            }
        }
    }

    /// Whether the store fails for now. The log cannot report it then.
    pub fn store_trouble(&self) -> watch::Receiver<Option<StoreTrouble>> {
        self.shared.store_trouble.subscribe()
    }

    /// Waits until everything the engine has begun is over.
    pub async fn close(self) {
        self.shared.signals.close();
        // A pool that is gone has no goals.
        let _ = self.shared.pool.send(Notice::Close).await;
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    /// What the drivers share.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }
}
