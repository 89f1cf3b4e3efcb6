//! What becomes of a running agent when the store fails.

use towline_core::{End, Phase};
use towline_store::StoreError;

use super::faulty_store::Call;
use super::harness::World;
use super::values::{ended, goal, notice};
use crate::error::EngineError;
use crate::news::StopLevel;

fn damaged() -> StoreError {
    StoreError::Database { path: "towline.db".into(), message: "it is damaged".into() }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_good_ends_the_agent() {
    let world = World::new();
    let mut engine = world.engine();
    let handle = engine.start(goal(1)).await;
    let mut work = engine.first_attempt().await;
    world.store.fail(|call| (call == Call::Append).then(damaged));
    work.send(notice("more")).await;
    assert_eq!(work.stopped().await, StopLevel::Kill);
    work.finish(ended(End::Lost)).await;
    let result = handle.result().await;
    assert!(matches!(result, Err(EngineError::Store(StoreError::Database { .. }))), "{result:?}");
    world.store.heal();
    assert!(matches!(world.record(goal(1).id).await.state.phase, Phase::Running { .. }));
}
