//! Runs one attempt: starts the agent under its supervisor, or adopts one that is running, and turns its raw bytes
//! into events until its process tree is gone.
//!
//! Both cases take the same path: the log is read from its beginning through the protocol. Events that are recorded are
//! not sent again, and lines that `stdin.log` has are not written again. From there on the attempt is live.

mod job;
mod start;
mod time;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use towline_agent::{Action, AgentSettings, Steer, UnknownPrice, agent};
use towline_core::{
    AgentEvent, Deadlines, Delivered, Delivery, End, Event, Exit, Goal, Incoming, Launch, LaunchProblem,
    Outcome, RawRef, Sandbox, Source, Usage, Work, WorkspaceBinding,
};
use towline_process::{ExitRecord, Notice, ProcessError, StopCause};

pub(crate) use self::start::refuse;
use self::start::{SIGNAL_PATIENCE, Starting, lifetime, start};
use self::time::AttemptTime;
use crate::checks::{changes, left_work};
use crate::driver::until;
use crate::engine::Shared;
use crate::executors::ExecutorControl;
use crate::news::{DriverGone, EventSender, StopLevel, own};
use crate::opening::Opening;
use crate::question_file;
use crate::reading::{Output, Reading};
use crate::resolver::Resolved;
use crate::runs::{self, RunState, Trail};
use crate::sent::Sent;

/// How long an agent may take to end its turn when it is asked to by its own protocol.
const INTERRUPT_PATIENCE: Duration = Duration::from_millis(700);
/// How long the end of a tree may take beyond the agent's own graces.
const END_PATIENCE: Duration = Duration::from_secs(20);
/// The variables by which Towline's own tools find the engine, and prove for whom they speak.
const API_VARIABLE: &str = "TOWLINE_API";
pub(crate) const TOKEN_VARIABLE: &str = "TOWLINE_TOKEN";

/// What is to be run.
pub(crate) struct AttemptJob {
    pub(crate) goal: Goal,
    pub(crate) resolved: Arc<Resolved>,
    pub(crate) workspace: Option<WorkspaceBinding>,
    /// The files that the last verdict speaks about.
    pub(crate) checked: Option<String>,
    pub(crate) read_to: u64,
    /// Whether its start is recorded already.
    pub(crate) started: bool,
    /// When the core decided to start it. Its deadlines count from there, whichever engine runs it.
    pub(crate) started_at: Timestamp,
    /// Requests of the agent that were answered before, and when.
    pub(crate) answered: BTreeMap<String, Timestamp>,
    /// What the resumed session has used before.
    pub(crate) used_before: Usage,
    /// What happens when the price of the model is unknown.
    pub(crate) unknown_price: UnknownPrice,
    pub(crate) launch: Launch,
    /// Of a judge, which works apart from the goal's own conversation; none of an attempt.
    pub(crate) judge: Option<JudgeSeat>,
}

/// Where a judge works, and as what.
pub(crate) struct JudgeSeat {
    /// The place of its logs.
    pub(crate) run_dir: PathBuf,
    /// Where it works.
    pub(crate) directory: PathBuf,
    pub(crate) settings: AgentSettings,
}

/// Runs the attempt to its classified end and reports that.
pub(crate) async fn run(shared: Arc<Shared>, job: AttemptJob, sender: EventSender, control: ExecutorControl) {
    if job.started && !RunState::is_left(&shared.home.attempt(job.goal.id, job.launch.attempt)) {
        // A driver that is gone needs no report.
        let _ = give_up(&shared, job, &sender, control.stop).await;
        return;
    }
    // If the driver is gone, the next engine that resumes the goal adopts the attempt.
    let _: Result<(), DriverGone> = match Conversation::open(&shared, &job, &sender, control).await {
        Ok(conversation) => conversation.hold(&job).await,
        Err(problem) => {
            let dir = job.dir(&shared.home);
            refuse(&dir, &Trail::of(&job.goal, &shared.supervisor), &sender, problem).await;
            Ok(())
        }
    };
}

/// Ends an attempt whose agent was started and whose files are gone: its output cannot be read, and another agent must not
/// start beside it.
async fn give_up(
    shared: &Shared,
    job: AttemptJob,
    sender: &EventSender,
    stop: watch::Receiver<StopLevel>,
) -> Result<(), DriverGone> {
    // What is left after that is found before the next start for the goal.
    let _ = runs::sweep(&Trail::of(&job.goal, &shared.supervisor)).await;
    let work = match job.workspace {
        Some(workspace) => left_work(&shared.home, job.goal, workspace, job.checked, stop).await,
        None => Work::Nothing,
    };
    let (end, exit, changes) = (End::Lost, Exit::default(), String::new());
    sender.send_own(Event::AttemptEnded { end, exit, work, changes }).await
}

