//! Having something happen to a goal from a second terminal: passed on to whoever drives it, or left for whoever does
//! next.

use std::collections::BTreeMap;

use towline_core::GoalId;
use towline_engine::{Reply, Request, Wish, ask};

use crate::context::Context;
use crate::failure::Failure;
use crate::find::Found;

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
    if pass_on(&found, wish.clone()).await? {
        return Ok(Taken::ByDriver);
    }
    let engine = context.engine(found.state, BTreeMap::new())?;
    let recorded = engine.leave_word(goal, wish.into()).await;
    engine.close().await;
    recorded?;
    Ok(Taken::Recorded)
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
