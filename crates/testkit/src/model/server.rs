//! The scripted model's HTTP side: a server on a thread of its own, so that plain tests can use it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde_json::Value;
use tokio::sync::oneshot;

use super::reply::{Cut, CutHow, ErrorReply, ErrorStatus, Kind};
use super::script::Playing;
use super::wire::{self, Names, StreamEvent, Wire};
use super::{Reply, Request, Script, Usage, WireFormat};

/// A larger request is refused with 413, as the real API does with its own limit.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// Past this many bytes the log keeps requests without their bodies.
const MAX_LOG_BYTES: usize = 512 * 1024 * 1024;

/// Scripted model APIs on a free port of 127.0.0.1. It stops, and breaks off its connections, when dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts a server that plays `script`.
    pub fn start(script: impl Into<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .unwrap_or_else(|error| panic!("the scripted model cannot bind a port on 127.0.0.1: {error}"));
        let address = listener
            .local_addr()
            .unwrap_or_else(|error| panic!("the scripted model cannot read its own address: {error}"));
        let shared = Arc::new(Shared::new(script.into()));
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("scripted-model".into())
            .spawn(move || serve(listener, serving, stopped))
            .unwrap_or_else(|error| panic!("the scripted model cannot start its thread: {error}"));
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// The base URL to give to a client, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().log.clone()
    }

    /// The requests of real turns so far: messages asked for with tools to call.
    pub fn turns(&self) -> Vec<Request> {
        self.shared.lock().turns().cloned().collect()
    }

    /// Waits until `n` requests of real turns have arrived, and returns those.
    pub fn wait_for_turns(&self, n: usize, timeout: Duration) -> Vec<Request> {
        let missing = |state: &mut PlayState| state.turns().count() < n;
        let waited = self.shared.grew.wait_timeout_while(self.shared.lock(), timeout, missing);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if missing(&mut state) {
            let seen: Vec<_> =
                state.log.iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect();
            drop(state);
            panic!("waited {timeout:?} for {n} turns at the scripted model; it got {seen:?}");
        }
        state.turns().cloned().collect()
    }

    /// The sum of all usage that was sent to clients. A stream that was cut has reported what it got to.
    pub fn reported_usage(&self) -> Usage {
        self.shared.lock().log.iter().map(|request| request.reported).sum()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the scripted model's thread panicked; its message is above");
        }
    }
}

/// Runs until the sender of `stopped` is dropped; leaving the runtime breaks off what is still open.
fn serve(listener: TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<Infallible>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap_or_else(|error| panic!("the scripted model cannot start its runtime: {error}"));
    let served: io::Result<()> = runtime.block_on(async {
        listener.set_nonblocking(true)?;
        // Small frames leave at once; without that option the connection is merely slower.
        let listener = tokio::net::TcpListener::from_std(listener)?.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let router = Router::new().fallback(answer).with_state(shared);
        tokio::select! {
            served = axum::serve(listener, router) => served,
            _ = stopped => Ok(()),
        }
    });
    served.unwrap_or_else(|error| panic!("the scripted model cannot serve: {error}"));
}

#[derive(Debug)]
struct Shared {
    state: Mutex<PlayState>,
    grew: Condvar,
    started: Instant,
}

#[derive(Debug)]
struct PlayState {
    playing: Playing,
    log: Vec<Request>,
    log_bytes: usize,
}

impl PlayState {
    fn turns(&self) -> impl Iterator<Item = &Request> {
        self.log.iter().filter(|request| request.is_turn())
    }
}

