//! A full disk, in the way SQLite itself can play it: the file may grow no further.
//!
//! The error is the one that the system's `ENOSPC` becomes, from the same place as a table that cannot grow.

use rusqlite::Connection;
use towline_core::{Generation, Goal, Seq};

use super::super::failure::Failure;
use super::{Gate, Scratch};
use crate::conformance::samples::{append, checks, claimed, everything, marked, notice};
use crate::{Append, Store, StoreError};

#[tokio::test]
async fn on_a_full_disk_nothing_is_lost_and_writing_goes_on_once_there_is_space() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let (goal, lease) = claimed(&store, 1).await;
    store.write(|connection| room(connection, Some(20))).await.expect("a setting");
    let mut stored = everything(&store, goal.id).await;
    let refused = loop {
        match store.append(large(&goal, lease.generation, stored.record.last_seq)).await {
            Ok(_) => stored = everything(&store, goal.id).await,
            Err(error) => break error,
        }
    };
    assert!(stored.record.last_seq > Seq(2), "something fitted before the disk was full");
    let path = scratch.database().display().to_string();
    assert!(matches!(&refused, StoreError::NoSpace { path: of } if *of == path), "{refused:?}");
    assert_eq!(everything(&store, goal.id).await, stored);

    store.write(|connection| room(connection, None)).await.expect("a setting");
    let last = stored.record.last_seq;
    store.append(large(&goal, lease.generation, last)).await.expect("there is space again");
    let after = everything(&scratch.store(), goal.id).await;
    assert_eq!(after.events[..stored.events.len()], stored.events);
    assert_eq!(after.record.last_seq, last.next());
}

#[tokio::test]
async fn what_does_not_fit_leaves_what_waited_with_it_alone() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let (one, one_lease) = claimed(&store, 1).await;
    let (two, two_lease) = claimed(&store, 2).await;
    store.write(|connection| room(connection, Some(30))).await.expect("a setting");
    let huge = vec![notice("x".repeat(1 << 20), 1)];
    let (gate, blocked) = Gate::new(&store);
    let (_, first, refused, second, ()) = tokio::join!(
        blocked,
        store.append(large(&one, one_lease.generation, Seq(1))),
        store.append(append(&one, one_lease.generation, Seq(2), huge)),
        store.append(large(&two, two_lease.generation, Seq(1))),
        async { gate.open() },
    );
    assert!(matches!(refused, Err(StoreError::NoSpace { .. })), "{refused:?}");
    assert_eq!(first.expect("it fits").last_seq, Seq(2));
    assert_eq!(second.expect("it fits").last_seq, Seq(2));
    for goal in [one, two] {
        let stored = everything(&store, goal.id).await;
        assert_eq!((stored.events.len(), stored.record.state), (2, marked(&goal, 7)));
    }
}

/// An append of about three pages that touches every table of a goal.
fn large(goal: &Goal, generation: Generation, expected: Seq) -> Append {
    Append {
        state: marked(goal, 7),
        effects: vec![checks(u32::try_from(expected.0).expect("small"))],
        ..append(goal, generation, expected, vec![notice("x".repeat(10_000), 1)])
    }
}

/// Lets the file grow by so many pages, or as it likes.
fn room(connection: &Connection, pages: Option<i64>) -> Result<(), Failure> {
    let now: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let most = pages.map_or(i64::from(u32::MAX - 1), |pages| now + pages);
    connection.pragma_update_and_check(None, "max_page_count", most, |row| row.get::<_, i64>(0))?;
    Ok(())
}
