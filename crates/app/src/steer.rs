//! Having something happen to a goal from outside: the engine that runs it does it, or it is recorded for the next one.

use std::sync::Arc;
use std::time::Duration;

use towline_agent::{Ability, agent};
use towline_core::{Event, GoalId, Illegal, Phase, QuestionNo, Seq};
use towline_engine::{EngineError, Following, GoalCommand, Reply, Request, Steerer, ask, is_supervised};
use towline_process::own_number;
use towline_store::GoalRecord;

use crate::agents::agents_of;
use crate::context::{Context, State};
use crate::error::{Action, Error};
use crate::find::{self, Found};
use crate::next_steps::way_to_continue;
use crate::server::server_of;

/// How often an engine that has just begun to run the goal is asked, and the pause in between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Who took the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// The engine that runs the goal, or the server that will.
    ByDriver,
    /// No engine is running the goal: the command is recorded.
    Recorded {
        /// How the goal continues.
        next: Action,
    },
}

/// Passes the request on, or records it.
pub(crate) async fn steer(context: &Context, found: Found, command: GoalCommand) -> Result<Taken, Error> {
    let goal = found.record.goal.id;
    let (home, store) = (found.state.home.clone(), Arc::clone(&found.state.store));
    let mut record = found.record;
    for _ in 1..TRIES {
        let state = State { home: home.clone(), store: Arc::clone(&store) };
        match steer_once(context, Found { state, record }, command.clone()).await? {
            Some(taken) => return Ok(taken),
            None => tokio::time::sleep(PAUSE).await,
        }
        record = store.load(goal).await?;
    }
    let found = Found { state: State { home, store }, record };
    steer_once(context, found, command).await?.ok_or_else(|| EngineError::Busy { goal }.into())
}

