//! What every test of the program ends with: each attempt that it left is replayed from its raw bytes, and must give the
//! events that were stored while it ran.

use std::path::Path;

use towline_core::{Attempt, Seq};
use towline_engine::Home;
use towline_engine::replay::{Comparison, Difference, Over, Replay, ReplayError, Wording};
use towline_store::{GoalRecord, Listing, SqliteStore, Store, load_all};

/// Replays every attempt in this state directory whose process has ended.
///
/// # Panics
/// When one of them gives other events than are stored.
pub(crate) fn replay_all(state: &Path) {
    let Ok(home) = Home::open(state) else { return };
    if !home.database().exists() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let store = SqliteStore::open(&home.database()).expect("the state can be read");
        for record in load_all(&store, Listing::all()).await.expect("the goals").records {
            for attempt in &record.state.attempts {
                replay(&home, &store, &record, attempt).await;
            }
        }
    });
}

async fn replay(home: &Home, store: &SqliteStore, record: &GoalRecord, attempt: &Attempt) {
    let over = if attempt.end.is_some() { Over::Recorded } else { Over::NotYet };
    let replay = match Replay::open(home, record.goal.id, attempt.n, over) {
        Ok(replay) => replay,
        Err(ReplayError::NotStarted { .. } | ReplayError::Removed { .. } | ReplayError::NotOver { .. }) => {
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let mut comparison = Comparison::new(attempt.n, replay);
    let mut after = Seq(0);
    loop {
        let page = store.events(record.goal.id, after, 500).await.expect("events");
        let Some(last) = page.last() else { break };
        after = last.seq;
        for stored in &page {
            comparison.take(stored).unwrap_or_else(|difference| differs(attempt, &difference));
        }
    }
    comparison.finish().unwrap_or_else(|difference| differs(attempt, &difference));
}

fn differs(attempt: &Attempt, difference: &Difference) -> ! {
    panic!("attempt {} replayed is not as stored, {}", attempt.n, difference.words(Wording::All));
}
