//! Server-sent events. Each event of the log is sent exactly once and in order, with its place as the id, so that a client that was cut
//! off resumes after the last one it has seen. What an agent is writing is sent as `live` without an id: it is not part of the log.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use towline_api::KnownSecrets;
use towline_core::{Envelope, GoalId, PoolSeq, Seq};
use towline_engine::{Live, LiveMessage, PoolEvents, is_signed_in};
use towline_store::StoreError;

use crate::app::App;
use crate::problem::Problem;
use crate::reply::Handled;

/// How often a silent stream shows that it is alive.
const ALIVE: Duration = Duration::from_secs(15);
/// How many events are read at once.
const PAGE: usize = 200;

/// How many streams are open at the same time.
const MOST: usize = 240;

/// Places for streams.
pub(crate) struct Streams(Arc<Semaphore>);

impl Default for Streams {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

impl Streams {
    /// How many are open.
    pub(crate) fn open(&self) -> usize {
        MOST.saturating_sub(self.0.available_permits())
    }

    fn take(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.0).try_acquire_owned().map_err(|_| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many clients follow events at the same time")
        })
    }
}

/// A stream of events, as a client follows it.
struct Following {
    app: Arc<App>,
    source: Source,
    /// The place at which the stream starts again, until that is reported: the client has seen a later one, so this is another state
    /// directory, or an earlier copy of it.
    restart: Option<u64>,
    /// An agent may have printed one of them.
    secrets: KnownSecrets,
    /// The session of the page that follows it; none for a token.
    session: Option<String>,
    /// Given back when the client goes away.
    _permit: OwnedSemaphorePermit,
}

enum Source {
    Pool(PoolEvents, broadcast::Receiver<GoalId>),
    Goal(Box<GoalSource>),
}

/// The log of one goal: first what is stored, then what is recorded.
struct GoalSource {
    goal: GoalId,
    /// The last event that was sent.
    cursor: Seq,
    page: VecDeque<Envelope>,
    /// Whether there may be stored events that were not read.
    is_behind: bool,
    /// Events of all goals, from a moment before the store was read.
    tail: PoolEvents,
    live: Option<Live>,
}

/// What is sent next.
enum Next {
    Logged(u64, Box<Envelope>),
    Live(LiveMessage),
    Removed(GoalId),
}

/// Follows the log of a goal after this place, or again from its beginning where it has not come so far.
pub(crate) async fn follow_goal(
    app: Arc<App>,
    session: Option<String>,
    goal: GoalId,
    (after, last): (Seq, Seq),
) -> Handled {
    let permit = app.streams.take()?;
    let tail = app.engine.pool_events(app.store().last_place().await?);
    let live = app.engine.live(goal);
    let restart = (after > last).then_some(0);
    let after = if restart.is_some() { Seq(0) } else { after };
    let page = VecDeque::new();
    let source = GoalSource { goal, cursor: after, page, is_behind: true, tail, live };
    Ok(start(app, Source::Goal(Box::new(source)), restart, session, permit))
}

/// Follows the logs of all goals after this place, or from now on where there is none or they have not come so far.
pub(crate) async fn follow_pool(app: Arc<App>, session: Option<String>, after: Option<PoolSeq>) -> Handled {
    let last = app.store().last_place().await?;
    let restart = after.filter(|after| *after > last).map(|_| last.0);
    let after = after.filter(|_| restart.is_none()).unwrap_or(last);
    let permit = app.streams.take()?;
    let events = app.engine.pool_events(after);
    let source = Source::Pool(events, app.engine.removals());
    Ok(start(app, source, restart, session, permit))
}

fn start(
    app: Arc<App>,
    source: Source,
    restart: Option<u64>,
    session: Option<String>,
    permit: OwnedSemaphorePermit,
) -> Response {
    let secrets = app.context().secrets;
    let following = Following { app, source, restart, secrets, session, _permit: permit };
    let events = stream::unfold(following, |mut following| async move {
        let event = following.next().await?;
        Some((Ok::<Event, Infallible>(event), following))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response()
}

impl Following {
    /// The next event; none when the server is about to end, the store fails, or the session is over. The client comes back and
    /// resumes if it may.
    async fn next(&mut self) -> Option<Event> {
        if let Some(place) = self.restart.take() {
            return Some(Event::default().id(place.to_string()).event("restart").data("{}"));
        }
        let app = Arc::clone(&self.app);
        let next = async {
            match &mut self.source {
                Source::Pool(events, removals) => tokio::select! {
                    placed = events.next() => {
                        let (place, event) = placed.ok()??;
                        Some(Next::Logged(place.0, Box::new(event)))
                    }
                    goal = next_removal(removals) => Some(Next::Removed(goal)),
                },
                Source::Goal(source) => source.next(&app).await.ok()?,
            }
        };
        let next = tokio::select! {
            next = next => next?,
            () = self.app.stopped() => return None,
        };
        let is_over = |session: &String| !is_signed_in(&self.app.state.home, session, self.app.now());
        if self.session.as_ref().is_some_and(is_over) {
            return None;
        }
        let event = match next {
            Next::Logged(place, event) => {
                let event = self.secrets.json(&serde_json::to_string(&event).ok()?);
                Event::default().id(place.to_string()).event("event").data(event)
            }
            Next::Live(message) => {
                Event::default().event("live").data(self.secrets.json(&serde_json::to_string(&message).ok()?))
            }
            Next::Removed(goal) => {
                Event::default().event("removed").data(json!({"goal": goal.to_string()}).to_string())
            }
        };
        Some(event)
    }
}

impl GoalSource {
    async fn next(&mut self, app: &App) -> Result<Option<Next>, StoreError> {
        loop {
            if let Some(event) = self.page.pop_front() {
                self.cursor = event.seq;
                return Ok(Some(Next::Logged(event.seq.0, Box::new(event))));
            }
            if self.is_behind {
                let page = app.store().events(self.goal, self.cursor, PAGE).await?;
                self.is_behind = page.len() == PAGE;
                self.page = page.into();
                continue;
            }
            tokio::select! {
                placed = self.tail.next() => match placed? {
                    // Another one, or one that the store gave before.
                    Some((_, event)) if event.goal != self.goal || event.seq <= self.cursor => {}
                    Some((_, event)) => {
                        if self.live.is_none() {
                            self.live = app.engine.live(self.goal);
                        }
                        self.page.push_back(event);
                    }
                    None => return Ok(None),
                },
                message = next_live(&mut self.live) => match message {
                    Some(message) => return Ok(Some(Next::Live(message))),
                    None => self.live = None,
                },
            }
        }
    }
}

/// The next goal that is removed. What a slow client misses, it sees when it opens the goal.
async fn next_removal(removals: &mut broadcast::Receiver<GoalId>) -> GoalId {
    loop {
        match removals.recv().await {
            Ok(goal) => return goal,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// The next step of a message; never without one.
async fn next_live(live: &mut Option<Live>) -> Option<LiveMessage> {
    match live {
        Some(live) => live.next().await,
        None => std::future::pending().await,
    }
}
