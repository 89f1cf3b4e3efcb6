//! The driver of one goal, in three beats: select what happened, handle it (the core decides, nothing is touched),
//! react (record it, then act).

mod clock_watch;
mod executors;
mod looks;
mod order;
mod rest;
mod storing;
mod transition;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use towline_core::{
    AgentEvent, AgentName, Delivery, Effect, Envelope, Event, Goal, GoalState, Illegal, Incoming, Phase, Seq,
    Source, Stamp, StepOutcome, Timeout, step,
};
use towline_mask::{Mask, Secrets};
use towline_store::{GoalRecord, Lease};

use self::clock_watch::ClockWatch;
use self::executors::RunningBaseline;
pub(crate) use self::order::{Grant, Order};
pub(crate) use self::rest::{Left, Waiting};
use self::storing::Outage;
pub use self::storing::{AgentInTrouble, StoreTrouble};
use self::transition::Transition;
use crate::engine::{LEASE, Shared, TRACES};
use crate::error::EngineError;
use crate::feed::Feed;
use crate::news::{Batch, StopLevel, own};
use crate::resolver::ProjectRead;
use crate::secrecy::hide_in;
use crate::slots::{Place, Slot};
use crate::watch::{Certainty, GoalWatch, Observed};

/// How many batches may wait to be recorded.
const NEWS_WAITING: usize = 4;
/// Timers are for times of the day, and the clock can be set: none sleeps longer than this before it looks again.
const LONGEST_SLEEP: Duration = Duration::from_secs(300);

/// What happened since the last beat.
enum Beat {
    News(Batch),
    Order(Box<Order>),
    Timer,
    WallOver,
    Look,
    Renewal,
    ExecutorDone,
    ExecutorLost,
}

/// Drives one goal under one lease.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    goal: Goal,
    state: GoalState,
    seq: Seq,
    lease: Lease,
    renew_at: Instant,
    watch: GoalWatch,
    /// Changes when something was removed somewhere.
    removals: watch::Receiver<()>,
    /// When to look whether what was missing is back.
    look_at: Option<Instant>,
    attempts: Option<Observed>,
    slot: Option<Slot>,
    orders: mpsc::Receiver<Box<Order>>,
    /// Orders that came while the store failed.
    deferred: VecDeque<Box<Order>>,
    /// Since when the store has been failing.
    outage: Option<Outage>,
    /// The operator's stop for which everything was ended before it could be recorded, until it is carried out.
    ended_for: Option<&'static str>,
    /// Whether the operator asked a second time.
    is_insisted_on: bool,
    /// Whether the attempt had been ended by a signal before this driver began.
    was_cut_off: bool,
    /// What is to be recorded about an outage that is over.
    notice: Option<String>,
    news: mpsc::Receiver<Batch>,
    sender: mpsc::Sender<Batch>,
    work: JoinSet<()>,
    /// The checks on the base, as long as they run and until the next ones do.
    baseline: Option<RunningBaseline>,
    /// The way to the living agent.
    deliveries: mpsc::UnboundedSender<Delivery>,
    stop: watch::Sender<StopLevel>,
    /// When the lease expires, unless the clock is set.
    pub(crate) lease_ends: watch::Sender<Instant>,
    clock: ClockWatch,
    /// Passes events to followers of the goal.
    feed: Feed,
    /// The models that the configuration sets for the goal's agents.
    models: BTreeMap<AgentName, String>,
    /// What belongs to the goal's project, as it was read when the goal was claimed: until the goal has begun, it counts.
    project: Option<ProjectRead>,
    /// What the configuration names now and has named since the goal was claimed.
    secrets: Secrets,
    /// Hides them in everything that is recorded.
    mask: Arc<Mask>,
}

impl Driver {
    pub(crate) fn new(
        shared: Arc<Shared>,
        record: GoalRecord,
        project: ProjectRead,
        lease: Lease,
        orders: mpsc::Receiver<Box<Order>>,
        feed: Feed,
    ) -> Self {
        let (sender, news) = mpsc::channel(NEWS_WAITING);
        let lease_ends = watch::Sender::new(Instant::now() + LEASE);
        let clock = ClockWatch::new(shared.clock.now());
        let removals = shared.watch.removals();
        let mut driver = Self {
            shared,
            goal: record.goal,
            state: record.state,
            seq: record.last_seq,
            lease,
            renew_at: Instant::now() + LEASE / 3,
            watch: GoalWatch::default(),
            removals,
            look_at: None,
            attempts: None,
            slot: None,
            orders,
            deferred: VecDeque::new(),
            outage: None,
            ended_for: None,
            is_insisted_on: false,
            was_cut_off: false,
            notice: None,
            news,
            sender,
            work: JoinSet::new(),
            baseline: None,
            deliveries: mpsc::unbounded_channel().0,
            stop: watch::Sender::new(StopLevel::Run),
            lease_ends,
            clock,
            feed,
            models: BTreeMap::new(),
            project: None,
            secrets: Secrets::default(),
            mask: Arc::default(),
        };
        driver.models = project.resolved.models(&driver.goal);
        driver.hide_secrets_of(&project);
        driver.project = Some(project);
        driver
    }

