//! Removing goals: whole, and only by whoever holds them.

use towline_core::{GoalState, Seq};

use super::Place;
use super::samples::{append, at, attempt, claimed, created, everything, launch, notice, worker};
use crate::{Append, Listed, Listing, StoreError};

/// What is removed is gone for everybody, its id is free again, and nothing of another goal is touched.
pub async fn a_removed_goal_leaves_nothing_and_the_others_stay(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let (other, other_lease) = claimed(&*store, 2).await;
    for (goal, lease) in [(&goal, &lease), (&other, &other_lease)] {
        let attempts = vec![attempt(goal.id, 1, 1, Some(2))];
        let moved = Append {
            state: GoalState { attempts, ..GoalState::new(goal) },
            effects: vec![launch(goal.id, 1, "go")],
            ..append(goal, lease.generation, Seq(1), vec![notice("something", 1)])
        };
        store.append(moved).await.expect("it fits");
    }
    let other_state = everything(&*store, other.id).await;
    store.remove(&lease).await.expect("it is ours");
    let store = place.open().await;
    let gone = store.load(goal.id).await;
    assert!(matches!(gone, Err(StoreError::NotFound(id)) if id == goal.id), "{gone:?}");
    let listed: Vec<_> =
        store.list(&Listing::first(9)).await.expect("a list").iter().map(Listed::id).collect();
    assert_eq!(listed, [other.id]);
    assert_eq!(store.find(&goal.id.to_string(), 9).await.expect("an answer"), []);
    assert_eq!(everything(&*store, other.id).await, other_state);
    let again = store.remove(&lease).await;
    assert!(matches!(again, Err(StoreError::NotFound(id)) if id == goal.id), "{again:?}");
    created(&*store, 1).await;
}

/// A lease that somebody else has taken since is good for nothing.
pub async fn a_goal_that_was_claimed_again_is_not_removed(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let newer = store.claim(goal.id, &worker("two"), at(61), at(120), None).await.expect("it has run out");
    let before = everything(&*store, goal.id).await;
    let refused = store.remove(&lease).await;
    let fenced = |ours, held| matches!(refused, Err(StoreError::Fenced { ours: o, held: h, .. }) if (o, h) == (ours, held));
    assert!(fenced(lease.generation, newer.generation), "{refused:?}");
    assert_eq!(everything(&*store, goal.id).await, before);
    store.remove(&newer).await.expect("it is theirs");
}