/// A conversation with an agent, from its first byte to its exit.
struct Conversation<'a> {
    shared: &'a Shared,
    sender: &'a EventSender,
    trail: Trail,
    dir: PathBuf,
    reading: Reading,
    deadlines: Deadlines,
    time: AttemptTime,
    run: RunState,
    /// What confines the agent; unknown of one whose start was not recorded.
    sandbox: Option<Sandbox>,
    control: ExecutorControl,
    /// Output up to here is in the goal's log already.
    recorded_to: u64,
    /// Output up to here was there before this engine looked after the attempt.
    output_before: u64,
    /// Requests of the agent that were answered before, and when.
    answered: BTreeMap<String, Timestamp>,
    sent: Sent,
    /// Whether a rule denied the agent a tool.
    was_denied: bool,
    /// Whether it has come to the end of a turn and begun no other.
    turn_is_over: bool,
    /// Whether it may be using the model. Subagents in the background do that after the end of a turn, too.
    may_spend: bool,
    input: Input,
    stopping: Stopping,
    /// How long the agent's tree may take to end after SIGTERM.
    stop_grace: Duration,
    exit_patience: Duration,
}

/// Whether more can be written to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Open,
    /// Its standard input is closed. It should exit when its turn is over.
    Closed,
}

/// How far the ending of the process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopping {
    No,
    /// It has reached a timeout. The driver knows and decides what follows.
    Overdue,
    /// It was asked to end its turn; at this moment it gets signals.
    Asked(Instant),
    /// The supervisor is ending the tree; at this moment it is ended itself.
    Signalled(Instant),
}

impl<'a> Conversation<'a> {
    async fn open(
        shared: &'a Shared,
        job: &AttemptJob,
        sender: &'a EventSender,
        control: ExecutorControl,
    ) -> Result<Self, LaunchProblem> {
        let (resolved, settings) = (&job.resolved, job.settings()?);
        let (trail, dir) = (Trail::of(&job.goal, &shared.supervisor), job.dir(&shared.home));
        let provider = agent(settings.kind).provider(&settings, &resolved.environment);
        let opening = Opening::new(&dir, job, settings, provider);
        let towline = job.variables(shared, &dir);
        let context = opening.context(&resolved.environment, &towline);
        let lifetime = lifetime(*control.lease_ends.borrow());
        let output_before = std::fs::symlink_metadata(dir.join("stdout.log")).map_or(0, |log| log.len());
        let (run, time, sandbox) = match RunState::find(&dir, &trail).await {
            Some(run) => (run, AttemptTime::adopted(shared.clock.now()), None),
            None => {
                let left = |error: ProcessError| LaunchProblem::Other { message: error.to_string() };
                let (swept, refreshed) =
                    tokio::join!(runs::sweep(&trail), job.refresh(shared, control.stop.clone()));
                swept.map_err(left)?;
                refreshed?;
                let time = AttemptTime::started(shared.clock.now());
                let starting = Starting { job, opening: &opening, context: &context, dir: &dir, lifetime };
                let (run, sandbox) = start(shared, starting).await?;
                (run, time, sandbox)
            }
        };
        let sent = Sent::read(&dir);
        Ok(Self {
            shared,
            sender,
            trail,
            reading: Reading::new(&dir, opening.protocol(&context, &sent)),
            deadlines: Deadlines::start(opening.settings.timeouts.clone(), job.started_at),
            stop_grace: opening.settings.stop_grace,
            time,
            exit_patience: agent(opening.settings.kind).exit_patience(&opening.settings),
            run,
            sandbox,
            control,
            recorded_to: job.read_to,
            output_before,
            answered: job.answered.clone(),
            sent,
            turn_is_over: false,
            may_spend: true,
            input: Input::Open,
            was_denied: false,
            stopping: Stopping::No,
            dir,
        })
    }

