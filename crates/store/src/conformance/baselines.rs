//! Results of checks on bases.

use towline_core::{BaselineCheck, GoalState, ReplacedChecks, Seq};

use super::Place;
use super::samples::{append, at, claimed};
use crate::{Append, MOST_BASELINES, StoredBaseline};

fn found(met: bool, second: i64) -> StoredBaseline {
    let check =
        BaselineCheck { name: "tests".to_owned(), met, exit_code: Some(i32::from(!met)), tests: Some(3) };
    StoredBaseline { checks: vec![check], found_at: at(second) }
}

/// What is stored under a key is found under it, also by others and later, and the newest counts.
pub async fn a_baseline_is_found_by_its_key(place: &dyn Place) {
    let store = place.open().await;
    assert_eq!(store.baseline("a").await.expect("read"), None);
    store.store_baseline("a", &found(false, 1)).await.expect("stored");
    store.store_baseline("b", &found(false, 1)).await.expect("stored");
    store.store_baseline("a", &found(true, 2)).await.expect("stored");
    let reopened = place.open().await;
    assert_eq!(reopened.baseline("a").await.expect("read"), Some(found(true, 2)));
    assert_eq!(reopened.baseline("b").await.expect("read"), Some(found(false, 1)));
}

/// The table does not grow without end.
pub async fn the_oldest_baselines_go_first(place: &dyn Place) {
    let store = place.open().await;
    let most = i64::try_from(MOST_BASELINES).expect("small");
    for age in 0..most + 2 {
        store.store_baseline(&format!("key {age}"), &found(true, age)).await.expect("stored");
    }
    for (age, is_there) in [(0, false), (1, false), (2, true), (most + 1, true)] {
        let found = store.baseline(&format!("key {age}")).await.expect("read");
        assert_eq!(found.is_some(), is_there, "{age}");
    }
}

/// Whoever loads a goal sees the checks that its next verdict is about.
pub async fn a_goal_is_loaded_with_the_checks_in_force(place: &dyn Place) {
    let store = place.open().await;
    let (goal, lease) = claimed(&*store, 1).await;
    let mut checks = goal.checks.clone();
    checks[0].name = "lint".to_owned();
    let replaced = ReplacedChecks { checks: checks.clone(), since: at(1) };
    let state = GoalState { replaced_checks: Some(replaced), ..GoalState::new(&goal) };
    let replacing = Append { state: state.clone(), ..append(&goal, lease.generation, Seq(1), Vec::new()) };
    store.append(replacing).await.expect("appended");
    let loaded = place.open().await.load(goal.id).await.expect("the goal is there");
    assert_eq!((loaded.goal.checks, loaded.state), (checks, state));
}
