//! Continuing a goal that exists: here, or in the process that runs it.

use std::sync::Arc;

use towline_core::{Event, GoalId, NextSession, Phase};
use towline_engine::{GoalCommand, is_driven};
use towline_store::GoalRecord;

use crate::agents::{GoalAgents, agents_of};
use crate::context::{Context, State};
use crate::draft::commands_as_checks;
use crate::error::{Action, Error};
use crate::find::{self, Found};
use crate::server::server_of;
use crate::steer::pass_on;

/// How a goal continues.
pub enum Resumption {
    /// In the process that runs it, which has done what was requested.
    PassedOn(GoalId),
    /// In the process that runs it, as before.
    Elsewhere(Box<Found>),
    /// In this process.
    Here {
        found: Box<Found>,
        agents: GoalAgents,
        /// What is recorded first, in this order: all of it or nothing.
        requests: Vec<Event>,
    },
}

/// Decides how a goal continues, with other checks if there are any. Without a command it continues from where it is.
pub async fn resume(
    context: &Context,
    id: &str,
    command: Option<GoalCommand>,
    checks: &[String],
) -> Result<Resumption, Error> {
    let found = Box::new(find::goal(context, id).await?);
    let checks = commands_as_checks(checks)?;
    let phase = &found.record.state.phase;
    if matches!(command, Some(GoalCommand::Retry { .. })) && matches!(phase, Phase::Blocked { .. }) {
        must_not_ask(context, &found)?;
    }
    let waits = matches!(phase, Phase::Sleeping { .. } | Phase::Limited { .. });
    match &command {
        _ if !checks.is_empty() => {}
        None if runs_elsewhere(&found) => return Ok(Resumption::Elsewhere(found)),
        Some(command) if waits && pass_on(&found, command.clone()).await? => {
            return Ok(Resumption::PassedOn(found.record.goal.id));
        }
        _ => {}
    }
    let agents = agents_of(context, &found.record.goal)?;
    let command = command.or_else(|| for_new_checks(phase).filter(|_| !checks.is_empty()));
    let replaced = (!checks.is_empty()).then_some(Event::ChecksReplaced { checks });
    let requests: Vec<Event> = replaced.into_iter().chain(command.map(Event::from)).collect();
    match server_of(&found.state.home)? {
        Some(_) => by_server(context, *found, requests).await,
        None => Ok(Resumption::Here { found, agents, requests }),
    }
}

/// Refuses a goal that continues with the answer to its question, and with nothing else.
fn must_not_ask(context: &Context, found: &Found) -> Result<(), Error> {
    let GoalRecord { goal, state, .. } = &found.record;
    let Some(open) = state.open_question() else { return Ok(()) };
    let title = context.secrets.brief(&open.ask.title());
    Err(Error::usage(format!("goal {} waits for an answer: {title}", goal.id.short()))
        .hint([("it continues with one", Action::Answer(goal.id, open.n.0))]))
}

/// Has the server continue the goal.
async fn by_server(context: &Context, found: Found, requests: Vec<Event>) -> Result<Resumption, Error> {
    let (goal, State { home, store }) = (found.record.goal.id, found.state);
    if !requests.is_empty() {
        let engine = context.engine(State { home: home.clone(), store: Arc::clone(&store) })?;
        let recorded = engine.record_requests(goal, requests).await;
        engine.close().await;
        recorded?;
    }
    let record = store.load(goal).await?;
    Ok(Resumption::Elsewhere(Box::new(Found { state: State { home, store }, record })))
}

/// Has a goal continue in the server's pool: its engine does it at once, or the requests are recorded and the goal waits for a slot.
pub async fn reopen(
    context: &Context,
    id: &str,
    command: GoalCommand,
    checks: &[String],
) -> Result<GoalId, Error> {
    match resume(context, id, Some(command), checks).await? {
        Resumption::PassedOn(goal) => Ok(goal),
        Resumption::Elsewhere(found) => Ok(found.record.goal.id),
        Resumption::Here { found, requests, .. } => {
            let goal = found.record.goal.id;
            let engine = context.engine(found.state)?;
            let recorded = engine.record_requests(goal, requests).await;
            engine.close().await;
            recorded?;
            Ok(goal)
        }
    }
}

/// New checks for a goal that has ended are a request to judge it again.
fn for_new_checks(phase: &Phase) -> Option<GoalCommand> {
    let retry = GoalCommand::Retry { budget: Vec::new(), session: NextSession::Resumed, model: None };
    match phase {
        Phase::Paused { .. } => Some(GoalCommand::Resume),
        phase => phase.is_settled().then_some(retry),
    }
}

/// Whether another process runs the goal.
pub fn runs_elsewhere(found: &Found) -> bool {
    is_driven(&found.state.home, found.record.lease.as_ref())
}
