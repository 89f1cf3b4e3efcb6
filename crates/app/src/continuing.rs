//! A new goal that continues the conversation of an earlier one, at the same path and with a base and checks of its own.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use towline_agent::{AgentSettings, Resuming, agent};
use towline_core::{Confined, Continuation, GoalId, ModelChoice, SessionBinding};
use towline_store::{GoalRecord, StoreError};
use towline_workspace::Repository;

use crate::agents::{agents_of, not_configured};
use crate::context::Context;
use crate::draft::{Draft, Request, draft};
use crate::error::{Action, Error};
use crate::find::{self, Found};
use crate::notice::Notice;

/// How often a goal that is not there is looked for, and the pause in between.
const LOOKS: u32 = 20;
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// Makes a goal that continues the conversation of an earlier one. Everything is checked before anything is created.
pub async fn draft_continuing(
    context: &Context,
    request: Request,
    found: &Found,
    now: Timestamp,
) -> Result<Draft, Error> {
    let earlier = &found.record;
    let (goal, state) = (&earlier.goal, &earlier.state);
    let session = session_of(earlier, successor_of(found).await?)?;
    let agents = agents_of(context, goal)?.agents;
    must_resume(goal.id, session, agents.get(&session.agent))?;
    must_be_here(context, earlier)?;
    let in_place = goal.workspace.mode.is_in_place();
    let mut request = for_session(request, session)?;
    request.model = request.model.or_else(|| state.model.clone()).or_else(|| goal.model.clone());
    request.in_place |= in_place;
    if !in_place && request.base.is_none() && !request.include_dirty {
        request.base = candidate_in(earlier);
    }
    let mut draft = draft(context, &request, now).await?;
    if draft.goal.workspace.mode != goal.workspace.mode {
        return Err(refusal(goal.id, "it worked in a clone").hint("leave `mode` out, or set it to \"clone\""));
    }
    let base = draft.goal.workspace.base.clone();
    draft.notices.push(Notice::Continues { goal: goal.id, agent: session.agent.clone(), base });
    draft.goal.continues = Some(Continuation {
        goal: goal.id,
        place: goal.place(),
        // The time since its last use is not held against it.
        session: SessionBinding { since: now, ..session.clone() },
        used: state.used_in_session(goal, &session.native_id, None),
        confined: Some(Confined { by: state.confined_by() }),
    });
    Ok(draft)
}

/// Hands the conversation and the place of a goal over to the one that continues it.
pub async fn hand_over(context: &Context, earlier: Found, to: GoalId) -> Result<(), Error> {
    let (goal, gone) = (earlier.record.goal.id, earlier.record.state.continued_by);
    let engine = context.engine(earlier.state)?;
    let handed = match engine.hold_place(goal).await {
        Ok(mut held) => {
            let handed = held.hand_to(to, gone).await;
            held.give_back().await;
            handed
        }
        Err(error) => Err(error),
    };
    engine.close().await;
    Ok(handed?)
}

/// The goal that continues an earlier one. It may never have been created, if the process that did so was killed, or be removed.
async fn successor_of(earlier: &Found) -> Result<Option<GoalId>, Error> {
    let Some(by) = earlier.record.state.continued_by else { return Ok(None) };
    // It may be just being created.
    for _ in 0..LOOKS {
        if !matches!(earlier.state.store.load(by).await, Err(StoreError::NotFound(_))) {
            return Ok(Some(by));
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
    Ok(None)
}

/// The conversation of a goal that is over, unless there is none to continue.
fn session_of(earlier: &GoalRecord, successor: Option<GoalId>) -> Result<&SessionBinding, Error> {
    let (id, state) = (earlier.goal.id, &earlier.state);
    if !state.phase.has_ended() {
        return Err(refusal(id, &format!("it is {}", state.phase.name()))
            .hint([("end it first", Action::Cancel(id))]));
    }
    if let Some(by) = successor {
        return Err(refusal(id, &format!("goal {} continues it already", by.short()))
            .hint([("see that goal", Action::Show(by))]));
    }
    let path = state.workspace.as_ref().map(|workspace| &workspace.path);
    let is_here =
        |session: &&SessionBinding| state.continued_by.is_some() || Some(&session.directory) == path;
    let session = state.session.as_ref().filter(is_here);
    session.ok_or_else(|| refusal(id, "it has none").hint([("start a new one", Action::Run)]))
}

fn must_resume(id: GoalId, session: &SessionBinding, settings: Option<&AgentSettings>) -> Result<(), Error> {
    let name = &session.agent;
    let why = match settings {
        None => not_configured(name),
        Some(settings) if agent(settings.kind).resuming(settings) == Resuming::Never => {
            format!("agent `{name}` cannot resume conversations")
        }
        Some(_) => return Ok(()),
    };
    Err(refusal(id, &why).hint([("start a new one", Action::Run)]))
}

/// Fails in a directory that is not the earlier goal's.
fn must_be_here(context: &Context, earlier: &GoalRecord) -> Result<(), Error> {
    let repository = &earlier.goal.workspace.repository;
    let folder = || Some(context.directory.canonicalize().ok()?.display().to_string());
    match find::repository_here(context).or_else(folder) {
        Some(here) if here == *repository => Ok(()),
        _ => {
            Err(refusal(earlier.goal.id, &format!("it belongs to {repository}"))
                .hint("run the command there"))
        }
    }
}

/// The request for the agent and the model that hold the conversation.
fn for_session(mut request: Request, session: &SessionBinding) -> Result<Request, Error> {
    let name = session.agent.as_str();
    match request.agents.first() {
        None => request.agents = vec![name.to_owned()],
        Some(first) if first == name => {}
        Some(first) => {
            return Err(Error::usage(format!("`{first}` cannot continue the conversation of `{name}`"))
                .hint(format!("leave the agent out, or name {name} first")));
        }
    }
    let model = request.model.clone().map_or(ModelChoice::Unknown, ModelChoice::Named);
    if model.differs_from(&session.asked_model) {
        return Err(Error::usage(format!(
            "the conversation was held with another model ({})",
            session.asked_model
        ))
        .hint("leave the model out, or start a new conversation"));
    }
    Ok(request)
}

/// The earlier goal's work as a base, where the user's repository has it.
fn candidate_in(earlier: &GoalRecord) -> Option<String> {
    let candidate = earlier.state.candidate.as_ref()?.to_string();
    let repository = Repository::at(Path::new(&earlier.goal.workspace.repository)).ok()?;
    repository.resolve(&candidate).is_ok().then_some(candidate)
}

fn refusal(goal: GoalId, why: &str) -> Error {
    Error::usage(format!("the conversation of goal {} cannot be continued: {why}", goal.short()))
}
