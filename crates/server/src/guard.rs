//! What every request passes on its way in, and every reply on its way out.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::authority::{Authority, admit, must_be_outside};
use crate::once;
use crate::peer::Connection;
use crate::places::Place;
use crate::problem::{MEDIA_TYPE, Problem, StoreFailed};

/// Lets a request in, or not, and finishes its reply.
pub(crate) async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let connection = request.extensions().get::<Connection>().copied();
    let admitted = admit(&app, request.method(), request.uri(), request.headers(), connection).await;
    let placed = match admitted {
        Ok(authority) => place(&app, &mut request, &authority, connection).await.map(|()| authority),
        Err(problem) => Err(problem),
    };
    let reply = match placed {
        Ok(authority) => {
            request.extensions_mut().insert(authority);
            once::carry_out(&app, request, next).await.unwrap_or_else(Problem::into_response)
        }
        Err(problem) => problem.into_response(),
    };
    finish(&app, reply)
}

/// Gives the connection to whoever sends this, if they may have one more.
async fn place(
    app: &App,
    request: &mut Request,
    authority: &Authority,
    connection: Option<Connection>,
) -> Result<(), Problem> {
    let Some(place) = request.extensions_mut().remove::<Arc<Place>>() else { return Ok(()) };
    if place.is_contested(authority) {
        must_be_outside(app, connection).await?;
    }
    let what = "too many connections with tokens of this kind are open";
    let crowded = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, what);
    place.prove(authority).then_some(()).ok_or_else(crowded)
}

/// Makes errors of the router look like ours, and adds what holds for all replies.
fn finish(app: &App, mut reply: Response) -> Response {
    let status = reply.status();
    let is_problem = reply.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == MEDIA_TYPE);
    if (status.is_client_error() || status.is_server_error()) && !is_problem {
        let allowed = reply.headers_mut().remove(header::ALLOW);
        reply = Problem::of_status(status).into_response();
        reply.headers_mut().extend(allowed.map(|allowed| (header::ALLOW, allowed)));
    }
    app.counters.note(status, reply.extensions().get::<StoreFailed>().is_some());
    let fixed = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
        (HeaderName::from_static("x-frame-options"), "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in fixed {
        // The page has a policy of its own.
        reply.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    reply
}
