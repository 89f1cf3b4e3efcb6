//! Reading what is not about one goal: questions, projects, the queue, agents, accounts, spending.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use jiff::tz::TimeZone;
use towline_api::{AgentLine, ProjectLine};
use towline_app::CostBy;
use towline_app::inspect::list_agents;
use towline_app::report::{asking, open_questions};

use crate::app::{Shared, in_background};
use crate::health;
use crate::problem::Problem;
use crate::query::Query;
use crate::reply::{self, Handled};

/// From when on costs are shown.
const COST_SINCE: &str = "30d";
/// The longest name of an account.
const LONGEST_NAME: usize = 128;

pub(crate) async fn questions(State(app): Shared) -> Handled {
    let context = app.context();
    let records = asking(&context).await?;
    reply::json(&context, StatusCode::OK, &open_questions(&records))
}

pub(crate) async fn projects(State(app): Shared) -> Handled {
    let mut projects: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for ((repository, phase), count) in health::counts(&app).await?.iter() {
        projects.entry(repository.clone()).or_default().insert((*phase).to_owned(), *count);
    }
    let lines = projects.into_iter().map(|(repository, goals)| ProjectLine { repository, goals });
    reply::json(&app.context(), StatusCode::OK, &lines.collect::<Vec<_>>())
}

pub(crate) async fn queue(State(app): Shared) -> Handled {
    let context = app.context();
    reply::json(&context, StatusCode::OK, &towline_app::queue(&context, app.now()).await?)
}

pub(crate) async fn agents(State(app): Shared) -> Handled {
    let context = app.context().current();
    let worker = context.clone();
    let list = in_background(&app, async move { list_agents(&worker).await }).await??;
    let lines: Vec<&AgentLine> = list.lines.iter().map(|(line, _)| line).collect();
    reply::json(&context, StatusCode::OK, &lines)
}

pub(crate) async fn accounts(State(app): Shared) -> Handled {
    let context = app.context();
    reply::json(&context, StatusCode::OK, &towline_app::accounts(&context).await?)
}

/// Lets the next goal of an account find out whether it works again.
pub(crate) async fn open_account(State(app): Shared, Path(name): Path<String>) -> Handled {
    if name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(Problem::not_found("no account has such a name"));
    }
    let context = app.context();
    reply::json(&context, StatusCode::OK, &towline_app::open_account(&context, &name, app.now()).await?)
}

pub(crate) async fn cost(State(app): Shared, uri: Uri) -> Handled {
    let query = Query::of(&uri, &["by", "since"])?;
    let wanted = query.get("by").unwrap_or("day");
    let by = CostBy::NAMES.into_iter().find(|(name, _)| *name == wanted).map(|(_, by)| by);
    let by = by.ok_or_else(|| Problem::bad_request("`by` is day, project, account, agent, model or goal"))?;
    let (context, time_zone) = (app.context(), TimeZone::system());
    let since = towline_app::since(query.get("since").unwrap_or(COST_SINCE), app.now(), &time_zone)?;
    reply::json(&context, StatusCode::OK, &towline_app::cost(&context, by, since, &time_zone).await?)
}
