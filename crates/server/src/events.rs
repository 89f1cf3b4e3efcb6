//! The log of a goal, and the logs of all goals together: in pages, or as they grow.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::Response;
use towline_api::EventPage;
use towline_core::{PoolSeq, Seq};

use crate::app::App;
use crate::authority;
use crate::problem::Problem;
use crate::query::Query;
use crate::reply::{self, Handled};
use crate::sse;

pub(crate) async fn of_goal(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Handled {
    let goal = app.goal_id(&app.context(), &id).await?;
    let query = Query::of(&uri, &["cursor", "limit"])?;
    let limit = query.limit()?;
    let after = last_id(&headers)?.or(query.place()?).map_or(Seq(0), Seq);
    // It must be there, also when nothing follows.
    let last = app.store().load(goal).await?.last_seq;
    if wants_stream(&headers) {
        let session = authority::session(&app, &headers);
        return sse::follow_goal(app, session, goal, (after, last)).await;
    }
    let events = app.store().events(goal, after, limit).await?;
    let cursor = events.last().map(|last| last.seq.to_string());
    let events: Result<Vec<_>, _> = events.iter().map(serde_json::to_value).collect();
    let events = events.map_err(|error| Problem::internal(format!("an event cannot be written: {error}")))?;
    reply::json(&app.context(), StatusCode::OK, &EventPage { events, cursor })
}

/// Everything that happens from now on, or after the place that the client has seen last.
pub(crate) async fn of_pool(
    State(app): State<Arc<App>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = Query::of(&uri, &["cursor"])?;
    let after = last_id(&headers)?.or(query.place()?).map(PoolSeq);
    let session = authority::session(&app, &headers);
    sse::follow_pool(app, session, after).await
}

/// The last event that a client has seen, when it comes back.
fn last_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let wrong = || Problem::bad_request("`Last-Event-ID` is not one that this server gave");
    let Some(given) = headers.get("last-event-id") else { return Ok(None) };
    let given = given.to_str().map_err(|_| wrong())?;
    if given.is_empty() { Ok(None) } else { given.parse().map(Some).map_err(|_| wrong()) }
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|kinds| kinds.to_str().ok());
    accepted.flat_map(|kinds| kinds.split(',')).any(|kind| kind.trim().starts_with("text/event-stream"))
}
