//! Accepting connections: not too many, and none that keeps the server waiting.

use std::convert::Infallible;
use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::ServiceExt;
use towline_engine::contained_future;

use crate::app::{App, ServerSettings};
use crate::peer::Connection;
use crate::problem::Problem;
use crate::routes::router;

/// How long a client may take to send the head of a request, and how long it may be silent between two.
const HEAD_PATIENCE: Duration = Duration::from_secs(15);
/// The largest head.
const LARGEST_HEAD: usize = 64 * 1024;
/// The pause after a client could not be let in, for example because no file handles are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// How long changes that were begun may take when the server ends.
const LAST_CHANGES: Duration = Duration::from_secs(10);
/// How long clients have to take their replies when the server ends.
const LAST_REPLIES: Duration = Duration::from_secs(2);

/// Serves until `stop` comes to its end. Changes that were begun have a moment to be finished; streams are cut off, and their clients resume later.
pub async fn serve(settings: ServerSettings, stop: impl Future<Output = ()>) -> io::Result<()> {
    let (app, listener) = App::new(settings);
    let mut connections = JoinSet::new();
    accept(&app, &listener, &mut connections, stop).await;
    drop(listener);
    app.stopping.send_replace(true);
    app.tasks.close();
    // A change that takes longer is cut off, as by a crash: the store has all of it or nothing.
    let _ = tokio::time::timeout(LAST_CHANGES, app.tasks.wait()).await;
    // Who does not take the reply by then does not want it.
    let _ =
        tokio::time::timeout(LAST_REPLIES, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
    Ok(())
}

async fn accept(
    app: &Arc<App>,
    listener: &TcpListener,
    connections: &mut JoinSet<()>,
    stop: impl Future<Output = ()>,
) {
    let router = router(Arc::clone(app));
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve_client(Arc::clone(app), router.clone(), stream));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            () = &mut stop => return,
        }
    }
}

/// The reply to a request. A panic ends the request, and neither the connection nor the server.
async fn reply<B>(router: axum::Router, request: hyper::Request<B>) -> Result<Response, Infallible>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let handled = AssertUnwindSafe(contained_future(router.oneshot(request))).catch_unwind().await;
    handled.unwrap_or_else(|_| {
        let problem = Problem::internal("the request was not finished, because of a bug in Towline");
        Ok(problem.hint("the server's output has the details").into_response())
    })
}

/// Serves one client until it goes away or the server ends.
async fn serve_client(app: Arc<App>, router: axum::Router, stream: TcpStream) {
    let ends = stream.peer_addr().and_then(|client| Ok(Connection { client, server: stream.local_addr()? }));
    let Ok(ends) = ends else { return };
    // A reply that is a few bytes long must not wait for more.
    let _ = stream.set_nodelay(true);
    let place = Arc::new(app.places.enter());
    let places = Arc::clone(&place);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ends);
        request.extensions_mut().insert(Arc::clone(&places));
        reply(router.clone(), request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(LARGEST_HEAD);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // A client that hangs up or sends nonsense concerns nobody else.
        _ = connection.as_mut() => return,
        () = place.revoked() => return,
        () = app.stopped() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::routing::get;

    use super::*;

    async fn handler() -> &'static str {
        panic!("it is a test")
    }

    #[tokio::test]
    async fn a_panic_in_a_handler_is_a_reply() {
        let router = axum::Router::new().route("/", get(handler)).route("/other", get(|| async { "fine" }));
        for (path, wanted) in [("/", StatusCode::INTERNAL_SERVER_ERROR), ("/other", StatusCode::OK)] {
            let request = hyper::Request::get(path).body(Body::empty()).expect("a request");
            let Ok(got) = reply(router.clone(), request).await;
            assert_eq!(got.status(), wanted, "{path}");
        }
    }
}
