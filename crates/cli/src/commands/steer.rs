//! Having something happen to a goal from a second terminal: passed on to whoever drives it, or left for whoever does
//! next.

use std::sync::Arc;
use std::time::Duration;

use towline_core::GoalId;
use towline_engine::{EngineError, Reply, Request, Wish, ask};

use crate::context::{Context, State};
use crate::failure::Failure;
use crate::find::Found;

/// How often a process that has just begun to drive the goal is asked, and how long it is given in between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Who took the wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The process that drives the goal.
    ByDriver,
    /// Nobody yet: it is recorded.
    Recorded,
}

/// Passes the wish on, or records it.
pub(crate) async fn steer(context: &Context, found: Found, wish: Wish) -> Result<Taken, Failure> {
    let goal = found.record.goal.id;
    let (home, store) = (found.state.home.clone(), Arc::clone(&found.state.store));
    let mut record = found.record;
    for _ in 1..TRIES {
        let state = State { home: home.clone(), store: Arc::clone(&store) };
        match steer_once(context, Found { state, record }, wish.clone()).await? {
            Some(taken) => return Ok(taken),
            None => tokio::time::sleep(PAUSE).await,
        }
        record = store.load(goal).await?;
    }
    let found = Found { state: State { home, store }, record };
    steer_once(context, found, wish).await?.ok_or_else(|| EngineError::Busy { goal }.into())
}

/// Passes the wish on, or records it; neither where a process has just begun to drive the goal and does not listen yet.
async fn steer_once(context: &Context, found: Found, wish: Wish) -> Result<Option<Taken>, Failure> {
    let goal = found.record.goal.id;
    if pass_on(&found, wish.clone()).await? {
        return Ok(Some(Taken::ByDriver));
    }
    let engine = context.engine(found.state)?;
    let recorded = engine.leave_word(goal, wish.into()).await;
    engine.close().await;
    match recorded {
        Ok(()) => Ok(Some(Taken::Recorded)),
        Err(EngineError::Busy { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether somebody drives the goal and has done what was wished.
pub(crate) async fn pass_on(found: &Found, wish: Wish) -> Result<bool, Failure> {
    let goal = found.record.goal.id;
    let asked = ask(&found.state.home, &found.record, &Request::Wish { goal, wish }).await;
    match asked.map_err(unreachable)? {
        Some(Reply::Accepted) => Ok(true),
        Some(Reply::Refused { why }) => Err(refused(goal, &why)),
        Some(_) => Err(Failure::internal("the process that drives the goal did not understand the request")
            .hint("it may be another version of towline: end it with Ctrl-C in its terminal")),
        None => Ok(false),
    }
}

fn refused(goal: GoalId, why: &str) -> Failure {
    Failure::usage(format!("goal {}: {why}", goal.short()))
}

pub(crate) fn unreachable(error: std::io::Error) -> Failure {
    Failure::internal(format!("cannot reach the process that drives the goal: {error}"))
}