    /// Holds the conversation to its end.
    async fn hold(mut self, job: &AttemptJob) -> Result<(), DriverGone> {
        self.begin(job).await?;
        let record = loop {
            // One chunk at a time: an agent that prints faster than it can be recorded can still be stopped.
            let output = self.read_chunk().await?;
            match (&self.run, output) {
                (RunState::Alive(_), output) => self.wait(output).await?,
                (_, Output::More) => {}
                (RunState::Ended(record), Output::Drained) => break Some(record.clone()),
                (RunState::Lost, Output::Drained) => break None,
            }
        };
        if let Some((raw, actions)) = self.reading.rest() {
            self.act(actions, Some(raw)).await?;
        }
        if let Err(text) = job.give_back(&self.shared.home).await {
            self.sender.send_own(Event::Notice { text }).await?;
        }
        let (last, end, exit) = self.reading.end(record.as_ref());
        let last_words = self.news(last, None);
        let end = if self.was_interrupted(record.as_ref(), &end) { End::Interrupted } else { end };
        let work = match &job.workspace {
            Some(workspace) if end.is_bad() || self.was_denied => {
                let (goal, checked) = (job.goal.clone(), job.checked.clone());
                left_work(&self.shared.home, goal, workspace.clone(), checked, self.control.stop.clone())
                    .await
            }
            _ => Work::Nothing,
        };
        let question = question_file::read(self.dir.clone()).await.map(|event| Event::Agent { event });
        // Another agent can only know by this what was done.
        let changes = match &job.workspace {
            Some(workspace) if job.goal.agents.len() > 1 => {
                changes(&self.shared.home, job.goal.clone(), workspace.clone(), self.control.stop.clone())
                    .await
            }
            _ => String::new(),
        };
        let ended = question.into_iter().chain([Event::AttemptEnded { end, exit, work, changes }]);
        let ended = ended.map(|event| own(self.sender.stamp(), event));
        // In one batch: no question is lost, and the last events, which have no offset in the output, are recorded once.
        self.sender.send(last_words.into_iter().chain(ended).collect()).await
    }

    /// Records the start of the agent together with what follows from that alone, and then acts on it.
    async fn begin(&mut self, job: &AttemptJob) -> Result<(), DriverGone> {
        let (events, requests) = apart(self.reading.start());
        if !job.started {
            let started = own(self.sender.stamp(), Event::AttemptStarted { sandbox: self.sandbox });
            let news = std::iter::once(started).chain(self.news(events, None));
            self.sender.send_and_wait(news.collect()).await?;
        }
        self.act(requests, None).await
    }

    /// Whether the supervisor ended the tree although this engine did not ask for it: it got a signal itself.
    fn was_interrupted(&self, record: Option<&ExitRecord>, end: &End) -> bool {
        let was_asked = record.is_some_and(|record| record.stopped == Some(StopCause::Requested));
        let by_us = matches!(self.stopping, Stopping::Asked(_) | Stopping::Signalled(_));
        was_asked && !by_us && matches!(end, End::Crashed { .. })
    }

    /// Waits for the next thing that concerns the process; where there is more to read, only looks.
    async fn wait(&mut self, output: Output) -> Result<(), DriverGone> {
        let lingers = self.lingers(output);
        let RunState::Alive(supervisor) = &mut self.run else { return Ok(()) };
        self.time.hear(supervisor.run_time_ms());
        let now = self.time.now();
        let (due, timeout) = self.deadlines.next();
        let overdue = Instant::now() + until(now, due);
        let lingers_until = Instant::now() + self.exit_patience;
        let (signal_at, give_up_at) = match self.stopping {
            Stopping::Asked(at) => (at, overdue),
            Stopping::Signalled(at) => (overdue, at),
            Stopping::No | Stopping::Overdue => (overdue, overdue),
        };
        tokio::select! {
            // In this order: ending the process comes before reading its output.
            biased;
            Ok(()) = self.control.stop.changed() => self.on_stop().await?,
            () = tokio::time::sleep_until(signal_at), if matches!(self.stopping, Stopping::Asked(_)) => {
                self.signal().await;
            }
            // Each output restarts the wait.
            () = tokio::time::sleep_until(lingers_until), if lingers => self.signal().await,
            () = tokio::time::sleep_until(overdue), if self.stopping == Stopping::No && self.time.is_known() => {
                if self.time.now() >= due {
                    self.stopping = Stopping::Overdue;
                    self.sender.send_own(Event::TimeoutReached { timeout }).await?;
                }
            }
            Some(delivery) = self.control.deliveries.recv(), if output == Output::Drained => {
                self.deliver(delivery).await?;
            }
            Ok(()) = self.control.lease_ends.changed() => {
                let lifetime = lifetime(*self.control.lease_ends.borrow_and_update());
                // The next notice has the reason why a supervisor did not answer.
                let _ = supervisor.extend(lifetime).await;
            }
            notice = supervisor.next() => match notice {
                Ok(Notice::Grown { .. }) => {}
                Ok(Notice::Exited(record)) => self.run = RunState::Ended(record),
                Err(error) => {
                    self.run = RunState::reach(&self.dir, &self.trail).await;
                    if let (ProcessError::NotEnded { .. }, RunState::Lost) = (&error, &self.run) {
                        // Report it however the goal ends.
                        self.sender.send_own(Event::Notice { text: error.to_string() }).await?;
                    }
                }
            },
            () = tokio::time::sleep_until(give_up_at), if matches!(self.stopping, Stopping::Signalled(_)) => {
                // Whether that worked shows at the next look.
                let _ = supervisor.end().await;
                self.stopping = Stopping::Signalled(Instant::now() + END_PATIENCE);
            }
            () = std::future::ready(()), if output == Output::More => {}
        }
        Ok(())
    }

