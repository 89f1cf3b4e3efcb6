//! Follows a goal that another process drives, through the socket of its engine.

use std::io;
use std::sync::Arc;

use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use towline_core::{Envelope, Seq};
use towline_store::{GoalRecord, Store, StoreError};

use crate::control::{Reply, Request, is_gone, reach, reach_server, read_line, send};
use crate::feed::{Events, Feed, FeedSource};
use crate::home::Home;
use crate::live::Live;

/// The log of a goal in another process, followed while an engine runs the goal.
pub struct Following {
    events: Events,
    source: FeedSource,
    /// Listens to the other process; ends with this.
    _listener: JoinSet<()>,
}

impl Following {
    /// The next event; none after the last one, once no engine runs the goal.
    pub async fn next(&mut self) -> Result<Option<Envelope>, StoreError> {
        self.events.next().await
    }

    /// The message that the agent is writing now.
    pub fn live(&self) -> Live {
        self.source.live()
    }
}

/// Follows a goal's log after `after`. If no engine runs the goal, the end of the log is the end.
pub async fn follow(
    home: &Home,
    store: Arc<dyn Store>,
    record: &GoalRecord,
    after: Seq,
) -> io::Result<Following> {
    let feed = Feed::new();
    let source = feed.source();
    // Before the connection, so that nothing that comes from there is missed.
    let events = source.events(record.goal.id, store, after);
    let mut listener = JoinSet::new();
    if let Some(mut stream) = reach(home, record).await? {
        match send(&mut stream, &Request::Follow { goal: record.goal.id }).await {
            Ok(()) => drop(listener.spawn(listen(BufReader::new(stream), feed, None))),
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    } else if !record.state.phase.is_settled()
        && let Some((reading, first)) = reach_server(home, record.goal.id).await?
    {
        listener.spawn(listen(reading, feed, Some(first)));
    }
    Ok(Following { events, source, _listener: listener })
}

/// Passes on what the other process reports, until it has no more to report.
async fn listen(mut reading: BufReader<UnixStream>, feed: Feed, first: Option<String>) {
    let mut next = first;
    loop {
        let line = match next.take() {
            Some(line) => line,
            None => match read_line(&mut reading).await {
                Ok(Some(line)) => line,
                _ => return,
            },
        };
        match serde_json::from_str(&line) {
            Ok(Reply::Grown { events, .. }) => feed.appended(events),
            Ok(Reply::Live { message }) => feed.pass_on(message),
            _ => {}
        }
    }
}
