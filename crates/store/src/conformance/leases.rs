//! Leases: one holder at a time, and a generation that is never used twice.

use std::sync::Arc;

use tokio::task::JoinSet;
use towline_core::{Generation, GoalId, Seq};

use super::Place;
use super::samples::{append, at, claimed, created, everything, notice, worker};
use crate::{Lease, Store, StoreError, WorkerName};

/// The first claim has generation 1; each later one has the next, whoever makes it and however it came to be.
pub async fn generations_grow_with_every_claim(place: &dyn Place) {
    let store = place.open().await;
    let goal = created(&*store, 1).await.id;
    let (one, two) = (worker("one"), worker("two"));
    let lease = |worker: &WorkerName, generation, until| Lease {
        goal,
        worker: worker.clone(),
        generation: Generation(generation),
        until: at(until),
    };
    let first = store.claim(goal, &one, at(0), at(60), None).await.expect("free");
    assert_eq!(first, lease(&one, 1, 60));
    // A process that started again under its old name fences its former self.
    let again = store.claim(goal, &one, at(1), at(61), None).await.expect("its own");
    assert_eq!(again, lease(&one, 2, 61));
    assert_eq!(holder(&*store, goal).await, Some(again.clone()));
    store.release(&again).await.expect("its own");
    assert_eq!(holder(&*store, goal).await, None);
    let after_release = store.claim(goal, &one, at(2), at(62), None).await.expect("free");
    assert_eq!(after_release, lease(&one, 3, 62));
    let after_expiry = store.claim(goal, &two, at(62), at(122), None).await.expect("it ran out");
    assert_eq!(after_expiry, lease(&two, 4, 122));
    let from_the_dead = store.claim(goal, &one, at(63), at(123), Some(&two)).await.expect("two is dead");
    assert_eq!(from_the_dead, lease(&one, 5, 123));
    assert_eq!(holder(&*place.open().await, goal).await, Some(from_the_dead));
}

/// Until its end a lease keeps others out; at its end it is over.
pub async fn a_lease_is_held_until_it_runs_out(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let before = everything(&*store, goal.id).await;
    let just_before = lease.until - jiff::SignedDuration::from_nanos(1);
    for now in [at(0), at(59), just_before] {
        let refused = store.claim(goal.id, &worker("two"), now, at(500), None).await;
        let Err(StoreError::Held { goal: of, worker, until }) = refused else { panic!("{refused:?}") };
        assert_eq!((of, worker, until), (goal.id, lease.worker.clone(), lease.until));
    }
    assert_eq!(everything(&*store, goal.id).await, before);
    let taken = store.claim(goal.id, &worker("two"), lease.until, at(500), None).await.expect("it ran out");
    assert_eq!(taken.generation, lease.generation.next());
}

/// The proof that some worker is dead opens that worker's leases and no others.
pub async fn a_lease_is_taken_from_exactly_the_worker_that_is_proven_dead(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    for dead in ["two", "three", "on", "ONE", ""] {
        let refused = store.claim(goal.id, &worker("two"), at(1), at(70), Some(&worker(dead))).await;
        assert!(matches!(refused, Err(StoreError::Held { .. })), "{dead}: {refused:?}");
    }
    let taken =
        store.claim(goal.id, &worker("two"), at(1), at(70), Some(&lease.worker)).await.expect("one is dead");
    assert_eq!((&taken.worker, taken.generation), (&worker("two"), Generation(2)));
}

/// A race for a free goal has one winner, and the others learn who it is.
pub async fn of_workers_that_claim_at_once_one_wins(place: &dyn Place) {
    let stores = [place.open().await, place.open().await];
    for number in 0..10 {
        let goal = created(&*stores[0], number).await.id;
        let mut racers = JoinSet::new();
        for racer in 0..6 {
            let store = Arc::clone(&stores[racer % 2]);
            racers.spawn(
                async move { store.claim(goal, &worker(&racer.to_string()), at(0), at(60), None).await },
            );
        }
        let (mut won, mut holders) = (Vec::new(), Vec::new());
        while let Some(raced) = racers.join_next().await {
            match raced.expect("no racer panics") {
                Ok(lease) => won.push(lease),
                Err(StoreError::Held { worker, .. }) => holders.push(worker),
                Err(error) => panic!("{error}"),
            }
        }
        let [lease] = won.as_slice() else { panic!("one wins, not {}", won.len()) };
        assert_eq!(lease.generation, Generation(1));
        assert_eq!(holders, vec![lease.worker.clone(); 5]);
    }
}

/// Renewing moves the end and nothing else, even when the end was reached and nobody came.
pub async fn a_renewed_lease_holds_longer(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let renewed = store.renew(&lease, at(120)).await.expect("its own");
    assert_eq!(renewed, Lease { until: at(120), ..lease });
    assert_eq!(holder(&*store, goal.id).await, Some(renewed.clone()));
    let refused = store.claim(goal.id, &worker("two"), at(100), at(200), None).await;
    assert!(matches!(refused, Err(StoreError::Held { .. })), "{refused:?}");
    let late = store.renew(&renewed, at(300)).await.expect("nobody came in between");
    assert_eq!(holder(&*store, goal.id).await, Some(late));
}

/// Whoever lost a lease, or gave it back, learns so when renewing it.
pub async fn a_lease_that_is_lost_cannot_be_renewed(place: &dyn Place) {
    let store = place.open().await;
    let (goal, old) = claimed(&*store, 1).await;
    let new = store.claim(goal.id, &worker("two"), at(60), at(120), None).await.expect("it ran out");
    let refused = store.renew(&old, at(500)).await;
    let Err(StoreError::Fenced { goal: of, ours, held }) = refused else { panic!("{refused:?}") };
    assert_eq!((of, ours, held), (goal.id, old.generation, new.generation));
    assert_eq!(holder(&*store, goal.id).await, Some(new.clone()));
    store.release(&new).await.expect("its own");
    let refused = store.renew(&new, at(500)).await;
    assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
    assert_eq!(holder(&*store, goal.id).await, None);
}

/// A late release does not take the goal from its new holder.
pub async fn giving_back_a_lease_that_is_lost_changes_nothing(place: &dyn Place) {
    let store = place.open().await;
    let (goal, old) = claimed(&*store, 1).await;
    let new = store.claim(goal.id, &worker("one"), at(1), at(120), None).await.expect("its own");
    store.release(&old).await.expect("no error");
    assert_eq!(holder(&*store, goal.id).await, Some(new));
}

/// Claiming, renewing and giving back are no events; the newest generation may write until somebody else claims.
pub async fn leases_do_not_touch_the_log(place: &dyn Place) {
    let store = place.open().await;
    let goal = created(&*store, 1).await;
    let before = everything(&*store, goal.id).await;
    let lease = store.claim(goal.id, &worker("one"), at(0), at(60), None).await.expect("free");
    let renewed = store.renew(&lease, at(90)).await.expect("its own");
    store.release(&renewed).await.expect("its own");
    assert_eq!(everything(&*store, goal.id).await, before);
    store
        .append(append(&goal, lease.generation, Seq(1), vec![notice("last words", 1)]))
        .await
        .expect("nobody came");
    store.claim(goal.id, &worker("two"), at(0), at(60), None).await.expect("free");
    let refused = store.append(append(&goal, lease.generation, Seq(2), vec![notice("too late", 1)])).await;
    assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
}

async fn holder(store: &dyn Store, goal: GoalId) -> Option<Lease> {
    store.load(goal).await.expect("the goal is there").lease
}