    /// Whether the agent has finished its work and its output, and still does not exit.
    fn lingers(&self, output: Output) -> bool {
        let is_over = self.input == Input::Closed && self.turn_is_over;
        is_over && self.stopping == Stopping::No && output == Output::Drained
    }

    async fn on_stop(&mut self) -> Result<(), DriverGone> {
        let level = *self.control.stop.borrow_and_update();
        match (level, self.stopping) {
            (StopLevel::Run, _) => {}
            (StopLevel::Stop | StopLevel::StopSpending, Stopping::No | Stopping::Overdue) => {
                let words = self.reading.steer(Steer::Interrupt);
                if level == StopLevel::StopSpending && words.is_empty() && self.may_spend {
                    self.kill().await;
                    return Ok(());
                }
                self.stopping = Stopping::Asked(Instant::now() + INTERRUPT_PATIENCE);
                self.act(words, None).await?;
            }
            (StopLevel::Stop | StopLevel::StopSpending, _) => {}
            (StopLevel::Kill, _) => self.kill().await,
        }
        Ok(())
    }

    /// Whether the budget was spent a moment ago. An answer would let the agent spend more.
    fn must_stop_spending(&self) -> bool {
        let is_to_stop = *self.control.stop.borrow() == StopLevel::StopSpending;
        is_to_stop && matches!(self.stopping, Stopping::No | Stopping::Overdue)
    }

    async fn kill(&mut self) {
        self.stopping = Stopping::Signalled(Instant::now() + END_PATIENCE);
        if let RunState::Alive(supervisor) = &self.run {
            // The next notice has the reason why a supervisor did not answer.
            let _ = supervisor.kill().await;
        }
    }

    async fn signal(&mut self) {
        self.stopping =
            Stopping::Signalled(Instant::now() + SIGNAL_PATIENCE + self.stop_grace + END_PATIENCE);
        if let RunState::Alive(supervisor) = &self.run {
            // As above.
            let _ = supervisor.stop().await;
        }
    }

    /// Reads the next chunk of the output and has it recorded.
    async fn read_chunk(&mut self) -> Result<Output, DriverGone> {
        if self.reading.take_in() == Output::Drained {
            return Ok(Output::Drained);
        }
        let heard_at = self.time_of(self.reading.offset());
        self.deadlines.heard(heard_at);
        let mut batch = Vec::new();
        while let Some((raw, actions)) = self.reading.next_line() {
            if actions.iter().all(|action| matches!(action, Action::Emit { .. })) {
                batch.extend(self.news(actions, Some(raw)));
            } else {
                // Everything up to here is recorded before the agent gets an answer.
                self.sender.send_and_wait(std::mem::take(&mut batch)).await?;
                self.act(actions, Some(raw)).await?;
            }
        }
        self.sender.send(batch).await?;
        Ok(Output::More)
    }

    /// Carries out the actions of a protocol. All events are recorded before anything else is done: a crash in between
    /// must not lose the rest of a line that counts as read.
    async fn act(&mut self, actions: Vec<Action>, raw: Option<RawRef>) -> Result<(), DriverGone> {
        let (events, requests) = apart(actions);
        let news = self.news(events, raw);
        if requests.is_empty() {
            return self.sender.send(news).await;
        }
        self.sender.send_and_wait(news).await?;
        for action in requests {
            match (action, &self.run) {
                (Action::Write(_), _) if self.must_stop_spending() => {}
                (Action::Write(bytes), _) => self.write(&bytes).await,
                // A process that is gone has its input closed.
                (Action::CloseStdin, RunState::Alive(supervisor)) => {
                    // The next notice has the reason why a supervisor did not answer.
                    let _ = supervisor.close_stdin().await;
                    self.input = Input::Closed;
                }
                (Action::CloseStdin | Action::Emit { .. }, _) => {}
            }
        }
        Ok(())
    }

