//! Passes on what is added to a goal's log to a client that follows it.

use std::io;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::sync::broadcast::error::RecvError;
use towline_core::{Envelope, GoalId, Seq};
use towline_store::Store;

use super::{LONGEST_LINE, Reply, send};
use crate::engine::Shared;
use crate::feed::{Appends, FeedSource};

/// Passes on what is added to a goal's log, and returns what is left to answer. A server does so until the goal is settled, also
/// while it waits.
pub(super) async fn pass_on_all(
    writing: &mut (impl AsyncWriteExt + Unpin),
    shared: &Shared,
    goal: GoalId,
) -> io::Result<Option<Reply>> {
    if shared.rules.is_none() {
        let Some(driven) = shared.driven(goal) else { return Ok(Some(Reply::NotDriven)) };
        pass_on(writing, &*shared.store, goal, &driven.feed).await?;
        return Ok(None);
    }
    loop {
        // Before the goal is looked at, so that no event is missed.
        let place = shared.store.last_place().await.map_err(io::Error::other)?;
        let mut events = shared.tail.events(Arc::clone(&shared.store), place);
        // A driver that has ended may still be known for a moment.
        if let Some(driven) = shared.driven(goal).filter(|driven| driven.feed.appends().is_some()) {
            pass_on(writing, &*shared.store, goal, &driven.feed).await?;
            continue;
        }
        let Ok(record) = shared.store.load(goal).await else { return Ok(Some(Reply::NotDriven)) };
        send(writing, &Reply::Grown { to: record.last_seq, events: Vec::new() }).await?;
        if record.state.phase.is_settled() {
            return Ok(None);
        }
        loop {
            match events.next().await.map_err(io::Error::other)? {
                Some((_, event)) if event.goal == goal => break,
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }
}

/// Reports where the log ends now, and then what is added to it and written live, until the goal's driver has ended.
async fn pass_on(
    writing: &mut (impl AsyncWriteExt + Unpin),
    store: &dyn Store,
    goal: GoalId,
    feed: &FeedSource,
) -> io::Result<()> {
    let (Some(mut appends), mut live) = (feed.appends(), feed.live()) else { return Ok(()) };
    // The log is looked at after the subscription, so that the follower knows of everything that no append will bring.
    let mut next = Ok(Appends::default());
    loop {
        match next {
            Ok(events) if !events.is_empty() => writing.write_all(&grown(&events)?).await?,
            Ok(_) | Err(RecvError::Lagged(_)) => {
                let to = store.load(goal).await.map_err(io::Error::other)?.last_seq;
                send(writing, &Reply::Grown { to, events: Vec::new() }).await?;
            }
            Err(RecvError::Closed) => return Ok(()),
        }
        next = loop {
            tokio::select! {
                appended = appends.recv() => break appended,
                Some(message) = live.next() => send(writing, &Reply::Live { message }).await?,
            }
        };
    }
}

/// What was added to a log, as a line. What is too long for one has to be read from the store.
fn grown(events: &[Envelope]) -> io::Result<Vec<u8>> {
    let to = events.last().map_or(Seq(0), |event| event.seq);
    let line = super::line(&Reply::Grown { to, events: events.to_vec() })?;
    if line.len() as u64 <= LONGEST_LINE {
        Ok(line)
    } else {
        super::line(&Reply::Grown { to, events: Vec::new() })
    }
}
