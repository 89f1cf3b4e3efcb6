//! Reading: by cursor, whole transitions only.

use std::sync::Arc;

use tokio::task::JoinSet;
use towline_core::Seq;

use super::Place;
use super::samples::{append, claimed, everything, marked, notice, places};
use crate::Append;

/// Pages joined are the log; past its end there is nothing.
pub async fn a_log_is_read_page_by_page(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let (other, other_lease) = claimed(&*store, 2).await;
    let events = |of: &str| (2..=24).map(|number| notice(format!("{of} {number}"), number)).collect();
    store.append(append(&goal, lease.generation, Seq(1), events("one"))).await.expect("it fits");
    store.append(append(&other, other_lease.generation, Seq(1), events("two"))).await.expect("it fits");
    let (mut cursor, mut read, mut sizes) = (Seq(0), Vec::new(), Vec::new());
    loop {
        let page = store.events(goal.id, cursor, 7).await.expect("its log is there");
        sizes.push(page.len());
        let Some(last) = page.last() else { break };
        cursor = last.seq;
        read.extend(page);
    }
    assert_eq!(sizes, [7, 7, 7, 3, 0]);
    assert_eq!(read, everything(&*store, goal.id).await.events);
    assert_eq!(places(&read), (1..=24).collect::<Vec<_>>());
    for (after, limit) in [(Seq(0), 0), (Seq(24), 7), (Seq(1_000), 7), (Seq(u64::MAX), usize::MAX)] {
        let page = store.events(goal.id, after, limit).await.expect("its log is there");
        assert_eq!(page, vec![], "after {after}, at most {limit}");
    }
}

/// While a goal is being moved, its state and the end of its log are always of one moment.
pub async fn a_reader_never_sees_half_a_transition(place: &dyn Place) {
    let (writer, reader) = (place.open().await, place.open().await);
    let (goal, lease) = claimed(&*writer, 1).await;
    let start = Append { state: marked(&goal, 1), ..append(&goal, lease.generation, Seq(1), vec![]) };
    writer.append(start).await.expect("it fits");
    let mut tasks = JoinSet::new();
    let (written, id) = (Arc::clone(&writer), goal.id);
    tasks.spawn(async move {
        for last in 1..60_u32 {
            let append = Append {
                state: marked(&goal, last + 1),
                ..append(&goal, lease.generation, Seq(last.into()), vec![notice("on", 1)])
            };
            written.append(append).await.expect("it fits");
        }
    });
    loop {
        let record = reader.load(id).await.expect("it is there");
        assert_eq!(u64::from(record.state.errors_in_row), record.last_seq.0);
        let log = reader.events(id, Seq(0), usize::MAX).await.expect("its log is there");
        assert!(log.len() as u64 >= record.last_seq.0, "the log has what the record speaks of");
        if record.last_seq == Seq(60) {
            break;
        }
        tokio::task::yield_now().await;
    }
    tasks.join_next().await.expect("there is a writer").expect("it does not panic");
}