    /// Events as news, without those that were recorded before.
    fn news(&mut self, actions: Vec<Action>, raw: Option<RawRef>) -> Vec<Incoming> {
        // Where nothing is recorded yet, an empty first line is not, either.
        let recorded =
            self.recorded_to > 0 && raw.is_some_and(|raw| raw.offset + raw.length <= self.recorded_to);
        let now = match raw {
            Some(raw) => self.time_of(raw.offset + raw.length),
            None => self.time.now(),
        };
        let mut news = Vec::new();
        for action in actions {
            let Action::Emit { event, parent } = action else { continue };
            self.take_note(&event, now);
            let is_due = match &event {
                AgentEvent::TurnEnded(_) => true,
                // It keeps spending, and can no longer be asked to stop.
                AgentEvent::Usage { used, .. } => {
                    self.turn_is_over && self.input == Input::Closed && is_use(used)
                }
                _ => false,
            };
            if is_due && let Stopping::Asked(_) = self.stopping {
                self.stopping = Stopping::Asked(Instant::now());
            }
            if !recorded {
                let event = Event::Agent { event };
                news.push(Incoming { source: Source::Agent, parent, raw, ..own(self.sender.stamp(), event) });
            }
        }
        news
    }

    /// When the output before `end` was there: now, unless it was there before this engine looked after the attempt.
    fn time_of(&mut self, end: u64) -> Timestamp {
        let was_there = end <= self.output_before;
        let then = if was_there { self.reading.time_of(end) } else { None };
        then.unwrap_or_else(|| self.time.now())
    }

    fn take_note(&mut self, event: &AgentEvent, now: Timestamp) {
        self.deadlines.saw(event, now);
        match event {
            AgentEvent::Decided(decision) if decision.outcome == Outcome::Deny => self.was_denied = true,
            AgentEvent::TurnStarted => (self.turn_is_over, self.may_spend) = (false, true),
            AgentEvent::TurnEnded(_) => (self.turn_is_over, self.may_spend) = (true, false),
            AgentEvent::Usage { used, .. } => self.may_spend |= is_use(used),
            AgentEvent::Asked(ask) => {
                let answered = ask.request.as_ref().and_then(|request| self.answered.remove(request));
                if let Some(answered_at) = answered {
                    self.deadlines.answered(answered_at);
                }
            }
            _ => {}
        }
    }

    /// Sends an answer or a message of the operator to the agent. If the agent cannot read it any more, it becomes part of
    /// the next prompt.
    async fn deliver(&mut self, delivery: Delivery) -> Result<(), DriverGone> {
        let (steer, answers) = match delivery.what {
            Delivered::Answer { question, request, reply } => {
                (Steer::Answer { request, reply }, Some(question))
            }
            Delivered::Message { n, text } => (Steer::Tell { message: n, text }, None),
        };
        let words = self.reading.steer(steer);
        let is_heard = words.iter().any(|action| matches!(action, Action::Write(_)));
        self.act(words, None).await?;
        match answers {
            // An adopted agent that does not wait any more was answered by an earlier engine.
            Some(question) if is_heard || self.output_before > 0 => {
                self.deadlines.answered(self.time.now());
                self.sender
                    .send_own(Event::AnswerDelivered { question, words: self.reading.refusal_words() })
                    .await
            }
            _ => Ok(()),
        }
    }

    /// Writes what was not written before.
    async fn write(&mut self, bytes: &[u8]) {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let rest: Vec<u8> = lines.flat_map(|line| self.sent.rest_of(line).into_owned()).collect();
        // What this answers may not be recorded.
        let is_late = *self.control.stop.borrow() == StopLevel::Kill;
        if let (RunState::Alive(supervisor), false) = (&self.run, rest.is_empty() || is_late) {
            // A process that does not read any more is about to end, and its end is what counts.
            let _ = supervisor.write(&rest).await;
            self.deadlines.heard(self.time.now());
        }
    }
}

/// Splits actions into events and everything else.
fn apart(actions: Vec<Action>) -> (Vec<Action>, Vec<Action>) {
    actions.into_iter().partition(|action| matches!(action, Action::Emit { .. }))
}

/// Whether the model was used, and not only its context reported.
fn is_use(used: &Usage) -> bool {
    !used.with_uncounted().is_empty()
}