    /// Records the claim of the goal together with the operator's requests, continues work that was under way, and starts the
    /// goal if the pool permits it. On an error the lease is released.
    pub(crate) async fn begin(
        mut self,
        requests: Vec<Event>,
        grant: Option<Grant>,
    ) -> Result<Self, EngineError> {
        let begun = async {
            self.try_to_begin(requests).await?;
            match grant {
                // Before anybody looks who is next: this one counts from here on.
                Some(grant) => self.dispatch(grant).await,
                None => Ok(()),
            }
        };
        let begun = begun.await;
        self.project = None;
        match begun {
            Ok(()) => Ok(self),
            Err(error) => {
                self.leave().await;
                Err(error)
            }
        }
    }

    /// Records requests of the operator and releases the goal. The next driver acts on them.
    pub(crate) async fn record_requests(mut self, requests: Vec<Event>) -> Result<(), EngineError> {
        let recorded = self.record_claim(requests).await;
        self.leave().await;
        recorded
    }

    /// Records the claim of the goal and the operator's requests: all of it, or nothing.
    pub(crate) async fn record_claim(
        &mut self,
        requests: impl IntoIterator<Item = Event>,
    ) -> Result<(), EngineError> {
        let claimed = self.own(Event::Claimed {
            worker: self.lease.worker.0.clone(),
            models: self.models.clone(),
            workspace: self.shared.home.moved_place(&self.goal, &self.state),
        });
        let mut transition = Transition::from(self.state.clone());
        let requests: Vec<Incoming> = requests.into_iter().map(|event| self.operator(event)).collect();
        for incoming in std::iter::once(claimed).chain(requests) {
            let (next, refused) = self.apply(transition, incoming);
            if let Some(illegal) = refused {
                return Err(EngineError::Illegal { goal: self.goal.id, illegal });
            }
            transition = next;
        }
        self.record(transition).await?;
        Ok(())
    }

    pub(super) async fn try_to_begin(&mut self, requests: Vec<Event>) -> Result<(), EngineError> {
        self.record_claim(requests).await?;
        self.end_unexpected().await?;
        self.clear_left_baseline().await;
        self.close_left_judges().await?;
        if self.state.phase.holds_slot() {
            self.slot = Some(self.shared.slots.take());
        }
        // Everything that is not settled is carried out, also what an earlier driver decided.
        for pending in self.shared.store.pending(self.goal.id).await? {
            self.perform(pending.effect);
        }
        Ok(())
    }

    /// Drives the goal until it has ended and its work has a branch. A late answer may open it again meanwhile.
    async fn drive_and_publish(&mut self) -> Result<(), EngineError> {
        let mut published = None;
        loop {
            self.drive().await?;
            let ended = self.state.settled_at;
            // A paused goal has not ended, and a shutdown does not wait.
            if !self.state.phase.has_ended() || published.replace(ended) == Some(ended) {
                return Ok(());
            }
            self.publish();
        }
    }

    /// Publishes the work of a goal whose engine was killed after it had ended. Whether something was recorded.
    pub(crate) async fn publish_left_work(&mut self) -> Result<bool, EngineError> {
        self.publish();
        let mut is_claimed = false;
        while !self.work.is_empty() {
            tokio::select! {
                Some(batch) = self.news.recv() => {
                    if !std::mem::replace(&mut is_claimed, true) {
                        self.record_claim(None).await?;
                    }
                    self.take_in_batch(batch).await?;
                }
                _ = self.work.join_next() => {}
            }
        }
        Ok(is_claimed)
    }

