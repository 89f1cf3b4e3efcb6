//! A goal ends when its budget is spent.

use std::time::Duration;

use towline_core::{Axis, Budget, End, FailureReason, Phase};

use super::harness::World;
use super::values::{beginning, crashed, ended, goal_with, verdict};

fn spent(axis: Axis) -> Phase {
    Phase::Failed { reason: FailureReason::Budget { axis } }
}

#[tokio::test(start_paused = true)]
async fn no_attempt_starts_beyond_the_budget_of_attempts() {
    let world = World::new();
    let mut engine = world.engine();
    let handle = engine.start(goal_with(Budget { attempts: Some(2), ..Budget::default() })).await;
    engine.prepare().await;
    for tree in ["t1", "t2"] {
        engine.attempt().await.finish(ended(End::Completed)).await;
        engine.checks().await.finish(verdict(tree, false)).await;
    }
    engine.publish().await;
    assert_eq!(handle.result().await.expect("a result").state.phase, spent(Axis::Attempts));
}

#[tokio::test(start_paused = true)]
async fn bad_ends_in_a_row_spend_errors_with_growing_pauses() {
    let world = World::new();
    let mut engine = world.engine();
    let handle = engine.start(goal_with(Budget { errors: Some(3), ..Budget::default() })).await;
    engine.prepare().await;
    let mut ends = vec![beginning()];
    for _ in 0..3 {
        engine.attempt().await.finish(crashed()).await;
        ends.push(world.now());
    }
    engine.publish().await;
    assert_eq!(handle.result().await.expect("a result").state.phase, spent(Axis::Errors));
    let pauses: Vec<_> = ends.windows(2).map(|pair| pair[1].duration_since(pair[0])).collect();
    assert!(pauses.is_sorted() && pauses[1] > pauses[0], "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_stopped_when_the_wall_time_is_over() {
    let world = World::new();
    let mut engine = world.engine();
    let wall = Duration::from_secs(600);
    let handle = engine.start(goal_with(Budget { wall: Some(wall), ..Budget::default() })).await;
    let mut work = engine.first_attempt().await;
    work.stopped().await;
    let passed = Duration::try_from(world.now().duration_since(beginning())).expect("after the beginning");
    assert!(passed >= wall && passed < wall + Duration::from_secs(1), "{passed:?}");
    work.finish(ended(End::Lost)).await;
    engine.publish().await;
    assert_eq!(handle.result().await.expect("a result").state.phase, spent(Axis::Wall));
}
