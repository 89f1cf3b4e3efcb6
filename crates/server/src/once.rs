//! Requests that change something: their body is read in bounded time and size, they are carried out even if the client goes away, and
//! at most once for each `Idempotency-Key`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts};
use axum::middleware::Next;
use axum::response::Response;
use jiff::SignedDuration;
use sha2::{Digest, Sha256};
use towline_api::routes::PREFIX;
use towline_app::new_goal_id;
use towline_core::GoalId;
use towline_store::StoredReply;

use crate::app::App;
use crate::authority::{Authority, SIGN_IN};
use crate::problem::{MEDIA_TYPE, Problem};

/// The longest body.
const LONGEST_BODY: usize = 1 << 20;
/// How long a client may take to send its body.
const BODY_PATIENCE: Duration = Duration::from_secs(15);
/// How long a reply is stored.
const KEPT: SignedDuration = SignedDuration::from_hours(24);
/// The longest key.
const LONGEST_KEY: usize = 255;
/// The longest reply that is stored.
const LONGEST_REPLY: usize = 8 << 20;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The id of the goal that a request creates. It is stored before the goal is, so the goal of a request that was cut off can be found.
#[derive(Clone, Copy)]
pub(crate) struct ReservedId(pub(crate) GoalId);

/// The keys of requests that this server is carrying out.
#[derive(Default)]
pub(crate) struct KeysInUse(Mutex<BTreeSet<String>>);

/// A key is taken as long as this lives.
struct Taken<'a> {
    by: &'a KeysInUse,
    key: &'a str,
}

impl KeysInUse {
    /// None if a request with this key is being carried out.
    fn take<'a>(&'a self, key: &'a str) -> Option<Taken<'a>> {
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned());
        // Only the one that has taken it gives it back.
        is_new.then(|| Taken { by: self, key })
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.by.0.lock().unwrap_or_else(PoisonError::into_inner).remove(self.key);
    }
}

/// Passes a request on.
pub(crate) async fn carry_out(app: &Arc<App>, request: Request, next: Next) -> Result<Response, Problem> {
    if *request.method() != Method::POST {
        return Ok(next.run(request).await);
    }
    let (parts, body) = request.into_parts();
    let body = read(&parts.headers, body).await?;
    let key = key(&parts)?;
    let hash = hash([parts.method.as_str().as_bytes(), parts.uri.to_string().as_bytes(), &body]);
    let request = Request::from_parts(parts, Body::from(body));
    let owner = Arc::clone(app);
    let work = async move {
        match key {
            None => Ok(next.run(request).await),
            Some(key) => once(&owner, &key, hash, request, next).await,
        }
    };
    let task = app.tasks.spawn(work);
    task.await.map_err(|error| Problem::internal(format!("the request did not finish: {error}")))?
}

async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let too_large = || {
        let what = format!("the body is longer than {LONGEST_BODY} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, what)
    };
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > LONGEST_BODY as u64) {
        return Err(too_large());
    }
    let read = tokio::time::timeout(BODY_PATIENCE, to_bytes(body, LONGEST_BODY)).await;
    let late = |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
    let body = read.map_err(late)?.map_err(|_| too_large())?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_json =
        kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    if !body.is_empty() && !is_json {
        let what = "the body must be `application/json`";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what));
    }
    Ok(body)
}

/// The key under which the reply is stored: one for each client and key, of a fixed length.
fn key(parts: &Parts) -> Result<Option<String>, Problem> {
    let Some(given) = parts.headers.get(KEY) else { return Ok(None) };
    // The key of a session is not stored.
    if parts.uri.path().strip_prefix(PREFIX) == Some(SIGN_IN) {
        return Ok(None);
    }
    let wrong =
        || Problem::bad_request(format!("`Idempotency-Key` is a text of 1 to {LONGEST_KEY} characters"));
    let given = given.to_str().map_err(|_| wrong())?;
    if given.is_empty() || given.len() > LONGEST_KEY {
        return Err(wrong());
    }
    let client = match parts.extensions.get::<Authority>() {
        Some(Authority::Agent { goal, .. }) => goal.to_string(),
        _ => "operator".to_owned(),
    };
    Ok(Some(hash([client.as_bytes(), given.as_bytes()])))
}

fn hash<const N: usize>(parts: [&[u8]; N]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    towline_core::hexadecimal(&hash.finalize())
}

/// Carries a request out, unless it was before.
async fn once(
    app: &App,
    key: &str,
    request_hash: String,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let now = app.now();
    let creates = request.uri().path() == format!("{}/goals", towline_api::routes::PREFIX);
    let body = if creates { new_goal_id().to_string() } else { String::new() };
    let mut begun = StoredReply { request: request_hash, status: None, body, at: now };
    let since = now.checked_sub(KEPT).unwrap_or(now);
    let taken = app.under_way.take(key);
    if let Some(earlier) = app.store().begin_reply(key, &begun, since).await? {
        let is_cut_off = taken.is_some() && earlier.status.is_none() && earlier.request == begun.request;
        if !(creates && is_cut_off) {
            return again(earlier, &begun.request);
        }
        // Its goal is created now, unless it is there.
        begun = earlier;
    } else if creates && taken.is_none() {
        // Whoever has taken the key finds what was stored here. For all other requests, what was stored is the right to begin.
        return again(begun.clone(), &begun.request);
    }
    if let Ok(id) = begun.body.parse() {
        request.extensions_mut().insert(ReservedId(id));
    }
    let (parts, body) = next.run(request).await.into_parts();
    let body = to_bytes(body, LONGEST_REPLY).await;
    let text = body.as_ref().ok().and_then(|body| String::from_utf8(body.to_vec()).ok());
    // A failure of ours says nothing about the request: it may be sent again. Whether it created a goal is seen by the id.
    let finished = text.filter(|_| !parts.status.is_server_error()).map(|body| StoredReply {
        status: Some(parts.status.as_u16()),
        body,
        ..begun
    });
    if finished.is_some() || !creates {
        app.store().finish_reply(key, finished.as_ref()).await?;
    }
    let body = body.map_err(|_| Problem::internal("the reply is too long"))?;
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// The reply to a request whose key was used before.
fn again(earlier: StoredReply, request_hash: &str) -> Result<Response, Problem> {
    if earlier.request != request_hash {
        return Err(Problem::unprocessable("this `Idempotency-Key` was used for another request"));
    }
    let status = earlier.status.and_then(|status| StatusCode::from_u16(status).ok());
    let Some(status) = status else {
        let what = "a request with this `Idempotency-Key` is being carried out, or was cut off";
        return Err(Problem::new(StatusCode::CONFLICT, what).hint(
            "wait and send it again; if the server was restarted meanwhile, look whether it was done",
        ));
    };
    let mut reply = Response::new(Body::from(earlier.body));
    *reply.status_mut() = status;
    let kind = if status.is_client_error() { MEDIA_TYPE } else { "application/json" };
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    reply.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(reply)
}