/// Passes the request on, or records it; neither where an engine has just begun to run the goal and does not listen yet.
async fn steer_once(context: &Context, found: Found, command: GoalCommand) -> Result<Option<Taken>, Error> {
    let goal = found.record.goal.id;
    if pass_on(&found, command.clone()).await? {
        return Ok(Some(Taken::ByDriver));
    }
    let (home, store) = (found.state.home.clone(), Arc::clone(&found.state.store));
    let engine = context.engine(found.state)?;
    let recorded = engine.record_request(goal, command.into()).await;
    engine.close().await;
    match recorded {
        // The server acts on it.
        Ok(()) if server_of(&home)?.is_some() => Ok(Some(Taken::ByDriver)),
        // The request may have moved the goal.
        Ok(()) => {
            Ok(Some(Taken::Recorded { next: way_to_continue(goal, &store.load(goal).await?.state.phase) }))
        }
        Err(EngineError::Busy { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether an engine runs the goal and has done what was requested.
pub(crate) async fn pass_on(found: &Found, command: GoalCommand) -> Result<bool, Error> {
    let goal = found.record.goal.id;
    let asked = ask(&found.state.home, &found.record, &Request::Command { goal, command }).await;
    match asked.map_err(unreachable)? {
        Some(Reply::Accepted) => Ok(true),
        Some(Reply::Refused { why }) => Err(Error::usage(format!("goal {}: {why}", goal.short()))),
        Some(_) => Err(Error::internal("the process that drives the goal did not understand the request")
            .hint("it may be another version of towline: end it with Ctrl-C in its terminal")),
        None => Ok(false),
    }
}

/// Follows a goal's log after `after` while an engine runs the goal. Engines refuse that to what an agent, a check or setup started.
pub async fn follow(found: &Found, after: Seq) -> Result<Following, Error> {
    let State { home, store } = &found.state;
    if own_number().is_none_or(|pid| is_supervised(home.root(), pid).unwrap_or(true)) {
        let what = "an agent, check or setup command cannot follow goals";
        return Err(Error::usage(what).hint("run this command in a terminal of your own"));
    }
    towline_engine::follow(home, Arc::clone(store), &found.record, after).await.map_err(unreachable)
}

/// An engine that runs the goal and cannot be talked to.
fn unreachable(error: std::io::Error) -> Error {
    Error::internal(format!("cannot reach the process that drives the goal: {error}"))
}

/// Stops the goal through the engine that runs it, or here when none does, and waits until no process is left. Returns the goal.
pub async fn halt(context: &Context, id: &str, command: GoalCommand) -> Result<GoalId, Error> {
    let found = find::goal(context, id).await?;
    let goal = found.record.goal.id;
    let event = Event::from(command.clone());
    let name = event.request();
    let mut phase = None;
    if pass_on(&found, command.clone()).await? {
        phase = Some(wait_for_its_end(&found).await?).filter(Phase::is_settled);
    }
    let phase = match phase {
        Some(phase) => phase,
        // No engine runs it, or the engine ended before it could record the stop.
        None => end_it_ourselves(context, found, event).await?,
    };
    let is_halted = match &phase {
        Phase::Cancelled => command == GoalCommand::Cancel,
        phase => matches!(phase, Phase::Paused { .. }) && command == GoalCommand::Pause,
    };
    if !is_halted {
        // It came to another end in the same moment.
        let illegal = Illegal::WrongPhase { phase: phase.name(), event: name };
        return Err(EngineError::Illegal { goal, illegal }.into());
    }
    Ok(goal)
}

async fn wait_for_its_end(found: &Found) -> Result<Phase, Error> {
    let mut following = follow(found, found.record.last_seq).await?;
    while following.next().await?.is_some() {}
    Ok(found.state.store.load(found.record.goal.id).await?.state.phase)
}

async fn end_it_ourselves(context: &Context, found: Found, event: Event) -> Result<Phase, Error> {
    let engine = context.engine(found.state)?;
    let handle = engine.resume(found.record.goal.id, Some(event)).await?;
    let record = handle.result().await;
    engine.close().await;
    Ok(record?.state.phase)
}

/// How a watcher of a goal reaches the engine that runs it.
pub enum Steering {
    /// It is in this process.
    Own(Steerer),
    /// It is in another process.
    Other {
        /// What the request is recorded with while no engine runs the goal.
        context: Box<Context>,
        /// Where the goal is stored.
        state: State,
    },
}

impl Steering {
    /// Sends a request; gives back why it was refused. A goal that has ended meanwhile needs none.
    pub async fn send(&self, goal: GoalId, command: GoalCommand) -> Result<(), String> {
        match self {
            Self::Own(steerer) => match steerer.send(command.into()).await {
                Some(Err(illegal)) => Err(illegal.to_string()),
                Some(Ok(())) | None => Ok(()),
            },
            Self::Other { context, state } => {
                let record = state.store.load(goal).await.map_err(|error| error.to_string())?;
                let found = Found { state: state.clone(), record };
                steer(context, found, command).await.map(drop).map_err(|error| error.message())
            }
        }
    }
}

/// An answer that was given.
pub struct Answered {
    /// The number of the question.
    pub question: QuestionNo,
    /// The question in short.
    pub title: String,
    /// The answer in words.
    pub words: String,
    /// How the goal continues, where no engine runs it.
    pub next: Option<Action>,
}

/// Answers the question with this number, or the first open one.
pub async fn answer(context: &Context, id: &str, number: Option<u32>, text: &str) -> Result<Answered, Error> {
    let found = find::goal(context, id).await?;
    let (goal, state) = (found.record.goal.id, &found.record.state);
    let open = match number {
        None => state.open_question(),
        Some(n) => state.question(QuestionNo(n)).filter(|question| question.is_open()),
    };
    let Some(open) = open else {
        let what =
            number.map_or_else(|| "has no open question".to_owned(), |n| format!("has no open question {n}"));
        return Err(Error::usage(format!("goal {} {what}", goal.short()))
            .hint([("list what is asked", Action::Questions)]));
    };
    let (question, title) = (open.n, open.ask.title());
    let reply = open
        .ask
        .read_answer(text)
        .map_err(|bad| Error::usage(format!("{bad}\n  the question: {}", context.secrets.brief(&title))))?;
    let words = reply.words();
    let next = match steer(context, found, GoalCommand::Answer { question, reply }).await? {
        Taken::ByDriver => None,
        Taken::Recorded { next } => Some(next),
    };
    Ok(Answered { question, title, words, next })
}

/// When an agent gets a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// While it works, as it can; none where its settings cannot be read.
    Running(Option<Ability>),
    /// When its work fails the checks.
    Checking,
    /// When the engine that runs the goal starts it again.
    Waiting,
    /// When the goal is continued, for no engine runs it.
    Recorded { next: Action },
}

/// Sends a message to the agent of a goal.
pub async fn send_message(context: &Context, id: &str, text: String) -> Result<Arrival, Error> {
    let found = find::goal(context, id).await?;
    let arrival = match &found.record.state.phase {
        phase if phase.living_attempt().is_some() => Arrival::Running(steering_of(context, &found.record)),
        Phase::Checking { .. } => Arrival::Checking,
        _ => Arrival::Waiting,
    };
    match steer(context, found, GoalCommand::Tell { text }).await? {
        Taken::ByDriver => Ok(arrival),
        Taken::Recorded { next } => Ok(Arrival::Recorded { next }),
    }
}

/// How the agent of the last attempt gets messages.
fn steering_of(context: &Context, record: &GoalRecord) -> Option<Ability> {
    let agents = agents_of(context, &record.goal).ok()?.agents;
    let settings = agents.get(&record.state.last_attempt()?.agent)?;
    Some(agent(settings.kind).abilities(settings).steering)
}
