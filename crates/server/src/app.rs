//! What all handlers share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;
use towline_app::find::{self, Found};
use towline_app::{Context, Host, State};
use towline_core::GoalId;
use towline_engine::{Clock, Engine, SystemClock, contained};
use towline_mask::Secrets;
use towline_store::Store;

use crate::authority::Failures;
use crate::health::Counters;
use crate::once::KeysInUse;
use crate::places::Places;
use crate::problem::Problem;
use crate::query;
use crate::sse::Streams;

/// How many requests may block at the same time.
const MOST_THREADS: usize = 128;

/// Everything that a server is given.
pub struct ServerSettings {
    /// What use cases work with. The server adds its store and its engine.
    pub context: Context,
    /// An engine that runs a pool.
    pub engine: Arc<Engine>,
    pub state: State,
    pub listener: TcpListener,
    /// Further names that clients may know the server by.
    pub hosts: Vec<String>,
    pub operator_token: OperatorToken,
    pub version: String,
}

/// What proves that a request comes from the operator. Never shown.
#[derive(Clone)]
pub struct OperatorToken {
    hash: [u8; 32],
    /// Hides it in what is shown.
    secret: Secrets,
}

impl OperatorToken {
    /// The token with this text, which `towline_engine::operator_token` gives.
    pub fn new(text: &str) -> Self {
        let mut secret = Secrets::default();
        secret.add("operator-token", text);
        Self { hash: Sha256::digest(text).into(), secret }
    }

    /// Whether this is the token. Takes as long for a wrong one as for the right one: their hashes are compared.
    pub(crate) fn fits(&self, given: &str) -> bool {
        let given: [u8; 32] = Sha256::digest(given).into();
        self.hash.iter().zip(given).fold(0, |differs, (ours, theirs)| differs | (ours ^ theirs)) == 0
    }
}

/// How handlers get it.
pub(crate) type Shared = axum::extract::State<Arc<App>>;

/// What all handlers share.
pub(crate) struct App {
    context: Context,
    pub(crate) engine: Arc<Engine>,
    pub(crate) state: State,
    /// Names without a port that the server is known by.
    pub(crate) hosts: Vec<String>,
    pub(crate) token: OperatorToken,
    pub(crate) version: String,
    pub(crate) streams: Streams,
    pub(crate) places: Arc<Places>,
    pub(crate) failures: Failures,
    pub(crate) counters: Counters,
    pub(crate) under_way: KeysInUse,
    /// Requests that change something: they are carried out even if the client goes away.
    pub(crate) tasks: TaskTracker,
    /// For requests that block: each has a thread, and the runtime needs some for itself.
    threads: Arc<Semaphore>,
    /// Whether the server is about to end.
    pub(crate) stopping: watch::Sender<bool>,
}

impl App {
    pub(crate) fn new(settings: ServerSettings) -> (Arc<Self>, TcpListener) {
        let ServerSettings { context, engine, state, listener, hosts, operator_token, version } = settings;
        let host = Some(Arc::new(Host { state: state.clone(), engine: Arc::clone(&engine) }));
        // An agent can read the file, and may print it.
        context.secrets.add(&operator_token.secret);
        let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        let address = listener.local_addr().ok().map(|address| match address.ip() {
            std::net::IpAddr::V4(ip) => ip.to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        });
        let hosts = hosts.into_iter().chain(own).chain(address);
        let app = Self {
            context: Context { host, ..context },
            engine,
            state,
            hosts: hosts.map(|host| host.to_ascii_lowercase()).collect(),
            token: operator_token,
            version,
            streams: Streams::default(),
            places: Arc::default(),
            failures: Failures::default(),
            counters: Counters::default(),
            under_way: KeysInUse::default(),
            tasks: TaskTracker::new(),
            threads: Arc::new(Semaphore::new(MOST_THREADS)),
            stopping: watch::Sender::new(false),
        };
        (Arc::new(app), listener)
    }

    /// The context of one request. What it learns about secrets goes with it.
    pub(crate) fn context(&self) -> Context {
        Context { secrets: self.context.secrets.apart(), ..self.context.clone() }
    }

    /// The context of a request that is about this directory.
    pub(crate) fn context_in(&self, directory: PathBuf) -> Context {
        Context { directory, ..self.context() }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.state.store.as_ref()
    }

    pub(crate) fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    /// The id of the one goal that a path names: by its id, or by the beginning of it as a person types it.
    pub(crate) async fn goal_id(&self, context: &Context, given: &str) -> Result<GoalId, Problem> {
        match given.parse() {
            Ok(id) => Ok(id),
            Err(_) => Ok(find::goal_id(context, query::part_of_id(given)?).await?.1),
        }
    }

    /// The goal that a path names, with its secrets known to the context.
    pub(crate) async fn goal(&self, context: &Context, given: &str) -> Result<Found, Problem> {
        let id = self.goal_id(context, given).await?;
        Ok(find::load(context, self.state.clone(), id).await?)
    }

    /// Waits until the server is about to end.
    pub(crate) async fn stopped(&self) {
        // A sender that is gone has ended, too.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }
}

/// Counts something.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs what blocks, such as git, where it holds up no other request. It is not cut off when the client goes away.
pub(crate) async fn in_background<T: Send + 'static>(
    app: &App,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Problem> {
    let runtime = tokio::runtime::Handle::current();
    let thread = Arc::clone(&app.threads).try_acquire_owned().map_err(|_| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many requests are being worked on; try again later",
        )
    })?;
    let task = app.tasks.spawn_blocking(move || {
        let done = contained(|| runtime.block_on(work));
        drop(thread);
        done
    });
    task.await.map_err(|error| Problem::internal(format!("the request did not finish: {error}")))
}
