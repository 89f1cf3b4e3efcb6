//! What every request passes on its way in, and every reply on its way out.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::authority::{Authority, admit};
use crate::once;
use crate::peer::Connection;
use crate::places::Place;
use crate::problem::{MEDIA_TYPE, Problem, StoreFailed};

/// Lets a request in, or not, and finishes its reply.
pub(crate) async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let connection = request.extensions().get::<Connection>().copied();
    let admitted = admit(&app, request.method(), request.uri(), request.headers(), connection).await;
    let reply = match admitted {
        Ok(authority) if !has_room(&mut request, &authority) => {
            let what = "too many connections with tokens of this kind are open";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, what).into_response()
        }
        Ok(authority) => {
            request.extensions_mut().insert(authority);
            once::carry_out(&app, request, next).await.unwrap_or_else(Problem::into_response)
        }
        Err(problem) => problem.into_response(),
    };
    finish(&app, reply)
}

/// Whether whoever sends this may have one more connection, if it is a new one.
fn has_room(request: &mut Request, authority: &Authority) -> bool {
    request.extensions_mut().remove::<Arc<Place>>().is_none_or(|place| place.prove(authority))
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