impl Shared {
    fn new(script: Script) -> Self {
        let state = PlayState { playing: Playing::new(script), log: Vec::new(), log_bytes: 0 };
        Self { state: Mutex::new(state), grew: Condvar::new(), started: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, PlayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a request and returns it as the script is to see it.
    fn record(&self, parts: &Parts, body: &Bytes) -> Request {
        let parsed = serde_json::from_slice(body).unwrap_or(Value::Null);
        let mut state = self.lock();
        let path = parts.uri.path();
        let posted = parts.method == Method::POST;
        let mut request = Request {
            number: state.log.len() + 1,
            turn: None,
            method: parts.method.to_string(),
            path: path.to_owned(),
            format: WireFormat::of_path(path).filter(|_| posted),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            headers: headers_of(parts),
            body: Arc::new(parsed),
            at: self.started.elapsed(),
            reported: Usage::default(),
        };
        if request.has_tools() {
            request.turn = Some(state.turns().count() + 1);
        }
        state.log_bytes = state.log_bytes.saturating_add(body.len());
        let mut recorded = request.clone();
        if state.log_bytes > MAX_LOG_BYTES {
            recorded.body = Arc::new(Value::Null);
        }
        state.log.push(recorded);
        self.grew.notify_all();
        request
    }

    /// Decides the answer, and names it so that the result of its tools is known again.
    fn choose(&self, request: &Request, wire: &dyn Wire) -> (Reply, Names) {
        let mut state = self.lock();
        let chosen = state.playing.choose(request);
        let names = match &chosen.reply.kind {
            Kind::Message(message) => Names::new(wire, request.number, message, model_of(request)),
            Kind::Error(_) | Kind::FailedStream(_) | Kind::Silence => Names::default(),
        };
        state.playing.made_calls(&chosen, &names.tool_ids);
        (chosen.reply, names)
    }

    fn report(&self, number: usize, usage: Usage) {
        if let Some(request) = self.lock().log.get_mut(number - 1) {
            request.reported = usage;
        }
    }
}

fn model_of(request: &Request) -> String {
    request.model().unwrap_or_else(|| "scripted-model".into())
}

fn headers_of(parts: &Parts) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

async fn answer(State(shared): State<Arc<Shared>>, request: axum::extract::Request) -> Response {
    let (parts, body) = request.into_parts();
    // Too long, or the client went away in the middle of it and reads no answer.
    let Ok(body) = axum::body::to_bytes(body, MAX_REQUEST_BYTES).await else {
        let request = shared.record(&parts, &Bytes::new());
        let message = "the request is larger than the scripted model takes";
        return refusal(&request, StatusCode::PAYLOAD_TOO_LARGE, message);
    };
    let request = shared.record(&parts, &body);
    if let Some(format) = request.format {
        let (reply, names) = shared.choose(&request, format.wire());
        return deliver(shared, &request, format.wire(), reply, &names).await;
    }
    let known = match request.method.as_str() {
        "POST" => wire::token_count(&request.path, body.len()),
        "GET" => wire::model_list(&request.path),
        _ => None,
    };
    known.map_or_else(
        || {
            let asked = format!("{} {}", request.method, request.path);
            refusal(&request, StatusCode::NOT_FOUND, &format!("the scripted model does not serve {asked}"))
        },
        |known| Json(known).into_response(),
    )
}

async fn deliver(
    shared: Arc<Shared>,
    request: &Request,
    wire: &'static dyn Wire,
    reply: Reply,
    names: &Names,
) -> Response {
    let wants_stream = wire.wants_stream(&request.path, &request.body);
    let mut response = match reply.kind {
        Kind::Silence => std::future::pending().await,
        Kind::FailedStream(reported) if wants_stream => {
            let events = wire.failure_events(&model_of(request), &reported);
            streamed(shared, request.number, events, None, reply.delay)
        }
        Kind::Error(reported) | Kind::FailedStream(reported) => {
            pause(reply.delay).await;
            error(wire, &reported, &reply.headers)
        }
        Kind::Message(message) if wants_stream => {
            let events = wire.stream_events(&message, names, &request.body);
            streamed(shared, request.number, events, message.cut, reply.delay)
        }
        Kind::Message(message) => {
            pause(reply.delay).await;
            if let Some(cut) = message.cut {
                return half_of(&wire.whole_message(&message, names), cut.how);
            }
            shared.report(request.number, wire.reportable(message.usage));
            Json(wire.whole_message(&message, names)).into_response()
        }
    };
    response.headers_mut().extend(reply.headers);
    let late = reply.late_headers.into_iter();
    let late = late.filter_map(|(name, value)| Some((name, HeaderValue::try_from(value()).ok()?)));
    response.headers_mut().extend(late);
    response
}

/// Waits only when there is something to wait for: the timer's grain would slow every stream down.
async fn pause(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

/// What is left of a stream.
struct Sending {
    shared: Arc<Shared>,
    number: usize,
    /// Ends in an error where the script cuts: then the body is not terminated, and the client sees the
    /// connection break off.
    events: VecDeque<io::Result<StreamEvent>>,
    delay: Duration,
}

impl Sending {
    async fn next(&mut self) -> Option<io::Result<String>> {
        let event = self.events.pop_front()?;
        pause(self.delay).await;
        // Lets what came before leave first: a body that fails takes along what is still in the buffer.
        tokio::task::yield_now().await;
        Some(event.map(|event| {
            if let Some(usage) = event.reports {
                self.shared.report(self.number, usage);
            }
            event.frame
        }))
    }
}

fn streamed(
    shared: Arc<Shared>,
    number: usize,
    events: Vec<StreamEvent>,
    cut: Option<Cut>,
    delay: Duration,
) -> Response {
    let mut events: VecDeque<_> = events.into_iter().map(Ok).collect();
    if let Some(cut) = cut {
        events.truncate(cut.after);
        events.extend(cut.how.failure().map(Err));
    }
    let sending = Sending { shared, number, events, delay };
    let frames =
        futures::stream::unfold(sending, |mut sending| async { Some((sending.next().await?, sending)) });
    let headers = [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")];
    (headers, Body::from_stream(frames)).into_response()
}

impl CutHow {
    /// What ends a body that is broken off.
    fn failure(self) -> Option<io::Error> {
        (self == Self::BrokenOff).then(|| io::Error::other("cut by the script"))
    }
}

/// Half of an answer.
fn half_of(body: &Value, how: CutHow) -> Response {
    let text = body.to_string();
    let half = text[..text.floor_char_boundary(text.len() / 2)].to_owned();
    let frames: Vec<io::Result<String>> = [Ok(half)].into_iter().chain(how.failure().map(Err)).collect();
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (headers, Body::from_stream(futures::stream::iter(frames))).into_response()
}

/// An error that no script asked for.
fn refusal(request: &Request, status: StatusCode, message: &str) -> Response {
    let wire = WireFormat::of_errors_at(&request.path).wire();
    let reported = ErrorReply { status: ErrorStatus::Is(status), message: message.to_owned(), code: None };
    error(wire, &reported, &HeaderMap::new())
}

fn error(wire: &dyn Wire, error: &ErrorReply, headers: &HeaderMap) -> Response {
    let status = match error.status {
        ErrorStatus::Is(status) => status,
        ErrorStatus::Overloaded => {
            StatusCode::from_u16(wire.overloaded()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
        }
    };
    (status, Json(wire.error_body(status.as_u16(), error, headers))).into_response()
}
