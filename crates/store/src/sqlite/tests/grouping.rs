//! Jobs that wait together share a commit and nothing else.

use towline_core::Seq;

use super::super::failure::Failure;
use super::{Gate, Scratch, is_answered};
use crate::conformance::samples::{append, claimed, everything, notice, places};
use crate::{Store, StoreError};

#[tokio::test]
async fn a_job_is_answered_only_after_the_commit_that_it_shares() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let (goal, lease) = claimed(&store, 1).await;
    let (mut first_gate, mut first) = Gate::new(&store);
    assert!(!is_answered(&mut first).await);
    first_gate.entered().await;
    let mut appended = store.append(append(&goal, lease.generation, Seq(1), vec![notice("in a group", 1)]));
    let (mut second_gate, mut second) = Gate::new(&store);
    assert!(!is_answered(&mut appended).await);
    assert!(!is_answered(&mut second).await);
    first_gate.open();
    // The second gate is in the same transaction, behind the append.
    second_gate.entered().await;
    assert!(!is_answered(&mut appended).await);
    assert_eq!(store.load(goal.id).await.expect("reads go on").last_seq, Seq(1));
    second_gate.open();
    assert_eq!(appended.await.expect("it fits").last_seq, Seq(2));
    assert_eq!(store.load(goal.id).await.expect("it is there").last_seq, Seq(2));
    first.await.expect("a gate is no error");
    second.await.expect("a gate is no error");
}

#[tokio::test]
async fn a_refused_job_does_not_undo_the_others_of_its_group() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let (one, one_lease) = claimed(&store, 1).await;
    let (two, two_lease) = claimed(&store, 2).await;
    let (gate, blocked) = Gate::new(&store);
    let events = |text: &str| vec![notice(text, 1), notice(text, 2)];
    let (_, first, refused, second, third, ()) = tokio::join!(
        blocked,
        store.append(append(&one, one_lease.generation, Seq(1), events("first"))),
        store.append(append(&one, one_lease.generation, Seq(1), events("refused"))),
        store.append(append(&two, two_lease.generation, Seq(1), events("second"))),
        store.append(append(&one, one_lease.generation, Seq(3), events("third"))),
        async { gate.open() },
    );
    assert!(matches!(refused, Err(StoreError::Conflict { found: Seq(3), .. })), "{refused:?}");
    let last = [first, second, third].map(|appended| appended.expect("it fits").last_seq);
    assert_eq!(last, [Seq(3), Seq(3), Seq(5)]);
    assert_eq!(places(&everything(&store, one.id).await.events), [1, 2, 3, 4, 5]);
    assert_eq!(places(&everything(&store, two.id).await.events), [1, 2, 3]);
}

/// Two ways in which one job makes the transaction of all fail: SQLite undoes it in the middle, and the commit fails.
#[tokio::test]
async fn when_a_group_fails_as_a_whole_each_job_gets_its_own_result() {
    let undo_everything = "ROLLBACK";
    let fail_at_commit = "PRAGMA defer_foreign_keys = ON;
        INSERT INTO events (goal, seq, at, source, kind, body) VALUES ('nobody', 1, '', '', '', '')";
    for harm in [undo_everything, fail_at_commit] {
        let scratch = Scratch::new();
        let store = scratch.store();
        let (goal, lease) = claimed(&store, 1).await;
        let (gate, blocked) = Gate::new(&store);
        let (_, first, harmful, refused, second, ()) = tokio::join!(
            blocked,
            store.append(append(&goal, lease.generation, Seq(1), vec![notice("first", 1)])),
            store.write(move |connection| {
                connection.execute_batch(harm)?;
                if connection.is_autocommit() { Err(Failure::unreadable("it", "harmful")) } else { Ok(()) }
            }),
            store.append(append(&goal, lease.generation, Seq(1), vec![notice("refused", 1)])),
            store.append(append(&goal, lease.generation, Seq(2), vec![notice("second", 1)])),
            async { gate.open() },
        );
        assert!(matches!(harmful, Err(StoreError::Database { .. })), "{harm}: {harmful:?}");
        assert!(matches!(refused, Err(StoreError::Conflict { found: Seq(2), .. })), "{harm}: {refused:?}");
        assert_eq!(first.expect("it fits").last_seq, Seq(2));
        assert_eq!(second.expect("it fits").last_seq, Seq(3));
        let stored = everything(&store, goal.id).await;
        assert_eq!((places(&stored.events), stored.record.last_seq), (vec![1, 2, 3], Seq(3)));
    }
}

#[tokio::test]
async fn dropping_the_last_handle_finishes_what_is_queued_and_closes_the_file() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let clone = store.clone();
    let (goal, lease) = claimed(&store, 1).await;
    let (mut gate, mut blocked) = Gate::new(&store);
    assert!(!is_answered(&mut blocked).await);
    gate.entered().await;
    let mut abandoned = store.append(append(&goal, lease.generation, Seq(1), vec![notice("queued", 1)]));
    assert!(!is_answered(&mut abandoned).await);
    drop(abandoned);
    gate.open();
    drop(blocked);
    drop(store);
    clone.load(goal.id).await.expect("a clone is as good as the first");
    drop(clone);
    assert!(!scratch.database().with_extension("db-wal").exists(), "the log is folded into the file");
    assert_eq!(everything(&scratch.store(), goal.id).await.record.last_seq, Seq(2));
}

#[tokio::test]
async fn the_work_of_another_process_is_waited_for_until_it_can_be_read_and_nothing_is_written_for_that() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let (goal, _) = claimed(&store, 1).await;
    let other = scratch.raw();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE events SET seq = 7").expect("it gets the lock");
    let mut settled = store.settled();
    assert!(!is_answered(&mut settled).await);
    other.execute_batch("COMMIT").expect("it lets go");
    settled.await.expect("settled");
    assert_eq!(store.events(goal.id, Seq(6), 1).await.expect("an event").len(), 1);
    let log = scratch.database().with_extension("db-wal");
    let written = || std::fs::metadata(&log).and_then(|about| about.modified()).expect("a log");
    let before = written();
    store.settled().await.expect("settled");
    assert_eq!(written(), before);
}

#[tokio::test]
async fn while_another_process_writes_reads_go_on_and_writes_wait() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let (goal, lease) = claimed(&store, 1).await;
    let other = scratch.raw();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE goals SET title = 'changed'").expect("it gets the lock");
    let mut appended = store.append(append(&goal, lease.generation, Seq(1), vec![notice("later", 1)]));
    assert!(!is_answered(&mut appended).await);
    assert_eq!(store.load(goal.id).await.expect("reads go on").last_seq, Seq(1));
    assert!(!is_answered(&mut appended).await);
    other.execute_batch("COMMIT").expect("it lets go");
    assert_eq!(appended.await.expect("its turn has come").last_seq, Seq(2));
}