    async fn drive(&mut self) -> Result<(), EngineError> {
        loop {
            self.report_outage().await?;
            self.continue_cut_off().await?;
            if self.state.phase == Phase::Queued
                && let Some(grant) = self.next_grant()
            {
                self.dispatch(grant).await?;
            }
            if self.is_at_rest() {
                return Ok(());
            }
            let beat = self.select().await;
            self.note_moved_clock().await?;
            match beat {
                Beat::News(batch) => {
                    self.expect_attempt_of(&batch.incoming);
                    self.take_in_batch(batch).await?;
                }
                Beat::Order(order) => self.follow(*order).await?,
                Beat::Timer if self.is_due() => self.take_in(vec![self.own(Event::Woken)]).await?,
                Beat::WallOver if self.is_wall_over() => {
                    let timeout = Timeout::Wall;
                    let attempt = self.state.phase.living_attempt();
                    let stamp = Stamp { generation: self.lease.generation, attempt };
                    self.take_in(vec![own(stamp, Event::TimeoutReached { timeout })]).await?;
                }
                Beat::Timer | Beat::WallOver | Beat::ExecutorDone => {}
                Beat::Look => self.look_again()?,
                Beat::Renewal => self.renew().await?,
                Beat::ExecutorLost => return Err(EngineError::DriverLost { goal: self.goal.id }),
            }
        }
    }

    /// First beat: waits for whatever comes first.
    async fn select(&mut self) -> Beat {
        if let Some(order) = self.deferred.pop_front() {
            return Beat::Order(order);
        }
        let timer = self.state.wakes_at(self.goal.id).map(|until| self.instant_of(until));
        let wall = self.wall_ends().map(|ends| self.instant_of(ends));
        tokio::select! {
            Some(batch) = self.news.recv() => Beat::News(batch),
            Some(order) = self.orders.recv() => Beat::Order(order),
            () = tokio::time::sleep_until(timer.unwrap_or(self.renew_at)), if timer.is_some() => Beat::Timer,
            () = tokio::time::sleep_until(wall.unwrap_or(self.renew_at)), if wall.is_some() => Beat::WallOver,
            Ok(()) = self.removals.changed(), if self.look_at.is_none() => Beat::Look,
            () = tokio::time::sleep_until(self.look_at.unwrap_or(self.renew_at)), if self.look_at.is_some() => Beat::Look,
            () = tokio::time::sleep_until(self.renew_at) => Beat::Renewal,
            Some(ended) = self.work.join_next(), if !self.work.is_empty() => match ended {
                Ok(()) => Beat::ExecutorDone,
                Err(_) => Beat::ExecutorLost,
            },
        }
    }

    /// Carries out a request of the operator, or refuses it without any effect.
    pub(crate) async fn grant(&mut self, event: Event) -> Result<Result<(), Illegal>, EngineError> {
        let (transition, refused) = self.apply(Transition::from(self.state.clone()), self.operator(event));
        if let Some(illegal) = refused {
            return Ok(Err(illegal));
        }
        self.react(transition).await?;
        Ok(Ok(()))
    }

    async fn take_in_batch(&mut self, batch: Batch) -> Result<(), EngineError> {
        self.take_in(batch.incoming).await?;
        if let Some(recorded) = batch.recorded {
            // The receiver may be gone by now.
            let _ = recorded.send(());
        }
        Ok(())
    }

    /// Second and third beat: lets the core decide, records it, acts.
    async fn take_in(&mut self, incoming: Vec<Incoming>) -> Result<(), EngineError> {
        let mut transition = Transition::from(self.state.clone());
        for news in incoming {
            let stamp = Stamp { attempt: None, ..news.stamp };
            let (next, refused) = self.apply(transition, news);
            transition = match refused {
                // The operator cannot fix it, but the log shows it.
                Some(illegal) => {
                    self.apply(next, own(stamp, Event::Notice { text: format!("ignored: {illegal}") })).0
                }
                None => next,
            };
        }
        self.react(transition).await
    }

    /// Third beat: records, then acts.
    async fn react(&mut self, transition: Transition) -> Result<(), EngineError> {
        let settled = transition.settled.clone();
        let mut effects = self.record(transition).await?;
        effects.retain(|effect| !settled.contains(&effect.key()));
        if !self.state.phase.holds_slot() {
            self.slot = None;
        } else if self.slot.is_none() {
            // An agent that was answered continues at once: it is running already, and a person waits for it.
            self.slot = Some(self.shared.slots.take());
        }
        if self.state.phase != Phase::Queued {
            self.shared.slots.withdraw(self.place());
        }
        self.stop_unwanted_baseline();
        effects.into_iter().for_each(|effect| self.perform(effect));
        Ok(())
    }

