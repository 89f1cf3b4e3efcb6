//! The outbox: in order, once per key, until settled.

use towline_core::{Effect, Goal, Seq};

use super::Place;
use super::samples::{append, checks, claimed, launch, pending};
use crate::{Append, Lease, PendingEffect, Store};

/// The order is that of writing, within an append and across appends.
pub async fn effects_wait_in_the_order_in_which_they_were_written(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let first = [launch(goal.id, 2, "b"), checks(1), launch(goal.id, 1, "a")];
    let second = [checks(10), checks(3), checks(2)];
    move_outbox(&*store, &goal, &lease, &first, &[]).await;
    move_outbox(&*store, &goal, &lease, &second, &[]).await;
    let expected: Vec<PendingEffect> = first.into_iter().chain(second).map(pending).collect();
    assert_eq!(waiting(&*store, &goal).await, expected);
    assert_eq!(waiting(&*place.open().await, &goal).await, expected);
}

/// A key is good for one effect: a second one by the same key changes nothing, not even after the first is over.
pub async fn an_effect_is_taken_once_whether_it_waits_or_is_over(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let (first, same_key) = (launch(goal.id, 1, "first"), launch(goal.id, 1, "second"));
    assert_eq!(first.key(), same_key.key());
    move_outbox(&*store, &goal, &lease, &[first.clone(), same_key.clone()], &[]).await;
    move_outbox(&*store, &goal, &lease, &[same_key.clone(), checks(1)], &[]).await;
    let key = first.key();
    assert_eq!(waiting(&*store, &goal).await, vec![pending(first), pending(checks(1))]);
    move_outbox(&*store, &goal, &lease, &[], &[&key]).await;
    move_outbox(&*store, &goal, &lease, &[same_key], &[]).await;
    assert_eq!(waiting(&*store, &goal).await, vec![pending(checks(1))]);
}

/// Settling touches the named keys of that goal; unknown and settled ones are no error, and an effect can be
/// written and settled by the same append.
pub async fn settling_ends_exactly_what_it_names(place: &dyn Place) {
    let store = place.open().await;
    let (one, one_lease) = claimed(&*store, 1).await;
    let (two, two_lease) = claimed(&*store, 2).await;
    let other_launch = launch(one.id, 1, "other");
    move_outbox(&*store, &one, &one_lease, &[checks(1), other_launch.clone()], &[]).await;
    move_outbox(&*store, &two, &two_lease, &[checks(1)], &[]).await;
    move_outbox(&*store, &one, &one_lease, &[], &["checks/1", "no such key"]).await;
    move_outbox(&*store, &one, &one_lease, &[launch(one.id, 2, "over at once")], &["launch/2", "checks/1"])
        .await;
    assert_eq!(waiting(&*store, &one).await, vec![pending(other_launch)]);
    assert_eq!(waiting(&*store, &two).await, vec![pending(checks(1))]);
}

async fn move_outbox(store: &dyn Store, goal: &Goal, lease: &Lease, effects: &[Effect], settled: &[&str]) {
    let append = Append {
        effects: effects.to_vec(),
        settled: settled.iter().map(|key| (*key).to_owned()).collect(),
        ..append(goal, lease.generation, Seq(1), vec![])
    };
    store.append(append).await.expect("nobody else writes");
}

async fn waiting(store: &dyn Store, goal: &Goal) -> Vec<PendingEffect> {
    store.pending(goal.id).await.expect("the goal is there")
}
