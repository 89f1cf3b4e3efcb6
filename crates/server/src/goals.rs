//! Listing, creating and showing goals.

use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use towline_api::{ErrorKind, GoalPage, NewGoal, NewPrerequisite, OriginReport};
use towline_app::report::{goal_lines, goal_report};
use towline_app::{Context, Request, draft, find, submit};
use towline_core::{Need, Origin, Phase};
use towline_engine::NoAnswer;
use towline_store::{Cursor, GoalRecord, Listing};

use crate::app::{App, in_background};
use crate::cursor;
use crate::once::ReservedId;
use crate::problem::Problem;
use crate::query::{self, Query};
use crate::reply::{self, Handled};

/// Where goals come from that are created here, unless the request names another channel.
const CHANNEL: &str = "http";

pub(crate) async fn list(State(app): State<Arc<App>>, uri: Uri) -> Handled {
    let query = Query::of(&uri, &["phase", "repository", "cursor", "limit"])?;
    let limit = query.limit()?;
    let after = query.cursor().map(cursor::read).transpose()?;
    let listing = Listing {
        phases: phases(query.get("phase"))?,
        repository: query.get("repository").map(str::to_owned),
        after: after.map(|(created_at, id)| Cursor { created_at, id }),
        ..Listing::first(limit)
    };
    let listed = app.store().list(&listing).await?;
    let last = listed.last().filter(|_| listed.len() == limit).map(|last| last.cursor());
    let context = app.context();
    let goals = goal_lines(&context, &app.state, &listed).await;
    let page = GoalPage { goals, cursor: last.map(|last| cursor::of(last.created_at, last.id)) };
    reply::json(&context, StatusCode::OK, &page)
}

/// The phases of a list such as `queued,running`.
fn phases(given: Option<&str>) -> Result<Vec<&'static str>, Problem> {
    let known = |name: &str| {
        Phase::names().iter().find(|known| **known == name).copied().ok_or_else(|| {
            Problem::bad_request(format!("there is no phase `{name}`"))
                .hint(format!("phases: {}", Phase::names().join(", ")))
        })
    };
    given.map_or_else(|| Ok(Vec::new()), |given| given.split(',').map(known).collect())
}

pub(crate) async fn create(
    State(app): State<Arc<App>>,
    reserved: Option<Extension<ReservedId>>,
    body: Bytes,
) -> Handled {
    let id = reserved.map(|Extension(ReservedId(id))| id);
    if let Some(id) = id {
        match find::load(&app.context(), app.state.clone(), id).await {
            // The request was cut off after this.
            Ok(found) => return created(&app, &app.context(), &found.record),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    let new: NewGoal = query::json(&body)?;
    let context = app.context_in(directory(&app, &new.repository).await?);
    let request = Request { id, ..request(new)? };
    let (worker, now) = (context.clone(), app.now());
    let submitted = in_background(&app, async move {
        let draft = draft(&worker, &request, now).await?;
        submit(&worker, draft).await
    });
    created(&app, &context, &submitted.await??)
}

/// The reply to a request that created this goal.
fn created(app: &App, context: &Context, record: &GoalRecord) -> Handled {
    let mut reply = shown(app, context, record, StatusCode::CREATED)?;
    let location = format!("{}/goals/{}", towline_api::routes::PREFIX, record.goal.id);
    if let Ok(location) = HeaderValue::from_str(&location) {
        reply.headers_mut().insert(header::LOCATION, location);
    }
    Ok(reply)
}

/// The directory that a goal is for. The operator may name any.
async fn directory(app: &App, given: &str) -> Result<PathBuf, Problem> {
    let path = PathBuf::from(given);
    let wrong = |why: &str| Problem::unprocessable(format!("`repository` {why}"));
    if !path.is_absolute() || given.contains('\0') {
        return Err(wrong("must be an absolute path"));
    }
    let look = move || path.canonicalize().ok().filter(|path| path.is_dir());
    let found = app.context().reads.read(given, look).await.map_err(|silent| unread(given, silent))?;
    found.ok_or_else(|| wrong("is not a directory of this machine"))
}

/// A thread that waits for a directory that does not answer would never end, so no request waits for one.
pub(crate) fn unread(directory: &str, silent: NoAnswer) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, format!("{directory} cannot be read: {silent}"))
}

fn request(new: NewGoal) -> Result<Request, Problem> {
    if new.prompt.trim().is_empty() {
        return Err(Problem::unprocessable("`prompt` is empty"));
    }
    if new.agents.as_ref().is_some_and(Vec::is_empty) {
        return Err(Problem::unprocessable("`agents` is empty").hint("name at least one, or leave it out"));
    }
    let origin = new.origin.map_or_else(
        || Origin { channel: CHANNEL.to_owned(), thread: None, by: None },
        |OriginReport { channel, thread, by }| Origin { channel, thread, by },
    );
    Ok(Request {
        prompt: Some(new.prompt),
        checks: new.checks,
        agents: new.agents.unwrap_or_default(),
        model: new.model,
        budget: query::budget(&new.budget)?,
        base: new.base,
        red_first: new.red_first,
        unprotect: new.unprotect,
        after: new.after.into_iter().map(prerequisite).collect::<Result<_, _>>()?,
        priority: Some(new.priority),
        labels: new.labels,
        touches: new.touches,
        metadata: new.metadata,
        origin: Some(origin),
        ..Request::default()
    })
}

fn prerequisite(given: NewPrerequisite) -> Result<(String, Need), Problem> {
    let goal = query::part_of_id(&given.goal)?.to_owned();
    let need = serde_json::from_value(given.need.into());
    Ok((goal, need.map_err(|_| Problem::unprocessable("`need` is `done` or `merged`"))?))
}

pub(crate) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>, headers: HeaderMap) -> Handled {
    let context = app.context();
    let record = app.goal(&context, &id).await?.record;
    let tag = tag(&record);
    let is_known = |given: &HeaderValue| {
        let given = given.to_str().unwrap_or_default();
        given.split(',').any(|one| one.trim() == "*" || one.trim() == tag)
    };
    if headers.get_all(header::IF_NONE_MATCH).iter().any(is_known) {
        let mut reply = Response::default();
        *reply.status_mut() = StatusCode::NOT_MODIFIED;
        set_tag(&mut reply, &tag);
        return Ok(reply);
    }
    shown(&app, &context, &record, StatusCode::OK)
}

/// All about a goal, with its tag.
pub(crate) fn shown(app: &App, context: &Context, record: &GoalRecord, status: StatusCode) -> Handled {
    let report = goal_report(record, &app.state.home, app.now());
    let mut reply = reply::json(context, status, &report)?;
    set_tag(&mut reply, &tag(record));
    Ok(reply)
}

/// Changes with each entry of the log. Weak, because what is left of a budget of time changes without one.
fn tag(record: &GoalRecord) -> String {
    format!("W/\"{}\"", record.last_seq)
}

fn set_tag(reply: &mut Response, tag: &str) {
    if let Ok(tag) = HeaderValue::from_str(tag) {
        reply.headers_mut().insert(header::ETAG, tag);
    }
}
