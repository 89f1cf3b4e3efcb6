//! Requests of the operator for a goal.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use towline_api::{NewAnswer, NewMessage, NewRetry};
use towline_app::{Context, answer as give_answer, halt, reopen, send_message};
use towline_core::{GoalId, NextSession};
use towline_engine::GoalCommand;

use crate::app::{App, Shared, in_background};
use crate::goals;
use crate::problem::Problem;
use crate::query;
use crate::reply::Handled;

pub(crate) async fn answer(State(app): Shared, Path(id): Path<String>, body: Bytes) -> Handled {
    let NewAnswer { text, question } = query::json(&body)?;
    let (goal, context) = begin(&app, &id).await?;
    give_answer(&context, &goal.to_string(), question, &text).await?;
    after(&app, &context, goal).await
}

pub(crate) async fn tell(State(app): Shared, Path(id): Path<String>, body: Bytes) -> Handled {
    let NewMessage { text } = query::json(&body)?;
    if text.trim().is_empty() {
        return Err(Problem::unprocessable("`text` is empty"));
    }
    let (goal, context) = begin(&app, &id).await?;
    send_message(&context, &goal.to_string(), text).await?;
    after(&app, &context, goal).await
}

pub(crate) async fn pause(State(app): Shared, Path(id): Path<String>) -> Handled {
    let (goal, context) = begin(&app, &id).await?;
    halt(&context, &goal.to_string(), GoalCommand::Pause).await?;
    after(&app, &context, goal).await
}

pub(crate) async fn cancel(State(app): Shared, Path(id): Path<String>) -> Handled {
    let (goal, context) = begin(&app, &id).await?;
    halt(&context, &goal.to_string(), GoalCommand::Cancel).await?;
    after(&app, &context, goal).await
}

pub(crate) async fn resume(State(app): Shared, Path(id): Path<String>) -> Handled {
    continue_with(&app, &id, GoalCommand::Resume, Vec::new()).await
}

pub(crate) async fn retry(State(app): Shared, Path(id): Path<String>, body: Bytes) -> Handled {
    let NewRetry { budget, checks, fresh, model } = query::json_or_default(&body)?;
    let session = if fresh { NextSession::Fresh } else { NextSession::Resumed };
    let command = GoalCommand::Retry { budget: query::budget(&budget)?, session, model };
    continue_with(&app, &id, command, checks).await
}

async fn continue_with(app: &App, id: &str, command: GoalCommand, checks: Vec<String>) -> Handled {
    let (goal, context) = begin_in_repository(app, id).await?;
    let worker = context.clone();
    let reopened =
        in_background(app, async move { reopen(&worker, &goal.to_string(), command, &checks).await });
    reopened.await??;
    after(app, &context, goal).await
}

/// The goal of a request, which must be there, and the context that knows its secrets.
pub(crate) async fn begin(app: &App, id: &str) -> Result<(GoalId, Context), Problem> {
    let context = app.context();
    let goal = app.goal(&context, id).await?.record.goal.id;
    Ok((goal, context))
}

/// The same for a request that also reads the goal's repository.
pub(crate) async fn begin_in_repository(app: &App, id: &str) -> Result<(GoalId, Context), Problem> {
    let context = app.context();
    let goal = app.goal(&context, id).await?.record.goal;
    let answered = context.know_secrets_of(&goal).await;
    answered.map_err(|silent| goals::unread(&goal.workspace.repository, silent))?;
    Ok((goal.id, context))
}

/// The goal as it is now.
async fn after(app: &App, context: &Context, goal: GoalId) -> Handled {
    let record = app.store().load(goal).await?;
    goals::shown(app, context, &record, StatusCode::OK)
}
