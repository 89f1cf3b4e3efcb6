//! A stream of events that reconnects, and resumes after the last event that was seen: nothing is missed and nothing comes twice.

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::mpsc::Sender;

use crate::client::{Client, Failure};
use crate::sse::{ServerEvent, SseReader};

/// How long a stream may be silent. The server shows every 15 seconds that it is alive.
const SILENCE: Duration = Duration::from_secs(40);
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What comes from a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FeedNews {
    /// The server has accepted the request.
    Opened,
    /// The connection is lost, or there is none; it is tried again.
    Lost(String),
    /// An entry of a goal's log, as JSON.
    Logged(String),
    /// The end of the message that an agent is writing.
    Writing(String),
    /// The goal with this id was removed.
    Removed(String),
    /// The server has another state directory than before: its log ends before the last event that was seen.
    Restarted,
}

/// A goal that was removed.
#[derive(Deserialize)]
struct RemovedGoal {
    goal: String,
}

/// The part of a message that is shown while an agent writes it.
#[derive(Deserialize)]
struct Written {
    text: String,
}

/// Follows events until nobody listens any more.
pub(crate) async fn follow<T>(
    client: Client,
    path: String,
    mut last: Option<u64>,
    listener: Sender<T>,
    news: impl Fn(FeedNews) -> T,
) {
    let mut pause = SHORTEST_PAUSE;
    loop {
        let mut was_open = false;
        let failure = match client.follow(&path, last).await {
            Ok(reply) => {
                was_open = true;
                if listener.send(news(FeedNews::Opened)).await.is_err() {
                    return;
                }
                read(reply, &mut last, &listener, &news).await
            }
            Err(failure) => Some(failure),
        };
        let Some(failure) = failure else { return };
        if listener.send(news(FeedNews::Lost(failure.text()))).await.is_err() {
            return;
        }
        pause = if was_open { SHORTEST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        tokio::time::sleep(pause).await;
    }
}

/// Passes on events until the stream ends. None when nobody listens any more.
async fn read<T>(
    mut reply: reqwest::Response,
    last: &mut Option<u64>,
    listener: &Sender<T>,
    news: &impl Fn(FeedNews) -> T,
) -> Option<Failure> {
    let mut reader = SseReader::default();
    loop {
        let bytes = match tokio::time::timeout(SILENCE, reply.chunk()).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None) | Err(_)) => return Some(Failure::Lost("the server has gone away".to_owned())),
            Err(_) => return Some(Failure::Lost("the server is silent".to_owned())),
        };
        for ServerEvent { name, id, data } in reader.take(&bytes) {
            let item = match (name.as_str(), id) {
                ("live", _) => {
                    let written = serde_json::from_str::<Written>(&data).map(|written| written.text);
                    FeedNews::Writing(written.unwrap_or_default())
                }
                ("removed", _) => match serde_json::from_str::<RemovedGoal>(&data) {
                    Ok(removed) => FeedNews::Removed(removed.goal),
                    Err(_) => continue,
                },
                ("restart", Some(id)) => {
                    *last = Some(id);
                    FeedNews::Restarted
                }
                (_, Some(id)) if last.is_none_or(|last| id > last) => {
                    *last = Some(id);
                    FeedNews::Logged(data)
                }
                _ => continue,
            };
            if listener.send(news(item)).await.is_err() {
                return None;
            }
        }
    }
}