    /// Works one thing that happened into a transition. Stale news leaves no trace.
    fn apply(&self, transition: Transition, incoming: Incoming) -> (Transition, Option<Illegal>) {
        self.feed.saw(&incoming, &self.mask);
        if matches!(incoming.event, Event::Agent { event: AgentEvent::MessageDelta { .. } }) {
            return (transition, None);
        }
        // Messages of people must reach the agent unchanged. In everything else, prompts included, secrets are hidden.
        let incoming = match (incoming.source, &incoming.event) {
            (Source::Operator, Event::MessageSent { .. } | Event::Answered { .. }) => incoming,
            _ => hide_in(&self.mask, incoming),
        };
        let now = self.shared.clock.now();
        let (name, before) = (incoming.event.name(), transition.state.phase.name());
        let stepped = step(&self.goal, transition.state, &incoming, now);
        let mut transition = Transition { state: stepped.state, ..transition };
        let after = transition.state.phase.name();
        match stepped.outcome {
            StepOutcome::Moved(moved) => {
                if before != after || !matches!(incoming.event, Event::Agent { .. }) {
                    self.trace("moved", format_args!("{name}: {before} to {after}"));
                }
                transition.add(self.goal.id, incoming, moved, now, &self.mask);
            }
            StepOutcome::Stale(_) => self.trace("stale", format_args!("{name} in {after}")),
            StepOutcome::Illegal(illegal) => {
                self.trace("refused", &illegal);
                return (transition, Some(illegal));
            }
        }
        (transition, None)
    }

    /// Records a transition, publishes it to followers, and returns the effects to carry out.
    async fn record(&mut self, transition: Transition) -> Result<Vec<Effect>, EngineError> {
        if transition.events.is_empty() {
            return Ok(Vec::new());
        }
        if transition.effects.is_empty() {
            self.shared.watch.check()?;
        } else {
            self.look(Certainty::Once)?;
        }
        let appended = self.append(&transition).await?;
        self.seq = appended.last_seq;
        self.state = transition.state;
        if !matches!(self.state.phase, Phase::Stopping(_)) {
            self.ended_for = None;
        }
        self.was_cut_off &=
            self.state.phase.living_attempt().is_some() || matches!(self.state.phase, Phase::Paused { .. });
        self.goal.bring_into_force(&self.state);
        self.note_append(&appended.events);
        self.feed.appended(appended.events);
        Ok(transition.effects)
    }

    /// Lets others know what was recorded.
    fn note_append(&self, events: &[Envelope]) {
        self.shared.signals.note_append();
        let decides = |event: &Event| {
            matches!(
                event,
                Event::PhaseChanged { .. }
                    | Event::Agent { event: AgentEvent::Usage { .. } }
                    | Event::JudgeUsed { .. }
            )
        };
        // What was recorded at a second try is not known here.
        if events.is_empty() || events.iter().any(|envelope| decides(&envelope.event)) {
            self.shared.signals.note_move();
        }
    }

    fn raise_stop(&self, level: StopLevel) {
        self.stop.send_if_modified(|current| {
            let raised = level > *current;
            *current = level.max(*current);
            raised
        });
    }

    /// Traces a decision.
    fn trace(&self, decision: &'static str, about: impl fmt::Display) {
        let attempt = self.state.last_attempt().map(|attempt| attempt.n.get());
        let (goal, lease) = (self.goal.id.short(), self.lease.generation.0);
        tracing::debug!(target: TRACES, goal, attempt, lease, "{decision}: {about}");
    }

    fn own(&self, event: Event) -> Incoming {
        own(Stamp { generation: self.lease.generation, attempt: None }, event)
    }

    fn operator(&self, event: Event) -> Incoming {
        Incoming { source: Source::Operator, ..self.own(event) }
    }

    fn is_due(&self) -> bool {
        self.state.wakes_at(self.goal.id).is_some_and(|wakes_at| self.shared.clock.now() >= wakes_at)
    }

    /// When the goal's time is up, while something runs for it that does not wait for a person.
    fn wall_ends(&self) -> Option<Timestamp> {
        let is_watched =
            matches!(self.state.phase, Phase::Preparing | Phase::Running { .. } | Phase::Checking { .. });
        self.state.wall_ends().filter(|_| is_watched && !self.state.waits_for_baseline())
    }

    fn is_wall_over(&self) -> bool {
        self.wall_ends().is_some_and(|ends| self.shared.clock.now() >= ends)
    }

    fn instant_of(&self, moment: Timestamp) -> Instant {
        Instant::now() + until(self.shared.clock.now(), moment)
    }
}

/// How long to sleep until `moment`, bounded.
pub(crate) fn until(now: Timestamp, moment: Timestamp) -> Duration {
    Duration::try_from(moment.duration_since(now)).unwrap_or(Duration::ZERO).min(LONGEST_SLEEP)
}
